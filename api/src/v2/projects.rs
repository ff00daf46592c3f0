//! Projects, for a `cloud` block that names one.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use stackship_domain::Name;
use stackship_store::records::projects::{self, Project};

use super::access::{May, Own};
use super::error::V2Error;
use super::wire::{
    Body, Document, Kind, ProjectAttributes, ProjectRequest, ProjectResource, Query, respond,
};
use crate::App;
use crate::auth::{InOrganization, InProject, ProjectRead, ProjectWrite};

/// Which projects are listed.
#[derive(Debug, Deserialize)]
pub struct ProjectQuery {
    /// The name that the client looks for; it never asks for all.
    #[serde(rename = "filter[names]")]
    names: Option<String>,
}

/// `GET organizations/{organization}/projects?filter[names]=…`
pub async fn list(
    State(app): State<App>,
    own: Own,
    Query(query): Query<ProjectQuery>,
) -> Result<Response, V2Error> {
    let mut found = Vec::new();
    if let Some(name) = query.names.and_then(|name| name.parse::<Name>().ok())
        && let Some(project) =
            projects::by_name(&app.store.pool, own.organization.id, &name).await?
        && let Ok(visible) = InProject::<ProjectRead>::of(&app, own.caller, project).await
    {
        found.push(resource(&visible.project));
    }
    Ok(respond(StatusCode::OK, &Document::list(found)))
}

/// `POST organizations/{organization}/projects`: the client creates an unknown project without asking.
pub async fn create(
    State(app): State<App>,
    May(may): May<InOrganization<ProjectWrite>>,
    Body(request): Body<ProjectRequest>,
) -> Result<Response, V2Error> {
    let name: Name =
        request.data.attributes.name.parse().map_err(|invalid| {
            V2Error::refused("invalid name", format!("The project: {invalid}."))
        })?;
    let id = projects::create(&app.store, &may.caller.command()?, &name).await?;
    let project = projects::by_id(&app.store.pool, may.organization.id, id)
        .await?
        .ok_or_else(|| V2Error::not_found("project"))?;
    Ok(respond(
        StatusCode::CREATED,
        &Document::of(resource(&project)),
    ))
}

fn resource(project: &Project) -> ProjectResource {
    let attributes = ProjectAttributes {
        name: project.name.to_string(),
    };
    ProjectResource::plain(Kind::Projects, project.id, attributes)
}
