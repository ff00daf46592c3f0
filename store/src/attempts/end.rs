//! The ways an attempt is closed; it is closed once.

use stackship_domain::ids::{AttemptId, RunId};

use crate::notify::{self, Topic};
use crate::records::runs_record;
use crate::{Store, StoreError, Violation};

/// What reporting a result found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultOutcome {
    /// It was recorded.
    Recorded,
    /// The same result was recorded before.
    Repeated,
    /// The lease is over, or its fence is stale, or another result is recorded.
    Lost,
}

/// Records how a phase ended and closes the attempt, once.
pub async fn record_result(
    store: &Store,
    attempt: AttemptId,
    result: &serde_json::Value,
) -> Result<ResultOutcome, StoreError> {
    let updated = sqlx::query_scalar::<_, String>(
        "update record.attempts set result = $2, result_at = clock_timestamp(), closed_at = clock_timestamp(), \
             close_cause = 'result' \
         where attempt_id = $1 and closed_at is null and runner_id is not null and lease_expires_at > clock_timestamp() \
         returning run_id",
    )
    .bind(attempt.to_string())
    .bind(result)
    .fetch_optional(&store.pool)
    .await;
    match updated.map_err(StoreError::from) {
        Ok(Some(run)) => {
            notify::send(&store.pool, Topic::Attempts, &run).await?;
            Ok(ResultOutcome::Recorded)
        }
        Ok(None) => repeated(store, attempt, result).await,
        Err(StoreError::Refused(Violation::StaleFence)) => Ok(ResultOutcome::Lost),
        Err(error) => Err(error),
    }
}

async fn repeated(
    store: &Store,
    attempt: AttemptId,
    result: &serde_json::Value,
) -> Result<ResultOutcome, StoreError> {
    let same: Option<bool> =
        sqlx::query_scalar("select result = $2 from record.attempts where attempt_id = $1")
            .bind(attempt.to_string())
            .bind(result)
            .fetch_optional(&store.pool)
            .await?
            .flatten();
    Ok(if same == Some(true) {
        ResultOutcome::Repeated
    } else {
        ResultOutcome::Lost
    })
}

/// Closes an attempt whose runner gives it back; not once `tofu apply` was about to start. Returns
/// whether it was given back.
pub async fn hand_back(store: &Store, attempt: AttemptId) -> Result<bool, StoreError> {
    let run: Option<String> = sqlx::query_scalar(
        "update record.attempts set closed_at = clock_timestamp(), close_cause = 'handed_back' \
         where attempt_id = $1 and closed_at is null and runner_id is not null and tofu_started_at is null \
         returning run_id",
    )
    .bind(attempt.to_string())
    .fetch_optional(&store.pool)
    .await?;
    if let Some(run) = &run {
        notify::send(&store.pool, Topic::Attempts, run).await?;
    }
    Ok(run.is_some())
}

/// Closes offers of a run that nobody leased.
pub async fn withdraw(store: &Store, run: RunId) -> Result<(), StoreError> {
    sqlx::query(
        "update record.attempts set closed_at = clock_timestamp(), close_cause = 'withdrawn' \
         where run_id = $1 and closed_at is null and runner_id is null",
    )
    .bind(run.to_string())
    .execute(&store.pool)
    .await?;
    Ok(())
}

/// Closes a lease whose run would not take it; the runner never learns of it.
pub async fn drop_lease(store: &Store, attempt: AttemptId) -> Result<(), StoreError> {
    sqlx::query(
        "update record.attempts set closed_at = clock_timestamp(), close_cause = 'withdrawn' \
         where attempt_id = $1 and closed_at is null",
    )
    .bind(attempt.to_string())
    .execute(&store.pool)
    .await?;
    Ok(())
}

/// Closes leases that ran out, at most `limit`, and names their runs. By the time of the statement,
/// which an index can be asked about: by the clock, every live lease would be read.
pub async fn expire(store: &Store, limit: i64) -> Result<Vec<RunId>, StoreError> {
    let runs: Vec<String> = sqlx::query_scalar(
        "update record.attempts set closed_at = clock_timestamp(), close_cause = 'lease_expired' \
         where attempt_id in ( \
             select attempt_id from record.attempts \
             where runner_id is not null and closed_at is null and lease_expires_at <= statement_timestamp() \
             order by lease_expires_at for update skip locked limit $1) \
         returning run_id",
    )
    .bind(limit)
    .fetch_all(&store.pool)
    .await?;
    runs_record::ids(&runs)
}
