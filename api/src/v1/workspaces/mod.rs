//! Workspaces: the units of state, their settings and their lock.

mod lock;
mod states;
mod view;

use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use stackship_domain::ids::{ProjectId, WorkspaceId};
use stackship_domain::{Name, TofuVersion};
use stackship_store::records::projects;
use stackship_store::records::workspaces::{self, NewWorkspace, WorkspaceChange};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Data, List, created};
use super::body::{Body, PageQuery, Query, plain_text};
use crate::auth::{
    Anywhere, Denied, InOrganization, InProject, InWorkspace, Tenant, WorkspaceRead, WorkspaceWrite,
};
use crate::{APPROVAL_SECONDS_DEFAULT, ApiError, App, Platform};
pub(super) use states::guarded_router;
use view::{WorkspaceDetail, WorkspaceView};

/// Bounds of the time a plan waits for a decision: a minute to thirty days.
const APPROVAL_SECONDS: std::ops::RangeInclusive<u32> = 60..=2_592_000;
const WORKING_DIRECTORY_CHARS_MAX: usize = 512;
const REGION_CHARS_MAX: usize = 64;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(workspace_list, workspace_create))
        .routes(routes!(workspace_read, workspace_change))
        .merge(lock::router())
        .merge(states::router())
}

/// A workspace to be created. There is no automatic apply to ask for.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewWorkspaceBody {
    /// Letters, digits, `-` and `_`; unique in the organization.
    #[schema(value_type = String)]
    name: Name,
    /// The project it belongs to: its id or its name.
    project: String,
    /// The exact OpenTofu release of its runs; the installation's default when absent.
    #[schema(value_type = Option<String>)]
    tofu_version: Option<TofuVersion>,
    /// Directory below the configuration's root in which OpenTofu runs.
    #[serde(default)]
    working_directory: String,
    /// Where its runs execute; the installation's default when absent.
    region: Option<String>,
    /// On what its runs execute; the installation's own when absent.
    platform: Option<Platform>,
    /// How long a plan waits for a decision: 60 to 2592000 seconds, a day when absent.
    approval_seconds: Option<u32>,
}

/// What is to be different; absent fields stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WorkspaceChangeBody {
    /// The name.
    #[schema(value_type = Option<String>)]
    name: Option<Name>,
    /// The exact OpenTofu release of runs to come.
    #[schema(value_type = Option<String>)]
    tofu_version: Option<TofuVersion>,
    /// The directory in which OpenTofu runs.
    working_directory: Option<String>,
    /// Where runs to come execute.
    region: Option<String>,
    /// How long a plan waits for a decision.
    approval_seconds: Option<u32>,
}

/// Lists an organization's workspaces, oldest first.
#[utoipa::path(get, path = "/v1/organizations/{organization}/workspaces", tag = "workspaces",
    params(("organization" = String, Path), PageQuery),
    responses((status = 200, body = List<WorkspaceView>)))]
async fn workspace_list(
    State(app): State<App>,
    may: InOrganization<WorkspaceRead>,
    Query(query): Query<PageQuery>,
) -> Result<List<WorkspaceView>, ApiError> {
    let page = query.page(|cursor| cursor.parse::<WorkspaceId>().is_ok())?;
    let rows = workspaces::list(&app.store.pool, may.organization.id, None, &page).await?;
    let next = query.next(&rows, |workspace| workspace.id.to_string());
    Ok(List::new(rows.into_iter().map(Into::into).collect(), next))
}

/// Creates a workspace in a project. Needs `workspace:write` in that project.
#[utoipa::path(post, path = "/v1/organizations/{organization}/workspaces", tag = "workspaces",
    params(("organization" = String, Path)), request_body = NewWorkspaceBody,
    responses((status = 201, body = Data<WorkspaceDetail>)))]
async fn workspace_create(
    State(app): State<App>,
    tenant: Tenant,
    _may: Anywhere<WorkspaceWrite>,
    Body(body): Body<NewWorkspaceBody>,
) -> Result<(StatusCode, Data<WorkspaceDetail>), ApiError> {
    let may = project_named(&app, tenant, &body.project).await?;
    let new = new_workspace(&app, may.project.id, body)?;
    let id = workspaces::create(&app.store, &may.caller.command()?, &new).await?;
    let workspace = workspaces::by_id(&app.store.pool, may.project.organization, id).await?;
    let workspace = workspace.ok_or(Denied::not_found("workspace"))?;
    Ok(created(view::detail(&app, workspace).await?))
}

async fn project_named(
    app: &App,
    tenant: Tenant,
    given: &str,
) -> Result<InProject<WorkspaceWrite>, ApiError> {
    let pool = &app.store.pool;
    let organization = tenant.organization.id;
    let project = match (given.parse::<ProjectId>(), given.parse::<Name>()) {
        (Ok(id), _) => projects::by_id(pool, organization, id).await?,
        (Err(_), Ok(name)) => projects::by_name(pool, organization, &name).await?,
        (Err(_), Err(_)) => None,
    };
    let project = project.ok_or_else(unknown_project)?;
    let may = InProject::of(app, tenant.caller, project).await;
    may.map_err(|denied| match denied {
        Denied::NotFound { .. } => unknown_project(),
        other => other.into(),
    })
}

/// One that is not there, or that the caller may not know of: told like any other field at fault.
fn unknown_project() -> ApiError {
    ApiError::Invalid {
        status: StatusCode::NOT_FOUND,
        code: "NOT_FOUND",
        field: "project".to_owned(),
        message: Denied::not_found("project").to_string(),
    }
}

fn check_name(name: &Name) -> Result<(), ApiError> {
    if name.is_kept_by_tofu() {
        return Err(ApiError::refused(
            "NAME_RESERVED",
            "name",
            "OpenTofu keeps the name `default` for itself; choose another",
        ));
    }
    Ok(())
}

fn new_workspace(
    app: &App,
    project: ProjectId,
    body: NewWorkspaceBody,
) -> Result<NewWorkspace, ApiError> {
    let region = body
        .region
        .unwrap_or_else(|| app.settings.default_region.clone());
    let approval_seconds = body.approval_seconds.unwrap_or(APPROVAL_SECONDS_DEFAULT);
    check(
        Some(&body.working_directory),
        Some(&region),
        Some(approval_seconds),
    )?;
    check_name(&body.name)?;
    Ok(NewWorkspace {
        project,
        name: body.name,
        tofu_version: body
            .tofu_version
            .unwrap_or(app.settings.default_tofu_version),
        working_directory: body.working_directory,
        region,
        platform: body
            .platform
            .unwrap_or(app.settings.default_platform)
            .as_str()
            .to_owned(),
        approval_seconds,
    })
}

fn check(
    working_directory: Option<&str>,
    region: Option<&str>,
    approval_seconds: Option<u32>,
) -> Result<(), ApiError> {
    const CODE: &str = "WORKSPACE_INVALID";
    if let Some(directory) = working_directory {
        plain_text(
            CODE,
            "working_directory",
            directory,
            0..=WORKING_DIRECTORY_CHARS_MAX,
        )?;
        if directory.starts_with('/') || directory.split('/').any(|part| part == "..") {
            let message =
                "`working_directory` is relative to the configuration's root and stays below it";
            return Err(ApiError::refused(CODE, "working_directory", message));
        }
    }
    if let Some(region) = region {
        plain_text(CODE, "region", region, 1..=REGION_CHARS_MAX)?;
    }
    if approval_seconds.is_some_and(|seconds| !APPROVAL_SECONDS.contains(&seconds)) {
        let message = "`approval_seconds` is 60 to 2592000";
        return Err(ApiError::refused(CODE, "approval_seconds", message));
    }
    Ok(())
}

/// Reads a workspace with its lock and its queue.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}", tag = "workspaces",
    params(("workspace" = String, Path)),
    responses((status = 200, body = Data<WorkspaceDetail>)))]
async fn workspace_read(
    State(app): State<App>,
    may: InWorkspace<WorkspaceRead>,
) -> Result<Data<WorkspaceDetail>, ApiError> {
    Ok(view::detail(&app, may.workspace).await?.into())
}

/// Changes a workspace's settings. Runs keep what they pinned.
#[utoipa::path(patch, path = "/v1/workspaces/{workspace}", tag = "workspaces",
    params(("workspace" = String, Path)), request_body = WorkspaceChangeBody,
    responses((status = 200, body = Data<WorkspaceDetail>)))]
async fn workspace_change(
    State(app): State<App>,
    may: InWorkspace<WorkspaceWrite>,
    Body(body): Body<WorkspaceChangeBody>,
) -> Result<Data<WorkspaceDetail>, ApiError> {
    let directory = body.working_directory.as_deref();
    check(directory, body.region.as_deref(), body.approval_seconds)?;
    body.name.as_ref().map(check_name).transpose()?;
    let change = WorkspaceChange {
        name: body.name,
        tofu_version: body.tofu_version,
        working_directory: body.working_directory,
        region: body.region,
        approval_seconds: body.approval_seconds,
    };
    let context = may.caller.command()?;
    let changed = workspaces::update(&app.store, &context, may.workspace.id, &change).await?;
    let changed = changed.ok_or(Denied::not_found("workspace"))?;
    Ok(view::detail(&app, changed).await?.into())
}
