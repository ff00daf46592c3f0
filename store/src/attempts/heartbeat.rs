//! Keeping a lease, and asking its holder to stop.

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use stackship_domain::Timestamp;
use stackship_domain::ids::{AttemptId, RunId};

use crate::notify::{self, Topic};
use crate::{DbTime, Store, StoreError, Violation};

/// What a heartbeat found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeartbeatOutcome {
    /// The lease goes on.
    Alive {
        /// Until when.
        expires_at: Timestamp,
        /// Whether somebody asked the attempt to stop.
        cancel: bool,
    },
    /// The lease is over, or its fence is stale.
    Lost,
}

/// Renews a lease. `tofu_started` marks that the attempt can no longer be handed back; the database
/// refuses the mark once somebody asked the attempt to stop.
pub async fn heartbeat(
    store: &Store,
    attempt: AttemptId,
    tofu_started: bool,
    lease_seconds: u32,
) -> Result<HeartbeatOutcome, StoreError> {
    let row = sqlx::query(
        "update record.attempts set lease_expires_at = clock_timestamp() + make_interval(secs => $2), \
             tofu_started_at = case when $3 and tofu_started_at is null and cancel_requested_at is null \
                 then clock_timestamp() else tofu_started_at end \
         where attempt_id = $1 and closed_at is null and runner_id is not null and lease_expires_at > clock_timestamp() \
         returning lease_expires_at, cancel_requested_at is not null as cancel",
    )
    .bind(attempt.to_string())
    .bind(f64::from(lease_seconds))
    .bind(tofu_started)
    .fetch_optional(&store.pool)
    .await;
    match row.map_err(StoreError::from) {
        Ok(row) => heartbeat_outcome(row.as_ref()),
        Err(StoreError::Refused(Violation::StaleFence)) => Ok(HeartbeatOutcome::Lost),
        Err(error) => Err(error),
    }
}

/// What a heartbeat would find now; renews nothing.
pub async fn look(store: &Store, attempt: AttemptId) -> Result<HeartbeatOutcome, StoreError> {
    let row = sqlx::query(
        "select lease_expires_at, cancel_requested_at is not null as cancel from record.attempts \
         where attempt_id = $1 and closed_at is null and runner_id is not null and lease_expires_at > clock_timestamp()",
    )
    .bind(attempt.to_string())
    .fetch_optional(&store.pool)
    .await?;
    heartbeat_outcome(row.as_ref())
}

fn heartbeat_outcome(row: Option<&PgRow>) -> Result<HeartbeatOutcome, StoreError> {
    row.map_or(Ok(HeartbeatOutcome::Lost), |row| {
        Ok(HeartbeatOutcome::Alive {
            expires_at: row.try_get::<DbTime, _>("lease_expires_at")?.get(),
            cancel: row.try_get("cancel")?,
        })
    })
}

/// Asks the run's leased attempt to stop; the heartbeat that waits for an order tells it. Asking again
/// changes nothing, and nudges nobody.
pub async fn request_cancel(store: &Store, run: RunId) -> Result<(), StoreError> {
    let asked = sqlx::query(
        "update record.attempts set cancel_requested_at = clock_timestamp() \
         where run_id = $1 and closed_at is null and runner_id is not null and cancel_requested_at is null",
    )
    .bind(run.to_string())
    .execute(&store.pool)
    .await?
    .rows_affected();
    if asked == 0 {
        return Ok(());
    }
    notify::send(&store.pool, Topic::Attempts, &run.to_string()).await
}
