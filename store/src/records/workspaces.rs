//! Workspaces: the units of state, and their settings. The lock and the state follow the log.

use std::collections::HashMap;

use serde_json::json;
use sqlx::PgPool;
use sqlx::postgres::PgRow;
use stackship_domain::ids::{OrganizationId, ProjectId, StateVersionId, WorkspaceId};
use stackship_domain::{Name, Timestamp, TofuVersion};

use super::{Page, commit, tell};
use crate::columns::Columns;
use crate::log::Context;
use crate::{Store, StoreError, clock};

/// A workspace to be created. There is no automatic apply to ask for.
#[derive(Debug, Clone)]
pub struct NewWorkspace {
    /// The project it belongs to.
    pub project: ProjectId,
    /// Its name, unique in the organization.
    pub name: Name,
    /// The exact OpenTofu release of its runs.
    pub tofu_version: TofuVersion,
    /// Directory below the configuration's root in which OpenTofu runs.
    pub working_directory: String,
    /// Where its runs execute.
    pub region: String,
    /// On what its runs execute: `linux_amd64`.
    pub platform: String,
    /// How long a plan waits for a decision.
    pub approval_seconds: u32,
}

/// What is to be different; everything else stays.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceChange {
    /// The name.
    pub name: Option<Name>,
    /// The exact OpenTofu release.
    pub tofu_version: Option<TofuVersion>,
    /// The directory in which OpenTofu runs.
    pub working_directory: Option<String>,
    /// Where runs execute.
    pub region: Option<String>,
    /// How long a plan waits for a decision.
    pub approval_seconds: Option<u32>,
}

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// The tenant.
    pub organization: OrganizationId,
    /// The project it belongs to.
    pub project: ProjectId,
    /// Its name.
    pub name: Name,
    /// The exact OpenTofu release of its runs.
    pub tofu_version: TofuVersion,
    /// Directory below the configuration's root in which OpenTofu runs.
    pub working_directory: String,
    /// Where its runs execute.
    pub region: String,
    /// On what its runs execute.
    pub platform: String,
    /// How long a plan waits for a decision.
    pub approval_seconds: u32,
    /// Its published state.
    pub current_state_version: Option<StateVersionId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

const BY_ID: &str =
    "select * from record.workspaces where organization_id = $1 and workspace_id = $2";
const BY_NAME: &str = "select * from record.workspaces where organization_id = $1 and name = $2";

/// Creates a workspace in a project of the organization.
pub async fn create(
    store: &Store,
    context: &Context,
    new: &NewWorkspace,
) -> Result<WorkspaceId, StoreError> {
    let id: WorkspaceId = clock::fresh();
    let mut transaction = store.pool.begin().await?;
    sqlx::query(
        "insert into record.workspaces (workspace_id, organization_id, project_id, name, tofu_version, \
             working_directory, region, platform, approval_seconds) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(id.to_string())
    .bind(context.organization.to_string())
    .bind(new.project.to_string())
    .bind(new.name.as_str())
    .bind(new.tofu_version.to_string())
    .bind(&new.working_directory)
    .bind(&new.region)
    .bind(&new.platform)
    .bind(seconds(new.approval_seconds))
    .execute(&mut *transaction)
    .await?;
    let detail = json!({
        "workspace": id, "project": new.project, "name": new.name, "tofu_version": new.tofu_version,
        "working_directory": new.working_directory, "region": new.region, "platform": new.platform,
        "approval_seconds": new.approval_seconds,
    });
    tell(&mut transaction, context, "workspace_created", detail).await?;
    commit(store, transaction).await?;
    Ok(id)
}

/// The organization's workspace with this id.
pub async fn by_id(
    pool: &PgPool,
    organization: OrganizationId,
    id: WorkspaceId,
) -> Result<Option<Workspace>, StoreError> {
    let row = sqlx::query(BY_ID)
        .bind(organization.to_string())
        .bind(id.to_string())
        .fetch_optional(pool)
        .await?;
    row.as_ref().map(parse).transpose()
}

/// The organization's workspace with this name.
pub async fn by_name(
    pool: &PgPool,
    organization: OrganizationId,
    name: &Name,
) -> Result<Option<Workspace>, StoreError> {
    let row = sqlx::query(BY_NAME)
        .bind(organization.to_string())
        .bind(name.as_str())
        .fetch_optional(pool)
        .await?;
    row.as_ref().map(parse).transpose()
}

/// The names of these workspaces of the organization; unknown ones are left out.
pub async fn names(
    pool: &PgPool,
    organization: OrganizationId,
    ids: &[WorkspaceId],
) -> Result<HashMap<WorkspaceId, Name>, StoreError> {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let rows = sqlx::query(
        "select workspace_id, name from record.workspaces \
         where organization_id = $1 and workspace_id = any($2)",
    )
    .bind(organization.to_string())
    .bind(ids)
    .fetch_all(pool)
    .await?;
    let name = |row: &PgRow| {
        let columns = Columns::new(row, "record.workspaces", "workspace_id")?;
        Ok((columns.parsed("workspace_id")?, columns.parsed("name")?))
    };
    rows.iter().map(name).collect()
}

/// The organization's workspaces, oldest first; those of one project when `project` is given.
pub async fn list(
    pool: &PgPool,
    organization: OrganizationId,
    project: Option<ProjectId>,
    page: &Page,
) -> Result<Vec<Workspace>, StoreError> {
    let rows = sqlx::query(
        "select * from record.workspaces \
         where organization_id = $1 and ($2::text is null or project_id = $2) and workspace_id collate \"C\" > $3 \
         order by workspace_id collate \"C\" limit $4",
    )
    .bind(organization.to_string())
    .bind(project.map(|project| project.to_string()))
    .bind(page.after())
    .bind(page.limit())
    .fetch_all(pool)
    .await?;
    rows.iter().map(parse).collect()
}

/// Changes a workspace's settings; `None` when the organization has no such workspace. Runs keep what
/// they pinned.
pub async fn update(
    store: &Store,
    context: &Context,
    id: WorkspaceId,
    change: &WorkspaceChange,
) -> Result<Option<Workspace>, StoreError> {
    let mut transaction = store.pool.begin().await?;
    let row = sqlx::query(
        "update record.workspaces set name = coalesce($3, name), tofu_version = coalesce($4, tofu_version), \
             working_directory = coalesce($5, working_directory), region = coalesce($6, region), \
             approval_seconds = coalesce($7, approval_seconds), updated_at = clock_timestamp() \
         where organization_id = $1 and workspace_id = $2 returning *",
    )
    .bind(context.organization.to_string())
    .bind(id.to_string())
    .bind(change.name.as_ref().map(Name::as_str))
    .bind(change.tofu_version.map(|version| version.to_string()))
    .bind(&change.working_directory)
    .bind(&change.region)
    .bind(change.approval_seconds.map(seconds))
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let detail = json!({
        "workspace": id, "name": change.name, "tofu_version": change.tofu_version,
        "working_directory": change.working_directory, "region": change.region,
        "approval_seconds": change.approval_seconds,
    });
    tell(&mut transaction, context, "workspace_changed", detail).await?;
    commit(store, transaction).await?;
    parse(&row).map(Some)
}

/// Where a workspace belongs. Only for callers whose token already names the workspace.
pub async fn locate(
    pool: &PgPool,
    id: WorkspaceId,
) -> Result<Option<(OrganizationId, ProjectId)>, StoreError> {
    let row = sqlx::query(
        "select workspace_id, organization_id, project_id from record.workspaces where workspace_id = $1",
    )
    .bind(id.to_string())
    .fetch_optional(pool)
    .await?;
    let place = |row: PgRow| {
        let columns = Columns::new(&row, "record.workspaces", "workspace_id")?;
        Ok((
            columns.parsed("organization_id")?,
            columns.parsed("project_id")?,
        ))
    };
    row.map(place).transpose()
}

/// More seconds than the column holds are refused by its bounds like any that are too many.
fn seconds(seconds: u32) -> i32 {
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

fn parse(row: &PgRow) -> Result<Workspace, StoreError> {
    let columns = Columns::new(row, "record.workspaces", "workspace_id")?;
    let seconds: i32 = columns.plain("approval_seconds")?;
    Ok(Workspace {
        id: columns.parsed("workspace_id")?,
        organization: columns.parsed("organization_id")?,
        project: columns.parsed("project_id")?,
        name: columns.parsed("name")?,
        tofu_version: columns.parsed("tofu_version")?,
        working_directory: columns.plain("working_directory")?,
        region: columns.plain("region")?,
        platform: columns.plain("platform")?,
        approval_seconds: u32::try_from(seconds)
            .map_err(|_| columns.inconsistent("approval_seconds"))?,
        current_state_version: columns.parsed_or_null("current_state_version_id")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
    })
}
