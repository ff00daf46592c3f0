//! The content of a state version, for people. A state holds secrets in clear, so it is guarded like what
//! a run leaves behind; the `tofu` CLI, which needs the current one for its work, has its own way.

use axum::extract::State;
use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::StatePath;
use crate::artifacts::Recorded;
use crate::auth::{InWorkspace, NoQuery, Proven, Quietly, StateRead};
use crate::v1::body::{Body, Path};
use crate::v1::guarded::{Download, hidden, release};
use crate::v1::reason::FullReason;
use crate::v1::repeats::Unnamed;
use crate::{ApiError, App};

pub(in crate::v1) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(state_version_download))
}

/// Downloads a state version, secrets in clear. Needs a proof not older than 15 minutes
/// (`/v1/user/step-up`).
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/state-versions/{state}/download",
    tag = "workspaces", params(("workspace" = String, Path), ("state" = String, Path)),
    request_body = FullReason,
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream")))]
async fn state_version_download(
    State(app): State<App>,
    Quietly(may): Quietly<InWorkspace<StateRead>>,
    _no_query: NoQuery,
    _proven: Proven,
    _unnamed: Unnamed,
    Path(path): Path<StatePath>,
    Body(body): Body<FullReason>,
) -> Result<Response, ApiError> {
    let reason = body.checked()?;
    let row = path.find(&app, &may.workspace).await?.ok_or_else(hidden)?;
    let download = Download {
        caller: &may.caller,
        place: (&may).into(),
        run: row.author.run(),
        artifact: "state_version",
        file: format!("{}.tfstate", row.id),
        recorded: Recorded::state(&row).ok_or_else(hidden)?,
        reason,
    };
    release(&app, download).await
}
