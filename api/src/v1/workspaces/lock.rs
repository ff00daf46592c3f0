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
use crate::auth::{Denied, InWorkspace, Requires, WorkspaceForceUnlock, WorkspaceLock};
use crate::v1::answer::Data;
use crate::v1::body::Body;
use crate::v1::reason::{GivenReason, ReasonBody};
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

/// Takes the lock by hand: runs wait until it is given back.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/lock", tag = "workspaces",
    params(("workspace" = String, Path)), request_body = ReasonBody,
    responses((status = 200, body = Data<WorkspaceDetail>)))]
async fn workspace_lock(
    State(app): State<App>,
    may: InWorkspace<WorkspaceLock>,
    Body(body): Body<ReasonBody>,
) -> Result<Data<WorkspaceDetail>, ApiError> {
    let (by, context) = (person(&may)?, may.caller.command()?);
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
    let (by, context) = (person(&may)?, may.caller.command()?);
    let committed = decisions::unlock(&app.store, &context, may.workspace.id, by).await?;
    answer(&app, may, committed).await
}

/// Breaks a lock that a person holds. A run's lock does not yield, whether the run applies or only
/// waits: it ends with its run, which the refusal names. An owner does this, and the reason is part of
/// the history.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/force-unlock", tag = "workspaces",
    params(("workspace" = String, Path)), request_body = GivenReason,
    responses((status = 200, body = Data<WorkspaceDetail>)))]
async fn workspace_force_unlock(
    State(app): State<App>,
    may: InWorkspace<WorkspaceForceUnlock>,
    Body(body): Body<GivenReason>,
) -> Result<Data<WorkspaceDetail>, ApiError> {
    let (by, context) = (person(&may)?, may.caller.command()?);
    let (workspace, reason) = (may.workspace.id, body.checked()?);
    let committed = decisions::force_unlock(&app.store, &context, workspace, by, reason).await?;
    answer(&app, may, committed).await
}

fn person<P: Requires>(may: &InWorkspace<P>) -> Result<UserId, Denied> {
    may.caller
        .user()
        .map(|user| user.user)
        .ok_or(Denied::RunToken)
}

async fn answer<P: Requires>(
    app: &App,
    may: InWorkspace<P>,
    committed: Committed,
) -> Result<Data<WorkspaceDetail>, ApiError> {
    let limit = READ_YOUR_WRITES_LIMIT;
    app.waiter
        .wait_workspace(may.workspace.id, committed.sequence, limit)
        .await?;
    Ok(view::detail(app, may.workspace).await?.into())
}
