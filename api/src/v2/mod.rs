//! What the OpenTofu CLI speaks: the part of the protocol of remote runs that `tofu` 1.12 needs, on a
//! person's machine and inside a sandbox. What it does not need does not exist here.
//!
//! The words of this edge (`discarded`, `confirmed`, `plan-…`) stay in this module. A run is looked at
//! through its review and translated in `mapping`; decisions go to the `workflow` room.

mod access;
mod bootstrap;
mod configurations;
mod discovery;
mod error;
mod ids;
mod logs;
mod mapping;
mod projects;
mod runs;
mod settings;
mod states;
mod uploads;
mod urls;
mod wire;
mod workspaces;

pub use configurations::CONFIGURATION_BYTES_MAX;
pub use error::V2Error;

use axum::response::IntoResponse as _;
use axum::routing::{MethodRouter, get, patch, post, put};
use axum::{Extension, Router};
use tower_http::catch_panic::CatchPanicLayer;

use crate::App;
use crate::reading::BytesMax;

macro_rules! routes {
    ($($method:ident $path:literal => $handler:expr $(; $bytes_max:expr)?),+ $(,)?) => {
        /// Every route of this edge: method and path.
        pub const ROUTES: &[(&str, &str)] = &[$((method_name(stringify!($method)), $path)),+];

        fn handlers() -> impl IntoIterator<Item = (&'static str, MethodRouter<App>)> {
            [$(($path, $method($handler)$(.layer(Extension(BytesMax($bytes_max))))?)),+]
        }
    };
}

/// The method of a routing function.
const fn method_name(function: &str) -> &str {
    match function.as_bytes() {
        b"get" => "GET",
        b"post" => "POST",
        b"put" => "PUT",
        b"patch" => "PATCH",
        _ => panic!("a method that this edge does not have"),
    }
}

routes! {
    get "/.well-known/terraform.json" => discovery::document,
    get "/app/{organization}/{workspace}/runs/{run}" => discovery::run_page,
    get "/api/v2/ping" => bootstrap::ping,
    get "/api/v2/organizations/{organization}/entitlement-set" => bootstrap::entitlements,
    get "/api/v2/organizations/{organization}/capacity" => bootstrap::capacity,
    get "/api/v2/organizations/{organization}/runs/queue" => bootstrap::queue,
    get "/api/v2/organizations/{organization}/projects" => projects::list,
    post "/api/v2/organizations/{organization}/projects" => projects::create,
    post "/api/v2/organizations/{organization}/workspaces" => workspaces::create,
    get "/api/v2/organizations/{organization}/workspaces/{name}" => workspaces::read,
    patch "/api/v2/workspaces/{workspace}" => workspaces::change,
    get "/api/v2/workspaces/{workspace}/runs" => workspaces::runs,
    post "/api/v2/workspaces/{workspace}/relationships/tags" => workspaces::add_tags,
    post "/api/v2/workspaces/{workspace}/actions/lock" => workspaces::lock_action,
    post "/api/v2/workspaces/{workspace}/actions/unlock" => workspaces::lock_action,
    post "/api/v2/workspaces/{workspace}/configuration-versions" => configurations::create,
    get "/api/v2/configuration-versions/{configuration}" => configurations::read,
    put "/api/v2/uploads/configurations/{token}" => configurations::upload,
    post "/api/v2/runs" => runs::create,
    get "/api/v2/runs/{run}" => runs::read,
    get "/api/v2/runs/{run}/run-events" => runs::run_events,
    post "/api/v2/runs/{run}/actions/apply" => runs::apply,
    post "/api/v2/runs/{run}/actions/discard" => runs::discard,
    post "/api/v2/runs/{run}/actions/cancel" => runs::cancel,
    get "/api/v2/runs/{run}/policy-checks" => runs::policy_checks,
    get "/api/v2/policy-checks/{check}" => runs::read_policy_check,
    get "/api/v2/policy-checks/{check}/output" => runs::policy_output,
    post "/api/v2/policy-checks/{check}/actions/override" => runs::override_policy,
    get "/api/v2/plans/{plan}" => runs::read_plan,
    get "/api/v2/plans/{plan}/json-output" => runs::json_output,
    get "/api/v2/applies/{apply}" => runs::read_apply,
    get "/api/v2/logs/{token}" => logs::read,
    get "/api/v2/workspaces/{workspace}/current-state-version" => states::current,
    get "/api/v2/workspaces/{workspace}/current-state-version-outputs" => states::current_outputs,
    post "/api/v2/workspaces/{workspace}/state-versions" => states::begin; states::OUTPUTS_REQUEST_BYTES_MAX,
    get "/api/v2/state-versions/{state}" => states::read,
    get "/api/v2/state-versions/{state}/download" => states::download,
    get "/api/v2/state-version-outputs/{output}" => states::one_output,
    put "/api/v2/uploads/states/{token}" => states::put_raw,
    put "/api/v2/uploads/json-states/{token}" => states::put_json,
}

/// The routes.
pub fn router() -> Router<App> {
    let mut router = Router::new();
    for (path, handler) in handlers() {
        router = router.route(path, handler);
    }
    router.layer(CatchPanicLayer::custom(|_| {
        V2Error::internal("a handler panicked").into_response()
    }))
}
