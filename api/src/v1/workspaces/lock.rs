//! The lock, taken and given back by hand.

use axum::extract::State;
use serde::Deserialize;
use stackship_domain::ids::UserId;
use stackship_projections::READ_YOUR_WRITES_LIMIT;
use stackship_store::log::Committed;
use stackship_workflow::decisions;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::view::{self, WorkspaceDetail};
use crate::auth::{Denied, InWorkspace, WorkspaceLock};
use crate::v1::answer::Data;
use crate::v1::body::{Body, plain_text};
use crate::v1::{REASON_CHARS_MAX, ReasonBody};
use crate::{ApiError, App};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(workspace_lock))
        .routes(routes!(workspace_unlock))
        .routes(routes!(workspace_force_unlock))
}

/// Nothing needs to be said.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Why somebody else's lock is broken.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ForceUnlock {
    /// Why, for those who read the history.
    reason: String,
}

/// Takes the lock by hand: runs wait until it is given back.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/lock", tag = "workspaces",
    params(("workspace" = String, Path)), request_body = ReasonBody,
    responses((status = 200, body = Data<WorkspaceDetail>)))]
async fn workspace_lock(
    State(app): State<App>,
    may: InWorkspace<WorkspaceLock>,
    Body(body): Body<ReasonBody>,
) -> Result<Data<WorkspaceDetail>, ApiError> {
    let (by, context) = (person(&may)?, may.caller.command());
    let reason = body.checked()?;
    let committed = decisions::lock(&app.store, &context, may.workspace.id, by, reason).await?;
    answer(&app, may, committed).await
}

/// Gives one's own lock back.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/unlock", tag = "workspaces",
    params(("workspace" = String, Path)), request_body = Nothing,
    responses((status = 200, body = Data<WorkspaceDetail>)))]
async fn workspace_unlock(
    State(app): State<App>,
    may: InWorkspace<WorkspaceLock>,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Data<WorkspaceDetail>, ApiError> {
    let (by, context) = (person(&may)?, may.caller.command());
    let committed = decisions::unlock(&app.store, &context, may.workspace.id, by).await?;
    answer(&app, may, committed).await
}

/// Breaks another person's lock. A run's lock does not yield: it ends with its run.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/force-unlock", tag = "workspaces",
    params(("workspace" = String, Path)), request_body = ForceUnlock,
    responses((status = 200, body = Data<WorkspaceDetail>)))]
async fn workspace_force_unlock(
    State(app): State<App>,
    may: InWorkspace<WorkspaceLock>,
    Body(body): Body<ForceUnlock>,
) -> Result<Data<WorkspaceDetail>, ApiError> {
    plain_text(
        "REASON_INVALID",
        "reason",
        &body.reason,
        1..=REASON_CHARS_MAX,
    )?;
    let (by, context) = (person(&may)?, may.caller.command());
    let workspace = may.workspace.id;
    let committed =
        decisions::force_unlock(&app.store, &context, workspace, by, body.reason).await?;
    answer(&app, may, committed).await
}

pub(super) fn person<P>(may: &InWorkspace<P>) -> Result<UserId, Denied> {
    may.caller
        .user()
        .map(|user| user.user)
        .ok_or(Denied::RunToken)
}

async fn answer(
    app: &App,
    may: InWorkspace<WorkspaceLock>,
    committed: Committed,
) -> Result<Data<WorkspaceDetail>, ApiError> {
    let limit = READ_YOUR_WRITES_LIMIT;
    app.waiter
        .wait_workspace(may.workspace.id, committed.sequence, limit)
        .await?;
    Ok(view::detail(app, may.workspace).await?.into())
}
