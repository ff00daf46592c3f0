//! The state versions of a workspace: what was its state once, and what is. They are described to whoever
//! sees the workspace; their content is another matter (`download`).

mod download;
mod rollback;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use stackship_domain::ids::{RunId, StateVersionId, UserId};
use stackship_domain::{Sha256Digest, Timestamp};
use stackship_store::StoreError;
use stackship_store::records::workspaces::Workspace;
use stackship_store::states::{self, Author, StateStatus, StateVersionRow};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::{Denied, InWorkspace, WorkspaceRead};
use crate::v1::answer::{Data, List};
use crate::v1::body::{PageQuery, Path, Query};
use crate::v1::schema;
use crate::{ApiError, App};
pub(in crate::v1) use download::router as guarded_router;

/// Where state versions are recorded.
const TABLE: &str = "record.state_versions";

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(state_version_list))
        .routes(routes!(state_version_read))
        .merge(rollback::router())
}

/// A state version that was published.
#[derive(Serialize, ToSchema)]
struct StateVersionView {
    /// Its id.
    #[schema(value_type = String)]
    id: StateVersionId,
    /// Its serial; only rises.
    serial: i64,
    /// Its lineage.
    lineage: String,
    /// SHA-256 of its exact bytes.
    #[schema(value_type = String)]
    sha256: Sha256Digest,
    /// How many bytes it has.
    bytes: i64,
    /// The run whose apply published it; null when a person rolled back to it.
    #[schema(value_type = Option<String>)]
    run: Option<RunId>,
    /// The rollback that made it; null when a run did.
    rollback: Option<RollbackView>,
    /// When it became the workspace's state.
    #[schema(schema_with = schema::time)]
    published_at: Timestamp,
    /// Whether it is the workspace's state now.
    is_current: bool,
}

/// A rollback.
#[derive(Serialize, ToSchema)]
struct RollbackView {
    /// Who decided it.
    #[schema(value_type = String)]
    by: UserId,
    /// The version whose content this one has again.
    #[schema(value_type = String)]
    restores: StateVersionId,
}

impl StateVersionView {
    fn of(row: StateVersionRow, workspace: &Workspace) -> Result<Self, StoreError> {
        let missing = |column| StoreError::inconsistent(TABLE, column, row.id);
        let (run, rollback) = match row.author {
            Author::Run(run) => (Some(run), None),
            Author::Person { user: by, restores } => (None, Some(RollbackView { by, restores })),
        };
        Ok(Self {
            id: row.id,
            serial: row.serial,
            sha256: row.sha256.ok_or_else(|| missing("sha256"))?,
            bytes: row.bytes.ok_or_else(|| missing("bytes"))?,
            published_at: row.published_at.ok_or_else(|| missing("published_at"))?,
            is_current: workspace.current_state_version == Some(row.id),
            lineage: row.lineage,
            run,
            rollback,
        })
    }
}

/// Lists what was the workspace's state once and what is, newest first.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/state-versions", tag = "workspaces",
    params(("workspace" = String, Path), PageQuery),
    responses((status = 200, body = List<StateVersionView>)))]
async fn state_version_list(
    State(app): State<App>,
    may: InWorkspace<WorkspaceRead>,
    Query(query): Query<PageQuery>,
) -> Result<List<StateVersionView>, ApiError> {
    let page = query.page(|cursor| cursor.parse::<i64>().is_ok())?;
    let workspace = &may.workspace;
    let rows = states::published(&app.store, workspace.organization, workspace.id, &page).await?;
    let next = query.next(&rows, |row| row.serial.to_string());
    let views = rows
        .into_iter()
        .map(|row| StateVersionView::of(row, workspace));
    Ok(List::new(views.collect::<Result<_, _>>()?, next))
}

/// Reads one state version.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/state-versions/{state}", tag = "workspaces",
    params(("workspace" = String, Path), ("state" = String, Path)),
    responses((status = 200, body = Data<StateVersionView>)))]
async fn state_version_read(
    State(app): State<App>,
    may: InWorkspace<WorkspaceRead>,
    Path(path): Path<StatePath>,
) -> Result<Data<StateVersionView>, ApiError> {
    let row = path.find(&app, &may.workspace).await?;
    let row = row.ok_or(Denied::not_found("state version"))?;
    Ok(StateVersionView::of(row, &may.workspace)?.into())
}

/// Where a state version stands.
#[derive(Deserialize)]
struct StatePath {
    state: String,
}

impl StatePath {
    /// The version, if it was published in this workspace.
    async fn find(
        &self,
        app: &App,
        workspace: &Workspace,
    ) -> Result<Option<StateVersionRow>, StoreError> {
        let Ok(id) = self.state.parse::<StateVersionId>() else {
            return Ok(None);
        };
        let row = states::by_id(&app.store, workspace.organization, id).await?;
        Ok(row.filter(|row| row.workspace == workspace.id && row.status == StateStatus::Published))
    }
}
