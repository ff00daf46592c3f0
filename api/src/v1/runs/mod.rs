//! Runs: created from an uploaded configuration, listed, read.

mod decisions;
mod evidence;
mod guarded;
mod plan_changes;
mod policy;
mod recovery;
mod request;
mod review;
mod view;
mod waiting;

use std::collections::HashMap;

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use stackship_domain::ids::{RunId, WorkspaceId};
use stackship_domain::run::{RunKind, SourceKind, Status};
use stackship_domain::{Actor, Name, Timestamp};
use stackship_projections::{InventoryFilter, InventoryRow, READ_YOUR_WRITES_LIMIT};
use stackship_store::records::workspaces;
use stackship_workflow::create;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Data, List, created};
use super::body::{self, Body, Query};
use super::schema;
use crate::auth::{InOrganization, InRun, InWorkspace, RunCreate, RunRead};
use crate::{ApiError, App};
pub(super) use guarded::router as guarded_router;
use request::NewRunBody;
use view::RunView;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(run_create, run_list_of_workspace))
        .routes(routes!(run_list))
        .routes(routes!(run_read))
        .merge(review::router())
        .merge(plan_changes::router())
        .merge(policy::router())
        .merge(decisions::router())
        .merge(recovery::router())
}

/// A run in a list.
#[derive(Serialize, ToSchema)]
struct RunEntry {
    /// Its id.
    #[schema(value_type = String)]
    id: RunId,
    /// Its workspace.
    #[schema(value_type = String)]
    workspace: WorkspaceId,
    /// The workspace's name now.
    #[schema(value_type = Option<String>)]
    workspace_name: Option<Name>,
    /// Where it stands.
    #[schema(schema_with = schema::status)]
    status: Status,
    /// What it may become.
    #[schema(schema_with = schema::run_kind)]
    kind: RunKind,
    /// Its title.
    message: String,
    /// Where it came from.
    #[schema(schema_with = schema::source_kind)]
    source: SourceKind,
    /// Who created it.
    #[schema(value_type = String)]
    created_by: Actor,
    /// When it was created.
    #[schema(schema_with = schema::time)]
    created_at: Timestamp,
    /// When something last happened to it.
    #[schema(schema_with = schema::time)]
    updated_at: Timestamp,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Timestamp>,
}

impl RunEntry {
    fn of(row: InventoryRow, names: &HashMap<WorkspaceId, Name>) -> Self {
        Self {
            id: row.run,
            workspace_name: names.get(&row.workspace).cloned(),
            workspace: row.workspace,
            status: row.status,
            kind: row.kind,
            message: row.message,
            source: row.source,
            created_by: row.created_by,
            created_at: row.created_at,
            updated_at: row.updated_at,
            ended_at: row.ended_at,
        }
    }
}

/// Which runs are listed, and which page of them.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RunQuery {
    /// Only runs that stand here.
    #[param(value_type = Option<String>)]
    status: Option<Status>,
    /// Only runs of this workspace.
    #[param(value_type = Option<String>)]
    workspace: Option<WorkspaceId>,
    /// The `next_cursor` of the page before; it belongs to one list with one filter.
    cursor: Option<String>,
    /// How many runs at most: 1 to 100, 100 when absent.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u16>,
}

/// Lists an organization's runs, newest first.
#[utoipa::path(get, path = "/v1/organizations/{organization}/runs", tag = "runs",
    params(("organization" = String, Path), RunQuery),
    responses((status = 200, body = List<RunEntry>)))]
async fn run_list(
    State(app): State<App>,
    may: InOrganization<RunRead>,
    Query(query): Query<RunQuery>,
) -> Result<List<RunEntry>, ApiError> {
    page(&app, may.organization.id, query).await
}

/// Lists a workspace's runs, newest first.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/runs", tag = "runs",
    params(("workspace" = String, Path), RunQuery),
    responses((status = 200, body = List<RunEntry>)))]
async fn run_list_of_workspace(
    State(app): State<App>,
    may: InWorkspace<RunRead>,
    Query(query): Query<RunQuery>,
) -> Result<List<RunEntry>, ApiError> {
    let workspace = Some(may.workspace.id);
    page(
        &app,
        may.workspace.organization,
        RunQuery { workspace, ..query },
    )
    .await
}

async fn page(
    app: &App,
    organization: stackship_domain::ids::OrganizationId,
    query: RunQuery,
) -> Result<List<RunEntry>, ApiError> {
    let filter = InventoryFilter {
        status: query.status,
        workspace: query.workspace,
    };
    let (cursor, limit) = (query.cursor.as_deref(), body::limit(query.limit)?);
    let page = app
        .views
        .inventory_page(organization, filter, cursor, limit)
        .await?;
    let mut shown: Vec<WorkspaceId> = page.rows.iter().map(|row| row.workspace).collect();
    shown.sort_unstable();
    shown.dedup();
    let names = workspaces::names(&app.store.pool, organization, &shown).await?;
    let entry = |row| RunEntry::of(row, &names);
    let rows = page.rows.into_iter().map(entry).collect();
    Ok(List::new(rows, page.next_cursor))
}

/// Creates a run from an uploaded configuration version. The same request again gets the first
/// run. An apply without approval is refused.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/runs", tag = "runs",
    params(("workspace" = String, Path)), request_body = NewRunBody,
    responses((status = 201, body = Data<RunView>)))]
async fn run_create(
    State(app): State<App>,
    may: InWorkspace<RunCreate>,
    Body(body): Body<NewRunBody>,
) -> Result<(StatusCode, Data<RunView>), ApiError> {
    let context = may.caller.command()?;
    let request = body.request(&app, may.workspace).await?;
    let organization = request.organization;
    let run = create::create_run(&app.store, &context, request).await?;
    let limit = READ_YOUR_WRITES_LIMIT;
    app.waiter.wait_run(run.run, run.sequence, limit).await?;
    Ok(created(view::read(&app, organization, run.run).await?))
}

/// Reads a run: where it stands, what it rests on, what it waits for.
#[utoipa::path(get, path = "/v1/runs/{run}", tag = "runs",
    params(("run" = String, Path)),
    responses((status = 200, body = Data<RunView>)))]
async fn run_read(State(app): State<App>, may: InRun<RunRead>) -> Result<Data<RunView>, ApiError> {
    let run = view::read(&app, may.run.organization, may.run.id).await?;
    Ok(run.into())
}
