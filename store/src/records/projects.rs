//! Projects: groups of workspaces.

use serde_json::json;
use sqlx::PgPool;
use sqlx::postgres::PgRow;
use stackship_domain::ids::{OrganizationId, ProjectId};
use stackship_domain::{Name, Timestamp};

use super::{Page, commit, tell};
use crate::columns::Columns;
use crate::log::Context;
use crate::{Store, StoreError, clock};

/// A group of workspaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its id.
    pub id: ProjectId,
    /// The tenant.
    pub organization: OrganizationId,
    /// Its name, unique in the organization.
    pub name: Name,
    /// When it was created.
    pub created_at: Timestamp,
}

/// Creates a project.
pub async fn create(
    store: &Store,
    context: &Context,
    name: &Name,
) -> Result<ProjectId, StoreError> {
    let id: ProjectId = clock::fresh();
    let mut transaction = store.pool.begin().await?;
    sqlx::query(
        "insert into record.projects (project_id, organization_id, name) values ($1, $2, $3)",
    )
    .bind(id.to_string())
    .bind(context.organization.to_string())
    .bind(name.as_str())
    .execute(&mut *transaction)
    .await?;
    tell(
        &mut transaction,
        context,
        "project_created",
        json!({"project": id, "name": name}),
    )
    .await?;
    commit(store, transaction).await?;
    Ok(id)
}

/// The organization's project with this id.
pub async fn by_id(
    pool: &PgPool,
    organization: OrganizationId,
    id: ProjectId,
) -> Result<Option<Project>, StoreError> {
    let row = sqlx::query(
        "select project_id, organization_id, name, created_at from record.projects \
         where organization_id = $1 and project_id = $2",
    )
    .bind(organization.to_string())
    .bind(id.to_string())
    .fetch_optional(pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// The organization's project with this name.
pub async fn by_name(
    pool: &PgPool,
    organization: OrganizationId,
    name: &Name,
) -> Result<Option<Project>, StoreError> {
    let row = sqlx::query(
        "select project_id, organization_id, name, created_at from record.projects \
         where organization_id = $1 and name = $2",
    )
    .bind(organization.to_string())
    .bind(name.as_str())
    .fetch_optional(pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// The organization's projects, oldest first.
pub async fn list(
    pool: &PgPool,
    organization: OrganizationId,
    page: &Page,
) -> Result<Vec<Project>, StoreError> {
    let rows = sqlx::query(
        "select project_id, organization_id, name, created_at from record.projects \
         where organization_id = $1 and project_id collate \"C\" > $2 order by project_id collate \"C\" limit $3",
    )
    .bind(organization.to_string())
    .bind(page.after())
    .bind(page.limit())
    .fetch_all(pool)
    .await?;
    rows.iter().map(parse).collect()
}

fn parse(row: &PgRow) -> Result<Project, StoreError> {
    let columns = Columns::new(row, "record.projects", "project_id")?;
    Ok(Project {
        id: columns.parsed("project_id")?,
        organization: columns.parsed("organization_id")?,
        name: columns.parsed("name")?,
        created_at: columns.time("created_at")?,
    })
}
