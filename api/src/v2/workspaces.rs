//! Workspaces: read by almost every command, created by the first one.

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::Value;
use stackship_domain::Name;
use stackship_domain::ids::ProjectId;
use stackship_domain::run::RunKind;
use stackship_domain::workspace::Holder;
use stackship_projections::PAGE_ROWS_MAX;
use stackship_store::records::organizations::Organization;
use stackship_store::records::projects::{self, Project};
use stackship_store::records::workspaces::{self, NewWorkspace, Workspace};
use stackship_store::records::{Page, locks};

use super::access::{self, ByName, May, Own};
use super::bootstrap::listed;
use super::error::V2Error;
use super::mapping::{current_run, workspace_resource};
use super::settings;
use super::wire::{
    Body, Document, Kind, Named, ToOne, WorkspaceChangeRequest, WorkspaceRequest,
    WorkspaceRequestAttributes, WorkspaceResource, respond,
};
use crate::auth::{
    Anywhere, Caller, Denied, InProject, InWorkspace, OrRun, WorkspaceRead, WorkspaceWrite,
};
use crate::{APPROVAL_SECONDS_DEFAULT, App};

/// `GET organizations/{organization}/workspaces/{name}`
pub async fn read(
    State(app): State<App>,
    found: ByName<OrRun<WorkspaceRead>>,
) -> Result<Response, V2Error> {
    let InWorkspace {
        caller, workspace, ..
    } = &found.within;
    let resource = resource(&app, caller, &found.organization, workspace).await?;
    Ok(respond(StatusCode::OK, &Document::of(resource)))
}

/// A workspace with who holds its lock and whom others wait for.
pub async fn resource(
    app: &App,
    caller: &Caller,
    organization: &Organization,
    workspace: &Workspace,
) -> Result<WorkspaceResource, V2Error> {
    let status = app
        .views
        .workspace_status(organization.id, workspace.id)
        .await?;
    let rights = access::rights(app, caller, workspace).await?;
    let mut resource = workspace_resource(&organization.name, workspace, status.as_ref(), rights);
    let current = status.as_ref().and_then(current_run);
    resource.relationships.current_run =
        Some(current.map_or(ToOne::NONE, |run| ToOne::to(Kind::Runs, run)));
    Ok(resource)
}

/// `POST organizations/{organization}/workspaces`
///
/// Every command that opens the state answers a 404 with this, a viewer's as well. A hidden workspace
/// must look like a refused creation, so the right is asked for before the name is looked at.
pub async fn create(
    State(app): State<App>,
    own: Own,
    _may: MayCreate,
    Body(request): Body<WorkspaceRequest>,
) -> Result<Response, V2Error> {
    let Own {
        caller,
        organization,
    } = own;
    let project = project(&app, &caller, request.data.relationships.project.as_ref()).await?;
    let may = InProject::<WorkspaceWrite>::of(&app, caller, project)
        .await
        .map_err(not_created)?;
    let tags = request.data.relationships.tags;
    if tags.is_some_and(|tags| !tags.data.is_empty()) {
        return Err(tags_unsupported());
    }
    let WorkspaceRequestAttributes { name, others } = request.data.attributes;
    settings::check(&others, &settings::fresh(app.settings.default_tofu_version))?;
    let name: Name = name.parse().map_err(|invalid| {
        V2Error::refused("invalid name", format!("The workspace: {invalid}."))
    })?;
    if name.is_kept_by_tofu() {
        return Err(V2Error::refused(
            "invalid name",
            "OpenTofu keeps the workspace name `default` for itself. Choose another.",
        ));
    }
    let new = NewWorkspace {
        project: may.project.id,
        name,
        tofu_version: app.settings.default_tofu_version,
        working_directory: String::new(),
        region: app.settings.default_region.clone(),
        platform: app.settings.default_platform.as_str().to_owned(),
        approval_seconds: APPROVAL_SECONDS_DEFAULT,
    };
    let id = workspaces::create(&app.store, &may.caller.command()?, &new).await?;
    let workspace = workspaces::by_id(&app.store.pool, organization.id, id)
        .await?
        .ok_or_else(|| V2Error::not_found("workspace"))?;
    let resource = resource(&app, &may.caller, &organization, &workspace).await?;
    Ok(respond(StatusCode::CREATED, &Document::of(resource)))
}

/// The project that a workspace is to belong to: the one named, else the only one there is.
async fn project(app: &App, caller: &Caller, named: Option<&Named>) -> Result<Project, V2Error> {
    let pool = &app.store.pool;
    if let Some(id) = Named::id(named) {
        let id: ProjectId = id.parse().map_err(|_| V2Error::not_found("project"))?;
        let found = projects::by_id(pool, caller.organization(), id).await?;
        return found.ok_or_else(|| V2Error::not_found("project"));
    }
    let mut found = projects::list(pool, caller.organization(), &Page::new(None, 2)).await?;
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        _ => Err(V2Error::refused(
            "project unknown",
            "Name a project in the cloud block (workspaces { project = \"…\" }), or create the workspace through the \
             API first: the organization does not have exactly one project.",
        )),
    }
}

/// May create a workspace in one project or another.
pub struct MayCreate;

impl FromRequestParts<App> for MayCreate {
    type Rejection = V2Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, V2Error> {
        let may = Anywhere::<WorkspaceWrite>::from_request_parts(parts, app).await;
        may.map(|_| Self).map_err(not_created)
    }
}

fn not_created(denied: Denied) -> V2Error {
    match denied {
        Denied::Forbidden { .. } | Denied::NotFound { .. } | Denied::RunToken => {
            V2Error::forbidden(
                "workspace not created",
                "There is no such workspace that you can see, and creating one needs the permission workspace:write. Ask an \
             operator or an owner of the organization.",
            )
        }
        other => other.into(),
    }
}

/// `PATCH workspaces/{workspace}`: the client sends its own version after it created a workspace. There
/// is nothing that this call changes: what differs from how things are is refused.
pub async fn change(
    State(app): State<App>,
    May(may): May<InWorkspace<WorkspaceWrite>>,
    Body(request): Body<WorkspaceChangeRequest>,
) -> Result<Response, V2Error> {
    let organization = access::organization_of(&app, &may.caller).await?;
    let resource = resource(&app, &may.caller, &organization, &may.workspace).await?;
    let stands = serde_json::to_value(&resource.attributes).map_err(V2Error::internal)?;
    settings::check(&request.data.attributes, &stands)?;
    settings::check(&request.data.relationships, &Value::Null)?;
    Ok(respond(StatusCode::OK, &Document::of(resource)))
}

/// `GET workspaces/{workspace}/runs`: the unfinished ones that stand in line, newest first. The client
/// counts whatever is listed, finished speculative runs too.
pub async fn runs(
    State(app): State<App>,
    May(may): May<InWorkspace<WorkspaceRead>>,
) -> Result<Response, V2Error> {
    let unfinished = app
        .views
        .unfinished_of_workspace(may.workspace.organization, may.workspace.id, PAGE_ROWS_MAX)
        .await?;
    let runs = unfinished
        .iter()
        .filter(|row| row.kind == RunKind::PlanAndApply)
        .map(|row| listed(row, 0))
        .collect();
    Ok(respond(StatusCode::OK, &Document::list(runs)))
}

/// `POST workspaces/{workspace}/relationships/tags`
pub async fn add_tags(May(_may): May<InWorkspace<WorkspaceWrite>>) -> V2Error {
    tags_unsupported()
}

fn tags_unsupported() -> V2Error {
    V2Error::refused(
        "tags unsupported",
        "Workspaces have no tags here. Name one workspace in the cloud block: workspaces { name = \"…\" }.",
    )
}

/// `POST workspaces/{workspace}/actions/lock` and `…/unlock`
///
/// For a run this is an answer and nothing else: it holds the lock already, under its fence. A person
/// is told no before anything is done, as whatever follows would write state without a run.
pub async fn lock_action(
    State(app): State<App>,
    May(may): access::Reached<WorkspaceRead>,
) -> Result<Response, V2Error> {
    if may.caller.user().is_some() {
        let detail = person_may_not_write(&app, &may.workspace).await?;
        return Err(V2Error::forbidden("state is written by runs alone", detail));
    }
    let organization = access::organization_of(&app, &may.caller).await?;
    let resource = resource(&app, &may.caller, &organization, &may.workspace).await?;
    Ok(respond(StatusCode::OK, &Document::of(resource)))
}

/// Why a person neither locks nor writes, and what to do instead.
async fn person_may_not_write(app: &App, workspace: &Workspace) -> Result<String, V2Error> {
    let held = locks::lock_row(&app.store.pool, workspace.organization, workspace.id).await?;
    let held_by = match held.and_then(|lock| lock.holder) {
        Some(Holder::Run { run }) => format!(" At the moment {run} holds the lock."),
        Some(Holder::User { .. }) => " At the moment a person holds the lock.".to_owned(),
        None => String::new(),
    };
    Ok(format!(
        "This command changes or locks the state of {} from your machine. State here is changed by runs: use tofu plan and \
         tofu apply without TF_FORCE_LOCAL_BACKEND. To only read, add -lock=false.{held_by}",
        workspace.name
    ))
}
