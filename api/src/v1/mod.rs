//! StackShip's own API: JSON with typed ids, `{"data": …}` around what is found and `{"error": …}`
//! around what is not.

mod answer;
mod audit;
mod body;
mod configurations;
mod grants;
mod guarded;
mod logs;
mod openapi;
mod organizations;
mod policy_sets;
mod projects;
mod reason;
mod repeats;
mod runs;
mod schema;
mod scope;
mod step_up;
mod tokens;
mod users;
mod variables;
mod workspaces;

use axum::routing::get;
use axum::{Router, middleware};
use utoipa_axum::router::OpenApiRouter;

pub use openapi::openapi_json;
pub use repeats::{ANSWER_KEPT_SECONDS, IDEMPOTENCY_KEY, IDEMPOTENCY_REPLAYED};

use crate::App;

/// Routes that the OpenAPI document does not describe: itself.
pub const UNDESCRIBED_ROUTES: &[(&str, &str)] = &[("GET", "/v1/openapi.json")];

pub(crate) fn router(app: App) -> Router<App> {
    Router::from(repeatable())
        .route_layer(middleware::from_fn_with_state(app, repeats::once))
        .merge(Router::from(never_kept()))
        .route("/v1/openapi.json", get(openapi::serve))
}

fn documented() -> OpenApiRouter<App> {
    repeatable().merge(never_kept())
}

/// What a request or an answer of these holds may not be kept anywhere, so a request cannot be named
/// here. Each may be said again as it is, and a download that is said again is in the history again.
fn never_kept() -> OpenApiRouter<App> {
    step_up::router()
        .merge(runs::guarded_router())
        .merge(workspaces::guarded_router())
}

fn repeatable() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(organizations::router())
        .merge(projects::router())
        .merge(workspaces::router())
        .merge(variables::router())
        .merge(users::router())
        .merge(grants::router())
        .merge(tokens::router())
        .merge(configurations::router())
        .merge(policy_sets::router())
        .merge(runs::router())
        .merge(logs::router())
        .merge(audit::router())
}
