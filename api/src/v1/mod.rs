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
mod projects;
mod repeats;
mod runs;
mod schema;
mod step_up;
mod tokens;
mod users;
mod variables;
mod workspaces;

use axum::routing::get;
use axum::{Router, middleware};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

pub use openapi::openapi_json;
pub use repeats::{ANSWER_KEPT_SECONDS, IDEMPOTENCY_KEY, IDEMPOTENCY_REPLAYED};

use crate::{ApiError, App};

/// Routes that the OpenAPI document does not describe: itself.
pub const UNDESCRIBED_ROUTES: &[(&str, &str)] = &[("GET", "/v1/openapi.json")];

/// The longest reason that a person gives for a decision, in characters.
const REASON_CHARS_MAX: usize = 1_000;
/// The shortest reason where one must be given, in characters: somebody will read it when things went
/// wrong, and a word is none.
const GIVEN_REASON_CHARS_MIN: usize = 10;

pub(crate) fn router(app: App) -> Router<App> {
    Router::from(repeatable())
        .route_layer(middleware::from_fn_with_state(app, repeats::once))
        .merge(Router::from(never_kept()))
        .route("/v1/openapi.json", get(openapi::serve))
}

fn documented() -> OpenApiRouter<App> {
    repeatable().merge(never_kept())
}

/// What a request or an answer of these holds may not be kept anywhere, so naming a request has no
/// effect here; each may be said again as it is.
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
        .merge(runs::router())
        .merge(logs::router())
        .merge(audit::router())
}

/// Why a person decides so.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReasonBody {
    /// Why, for those who read the history.
    reason: Option<String>,
}

impl ReasonBody {
    fn checked(self) -> Result<Option<String>, ApiError> {
        if let Some(reason) = &self.reason {
            body::plain_text("REASON_INVALID", "reason", reason, 1..=REASON_CHARS_MAX)?;
        }
        Ok(self.reason)
    }
}
