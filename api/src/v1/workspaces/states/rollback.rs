//! Going back to an older state.

use axum::extract::State;
use serde::Deserialize;
use stackship_domain::ids::StateVersionId;
use stackship_projections::READ_YOUR_WRITES_LIMIT;
use stackship_store::records::workspaces;
use stackship_workflow::rollback::{self, RollbackRequest};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::StatePath;
use crate::auth::{Denied, InWorkspace, StateRecover};
use crate::v1::answer::Data;
use crate::v1::body::{Body, Path};
use crate::v1::reason;
use crate::v1::workspaces::lock::person;
use crate::v1::workspaces::view::{self, WorkspaceDetail};
use crate::{ApiError, App};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(state_version_rollback))
}

/// A rollback.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RollbackBody {
    /// The workspace's state as you saw it; refused when it is another by now.
    #[schema(value_type = String)]
    current: StateVersionId,
    /// Why, for those who read the history.
    #[schema(min_length = 10, max_length = 1000)]
    reason: String,
}

/// Makes the content of an older version the workspace's state, as a new version with a higher serial. Only
/// the record changes, no infrastructure: the next plan shows the difference. Refused while a run or
/// somebody else holds the workspace's lock.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/state-versions/{state}/rollback",
    tag = "workspaces", params(("workspace" = String, Path), ("state" = String, Path)),
    request_body = RollbackBody,
    responses((status = 200, body = Data<WorkspaceDetail>)))]
async fn state_version_rollback(
    State(app): State<App>,
    may: InWorkspace<StateRecover>,
    Path(path): Path<StatePath>,
    Body(body): Body<RollbackBody>,
) -> Result<Data<WorkspaceDetail>, ApiError> {
    let (by, context) = (person(&may)?, may.caller.command()?);
    let reason = reason::full(&body.reason)?;
    let version = path.find(&app, &may.workspace).await?;
    let request = RollbackRequest {
        organization: may.workspace.organization,
        workspace: may.workspace.id,
        by,
        version: version.ok_or(Denied::not_found("state version"))?.id,
        current: body.current,
        reason,
    };
    let committed = rollback::roll_back(&app.store, &context, request).await?;
    let (workspace, limit) = (may.workspace, READ_YOUR_WRITES_LIMIT);
    app.waiter
        .wait_workspace(workspace.id, committed.sequence, limit)
        .await?;
    let changed = workspaces::by_id(&app.store.pool, workspace.organization, workspace.id).await?;
    let changed = changed.ok_or(Denied::not_found("workspace"))?;
    Ok(view::detail(&app, changed).await?.into())
}
