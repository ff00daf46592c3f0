//! The row that late writes are checked against: who holds a workspace's lock. It follows the log.

use sqlx::PgPool;
use stackship_domain::ids::{OrganizationId, RunId, WorkspaceId};
use stackship_domain::workspace::Holder;
use stackship_domain::{Fence, Timestamp};

use super::runs_record;
use crate::StoreError;
use crate::columns::Columns;

/// A workspace's lock, held or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRow {
    /// The fence of the newest acquisition.
    pub fence: Fence,
    /// Who holds the lock.
    pub holder: Option<Holder>,
    /// Why, in a person's words.
    pub reason: Option<String>,
    /// Since when it has been so.
    pub since: Timestamp,
}

/// The workspace's lock; `None` when nobody has ever held it.
pub async fn lock_row(
    pool: &PgPool,
    organization: OrganizationId,
    workspace: WorkspaceId,
) -> Result<Option<LockRow>, StoreError> {
    let row = sqlx::query(
        "select held.workspace_id, held.fence, held.run_id, held.user_id, held.reason, held.since \
         from record.workspace_locks held join record.workspaces using (workspace_id) \
         where organization_id = $1 and held.workspace_id = $2",
    )
    .bind(organization.to_string())
    .bind(workspace.to_string())
    .fetch_optional(pool)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let columns = Columns::new(&row, "record.workspace_locks", "workspace_id")?;
    let holder = match (
        columns.parsed_or_null("run_id")?,
        columns.parsed_or_null("user_id")?,
    ) {
        (Some(run), None) => Some(Holder::Run { run }),
        (None, Some(user)) => Some(Holder::User { user }),
        (None, None) => None,
        (Some(_), Some(_)) => return Err(columns.inconsistent("user_id")),
    };
    Ok(Some(LockRow {
        fence: Fence::from_stored(columns.plain("fence")?),
        holder,
        reason: columns.plain("reason")?,
        since: columns.time("since")?,
    }))
}

/// Runs that have ended and still hold a lock, at most `limit`: whoever ended them did not get to it.
pub async fn held_by_ended(pool: &PgPool, limit: i64) -> Result<Vec<RunId>, StoreError> {
    let runs: Vec<String> = sqlx::query_scalar(
        "select run_id from record.workspace_locks join record.runs using (run_id) \
         where ended_at is not null order by since limit $1",
    )
    .bind(limit)
    .fetch_all(pool)
    .await?;
    runs_record::ids(&runs)
}
