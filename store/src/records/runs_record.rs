//! What runs pin, as rows: written by the log's own trigger, only read here.

use sqlx::PgPool;
use sqlx::postgres::PgRow;
use stackship_domain::ids::{
    ConfigurationVersionId, InputSnapshotId, OrganizationId, ProjectId, RunId, WorkspaceId,
};
use stackship_domain::run::{Pins, PolicyPins, RunKind};
use stackship_domain::{Fence, Timestamp};

use crate::StoreError;
use crate::columns::Columns;

/// What a run pins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// The tenant.
    pub organization: OrganizationId,
    /// The project of the workspace at creation.
    pub project: ProjectId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// What the run may become.
    pub kind: RunKind,
    /// The uploaded source.
    pub configuration_version: ConfigurationVersionId,
    /// The pinned inputs.
    pub input_snapshot: InputSnapshotId,
    /// What cannot change any more.
    pub pins: Pins,
    /// The fence of the lock it got; absent before, and for a speculative run.
    pub fence: Option<Fence>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// The organization's run with this id.
pub async fn by_id(
    pool: &PgPool,
    organization: OrganizationId,
    id: RunId,
) -> Result<Option<RunRecord>, StoreError> {
    let row = sqlx::query("select * from record.runs where organization_id = $1 and run_id = $2")
        .bind(organization.to_string())
        .bind(id.to_string())
        .fetch_optional(pool)
        .await?;
    row.as_ref().map(parse).transpose()
}

/// The run that was created from this configuration version; there is at most one.
pub async fn run_of_configuration(
    pool: &PgPool,
    organization: OrganizationId,
    configuration_version: ConfigurationVersionId,
) -> Result<Option<RunId>, StoreError> {
    let row = sqlx::query("select run_id from record.runs where organization_id = $1 and configuration_version_id = $2")
        .bind(organization.to_string())
        .bind(configuration_version.to_string())
        .fetch_optional(pool)
        .await?;
    row.map(|row| Columns::new(&row, "record.runs", "run_id")?.parsed("run_id"))
        .transpose()
}

/// Runs that have not ended, in id order after `after`, at most `limit`.
pub async fn unfinished(
    pool: &PgPool,
    after: Option<RunId>,
    limit: i64,
) -> Result<Vec<RunId>, StoreError> {
    let runs: Vec<String> = sqlx::query_scalar(
        "select run_id from record.runs where ended_at is null and run_id > $1 order by run_id limit $2",
    )
    .bind(after.map_or_else(String::new, |run| run.to_string()))
    .bind(limit)
    .fetch_all(pool)
    .await?;
    ids(&runs)
}

/// Unfinished speculative runs of the workspace and ref that are older than `newer`, at most `limit`.
pub async fn older_of_ref(
    pool: &PgPool,
    workspace: WorkspaceId,
    git_ref: &str,
    newer: RunId,
    limit: i64,
) -> Result<Vec<RunId>, StoreError> {
    let runs: Vec<String> = sqlx::query_scalar(
        "select run_id from record.runs where workspace_id = $1 and git_ref = $2 and run_id < $3 \
             and kind = 'speculative' and ended_at is null \
         order by run_id limit $4",
    )
    .bind(workspace.to_string())
    .bind(git_ref)
    .bind(newer.to_string())
    .bind(limit)
    .fetch_all(pool)
    .await?;
    ids(&runs)
}

/// Whether the run has ended.
pub async fn has_ended(pool: &PgPool, run: RunId) -> Result<bool, StoreError> {
    let ended: Option<bool> =
        sqlx::query_scalar("select ended_at is not null from record.runs where run_id = $1")
            .bind(run.to_string())
            .fetch_optional(pool)
            .await?;
    Ok(ended == Some(true))
}

/// Ids as they are stored.
pub(crate) fn ids(stored: &[String]) -> Result<Vec<RunId>, StoreError> {
    stored
        .iter()
        .map(|run| {
            run.parse()
                .map_err(|_| StoreError::inconsistent("record.runs", "run_id", run))
        })
        .collect()
}

fn policies(columns: &Columns<'_>) -> Result<PolicyPins, StoreError> {
    let pins = PolicyPins::new(columns.document("policies")?);
    if pins.digest() == columns.parsed("policies_digest")? {
        Ok(pins)
    } else {
        Err(columns.inconsistent("policies_digest"))
    }
}

fn parse(row: &PgRow) -> Result<RunRecord, StoreError> {
    let columns = Columns::new(row, "record.runs", "run_id")?;
    Ok(RunRecord {
        id: columns.parsed("run_id")?,
        organization: columns.parsed("organization_id")?,
        project: columns.parsed("project_id")?,
        workspace: columns.parsed("workspace_id")?,
        kind: columns.member("kind", RunKind::ALL, RunKind::as_str)?,
        configuration_version: columns.parsed("configuration_version_id")?,
        input_snapshot: columns.parsed("input_snapshot_id")?,
        pins: Pins {
            configuration: columns.parsed("configuration_digest")?,
            inputs: columns.parsed("inputs_digest")?,
            tofu_version: columns.parsed("tofu_version")?,
            region: columns.plain("region")?,
            platform: columns.plain("platform")?,
            policies: policies(&columns)?,
        },
        fence: columns
            .plain::<Option<i64>>("fence")?
            .map(Fence::from_stored),
        created_at: columns.time("created_at")?,
    })
}
