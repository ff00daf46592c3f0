//! The table of workspace statuses.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};
use stackship_domain::Fence;
use stackship_domain::ids::{OrganizationId, RunId, WorkspaceId};
use stackship_domain::workspace::{Holder, StateHead};
use stackship_store::{DbTime, StoreError};

use super::{HeldLock, QueuePlace, WorkspaceStatus};
use crate::target::Target;
use crate::{ProjectionError, Views};

const TABLE: &str = "workspace_status";

/// The statuses of these workspaces, as far as there are any.
pub(crate) async fn load(
    connection: &mut PgConnection,
    target: Target,
    workspaces: impl Iterator<Item = &WorkspaceId>,
) -> Result<BTreeMap<WorkspaceId, WorkspaceStatus>, ProjectionError> {
    let ids: Vec<String> = workspaces.map(ToString::to_string).collect();
    let rows = sqlx::query(
        &target.sql("select * from {view}.workspace_status where workspace_id = any($1)"),
    )
    .bind(ids)
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|found| row(found).map(|status| (status.workspace, status)))
        .collect()
}

/// Writes the statuses of one batch.
pub(crate) async fn upsert(
    connection: &mut PgConnection,
    target: Target,
    statuses: &BTreeMap<WorkspaceId, WorkspaceStatus>,
) -> Result<(), ProjectionError> {
    let rows: Vec<&WorkspaceStatus> = statuses.values().collect();
    let heads = || rows.iter().map(|row| row.head.as_ref());
    let locks = || rows.iter().map(|row| row.lock.as_ref());
    let written = sqlx::query(&target.sql(
        "insert into {view}.workspace_status as old (workspace_id, organization_id, holder_run, holder_user, fence, \
             since, reason, queue, state_version_id, state_serial, state_lineage, state_digest, last_sequence, left_behind) \
         select workspace_id, organization_id, holder_run, holder_user, fence, since::timestamptz, reason, queue, \
             state_version_id, state_serial, state_lineage, state_digest, last_sequence, left_behind \
         from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], \
             $8::jsonb[], $9::text[], $10::bigint[], $11::text[], $12::text[], $13::bigint[], $14::jsonb[]) \
             as new (workspace_id, organization_id, holder_run, holder_user, fence, since, reason, queue, \
                 state_version_id, state_serial, state_lineage, state_digest, last_sequence, left_behind) \
         on conflict (workspace_id) do update set holder_run = excluded.holder_run, \
             holder_user = excluded.holder_user, fence = excluded.fence, since = excluded.since, \
             reason = excluded.reason, queue = excluded.queue, state_version_id = excluded.state_version_id, \
             state_serial = excluded.state_serial, state_lineage = excluded.state_lineage, \
             state_digest = excluded.state_digest, last_sequence = excluded.last_sequence, \
             left_behind = excluded.left_behind \
         where old.last_sequence < excluded.last_sequence",
    ))
    .bind(rows.iter().map(|row| row.workspace.to_string()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.organization.to_string()).collect::<Vec<_>>())
    .bind(locks().map(|lock| lock.and_then(holder_run)).collect::<Vec<_>>())
    .bind(locks().map(|lock| lock.and_then(holder_user)).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.fence.number()).collect::<Vec<_>>())
    .bind(locks().map(|lock| lock.map(|lock| lock.since.to_string())).collect::<Vec<_>>())
    .bind(locks().map(|lock| lock.and_then(|lock| lock.reason.clone())).collect::<Vec<_>>())
    .bind(documents(&rows, |row| &row.queue)?)
    .bind(heads().map(|head| head.map(|head| head.version.to_string())).collect::<Vec<_>>())
    .bind(heads().map(|head| head.map(|head| head.serial)).collect::<Vec<_>>())
    .bind(heads().map(|head| head.map(|head| head.lineage.clone())).collect::<Vec<_>>())
    .bind(heads().map(|head| head.map(|head| head.digest.to_string())).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.last_sequence).collect::<Vec<_>>())
    .bind(documents(&rows, |row| &row.left_behind)?)
    .execute(connection)
    .await?
    .rows_affected();
    ProjectionError::all_written(TABLE, rows.len(), written)
}

fn documents<T: Serialize>(
    rows: &[&WorkspaceStatus],
    part: impl Fn(&WorkspaceStatus) -> &T,
) -> Result<Vec<Value>, StoreError> {
    rows.iter()
        .map(|row| serde_json::to_value(part(row)).map_err(StoreError::from))
        .collect()
}

fn holder_run(lock: &HeldLock) -> Option<String> {
    match lock.holder {
        Holder::Run { run } => Some(run.to_string()),
        Holder::User { .. } => None,
    }
}

fn holder_user(lock: &HeldLock) -> Option<String> {
    match lock.holder {
        Holder::User { user } => Some(user.to_string()),
        Holder::Run { .. } => None,
    }
}

impl Views {
    /// The status of a workspace of this organization; `None` when nothing has happened to it yet.
    pub async fn workspace_status(
        &self,
        organization: OrganizationId,
        workspace: WorkspaceId,
    ) -> Result<Option<WorkspaceStatus>, ProjectionError> {
        let found = sqlx::query(
            "select * from view.workspace_status where organization_id = $1 and workspace_id = $2",
        )
        .bind(organization.to_string())
        .bind(workspace.to_string())
        .fetch_optional(&self.pool)
        .await?;
        found.as_ref().map(row).transpose()
    }

    /// Where a run of this organization waits; `None` when it does not wait.
    pub async fn queue_position(
        &self,
        organization: OrganizationId,
        run: RunId,
    ) -> Result<Option<QueuePlace>, ProjectionError> {
        let found = sqlx::query(
            "select status.* from view.run_inventory as run join view.workspace_status as status \
             using (workspace_id) where run.organization_id = $1 and run.run_id = $2 \
             and status.organization_id = $1",
        )
        .bind(organization.to_string())
        .bind(run.to_string())
        .fetch_optional(&self.pool)
        .await?;
        let status = found.as_ref().map(row).transpose()?;
        Ok(status.and_then(|status| status.place_of(run)))
    }
}

fn row(row: &PgRow) -> Result<WorkspaceStatus, ProjectionError> {
    let workspace: String = row.try_get("workspace_id")?;
    let inconsistent = || ProjectionError::row(TABLE, &workspace);
    let organization: String = row.try_get("organization_id")?;
    let queue: Value = row.try_get("queue")?;
    let left_behind: Value = row.try_get("left_behind")?;
    Ok(WorkspaceStatus {
        workspace: workspace.parse().map_err(|_| inconsistent())?,
        organization: organization.parse().map_err(|_| inconsistent())?,
        lock: lock(row, &workspace)?,
        fence: Fence::from_stored(row.try_get("fence")?),
        queue: serde_json::from_value(queue).map_err(|_| inconsistent())?,
        head: head(row, &workspace)?,
        left_behind: serde_json::from_value(left_behind).map_err(|_| inconsistent())?,
        last_sequence: row.try_get("last_sequence")?,
    })
}

fn lock(row: &PgRow, key: &str) -> Result<Option<HeldLock>, ProjectionError> {
    let inconsistent = || ProjectionError::row(TABLE, key);
    let run: Option<String> = row.try_get("holder_run")?;
    let user: Option<String> = row.try_get("holder_user")?;
    let holder = match (run, user) {
        (None, None) => return Ok(None),
        (Some(run), None) => Holder::Run {
            run: run.parse().map_err(|_| inconsistent())?,
        },
        (None, Some(user)) => Holder::User {
            user: user.parse().map_err(|_| inconsistent())?,
        },
        (Some(_), Some(_)) => return Err(inconsistent()),
    };
    Ok(Some(HeldLock {
        holder,
        since: row.try_get::<DbTime, _>("since")?.get(),
        reason: row.try_get("reason")?,
    }))
}

fn head(row: &PgRow, key: &str) -> Result<Option<StateHead>, ProjectionError> {
    let inconsistent = || ProjectionError::row(TABLE, key);
    let Some(version) = row.try_get::<Option<String>, _>("state_version_id")? else {
        return Ok(None);
    };
    let digest: String = row.try_get("state_digest")?;
    Ok(Some(StateHead {
        version: version.parse().map_err(|_| inconsistent())?,
        serial: row.try_get("state_serial")?,
        lineage: row.try_get("state_lineage")?,
        digest: digest.parse().map_err(|_| inconsistent())?,
    }))
}
