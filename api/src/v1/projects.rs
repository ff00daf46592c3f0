//! Projects: groups of workspaces.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use stackship_domain::ids::ProjectId;
use stackship_domain::{Name, Timestamp};
use stackship_store::records::projects::{self, Project};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Data, List, created};
use super::body::{Body, PageQuery, Query};
use super::schema;
use crate::auth::{Denied, InOrganization, InProject, ProjectRead, ProjectWrite};
use crate::{ApiError, App};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(project_list, project_create))
        .routes(routes!(project_read))
}

/// A group of workspaces.
#[derive(Serialize, ToSchema)]
struct ProjectView {
    /// Its id.
    #[schema(value_type = String)]
    id: ProjectId,
    /// Its name, unique in the organization.
    #[schema(value_type = String)]
    name: Name,
    /// When it was created.
    #[schema(schema_with = schema::time)]
    created_at: Timestamp,
}

impl From<Project> for ProjectView {
    fn from(project: Project) -> Self {
        Self {
            id: project.id,
            name: project.name,
            created_at: project.created_at,
        }
    }
}

/// A project to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewProject {
    /// Letters, digits, `-` and `_`; begins with a letter or a digit.
    #[schema(value_type = String)]
    name: Name,
}

/// Lists an organization's projects, oldest first.
#[utoipa::path(get, path = "/v1/organizations/{organization}/projects", tag = "projects",
    params(("organization" = String, Path), PageQuery),
    responses((status = 200, body = List<ProjectView>)))]
async fn project_list(
    State(app): State<App>,
    may: InOrganization<ProjectRead>,
    Query(query): Query<PageQuery>,
) -> Result<List<ProjectView>, ApiError> {
    let page = query.page(|cursor| cursor.parse::<ProjectId>().is_ok())?;
    let rows = projects::list(&app.store.pool, may.organization.id, &page).await?;
    let next = query.next(&rows, |project| project.id.to_string());
    Ok(List::new(rows.into_iter().map(Into::into).collect(), next))
}

/// Creates a project.
#[utoipa::path(post, path = "/v1/organizations/{organization}/projects", tag = "projects",
    params(("organization" = String, Path)), request_body = NewProject,
    responses((status = 201, body = Data<ProjectView>)))]
async fn project_create(
    State(app): State<App>,
    may: InOrganization<ProjectWrite>,
    Body(new): Body<NewProject>,
) -> Result<(StatusCode, Data<ProjectView>), ApiError> {
    let id = projects::create(&app.store, &may.caller.command()?, &new.name).await?;
    let project = projects::by_id(&app.store.pool, may.organization.id, id).await?;
    let project = project.ok_or(Denied::not_found("project"))?;
    Ok(created(project.into()))
}

/// Reads a project.
#[utoipa::path(get, path = "/v1/projects/{project}", tag = "projects",
    params(("project" = String, Path)),
    responses((status = 200, body = Data<ProjectView>)))]
async fn project_read(may: InProject<ProjectRead>) -> Data<ProjectView> {
    ProjectView::from(may.project).into()
}
