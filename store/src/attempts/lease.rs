//! Handing an offer to a runner, with the two secrets that open it.

use stackship_domain::ids::RunnerId;

use super::row::{AttemptRow, COLUMNS, parse};
use super::tokens::{LEASE_TOKEN_PREFIX, RUN_TOKEN_PREFIX};
use crate::records::Secret;
use crate::{Store, StoreError};

/// A fresh lease: the attempt and its two secrets, in clear this once.
#[derive(Clone)]
pub struct LeasedAttempt {
    /// The attempt.
    pub attempt: AttemptRow,
    /// Opens the attempt's endpoints.
    pub lease_token: String,
    /// Opens the phase's part of `/api/v2`.
    pub run_token: String,
}

/// Leases the oldest offer that fits, applies before plans; `None` when there is none. An offer whose
/// fence has passed is nobody's, and must not stand before the others.
pub async fn lease_next(
    store: &Store,
    runner: RunnerId,
    region: &str,
    platform: &str,
    lease_seconds: u32,
) -> Result<Option<LeasedAttempt>, StoreError> {
    let lease_token = Secret::fresh(LEASE_TOKEN_PREFIX);
    let run_token = Secret::fresh(RUN_TOKEN_PREFIX);
    let row = sqlx::query(&format!(
        "update record.attempts set runner_id = $1, leased_at = clock_timestamp(), \
             lease_expires_at = clock_timestamp() + make_interval(secs => $4), \
             lease_token_sha256 = $5, run_token_sha256 = $6 \
         where attempt_id = ( \
             select attempt_id from record.attempts \
             where runner_id is null and closed_at is null and region = $2 and platform = $3 \
               and (fence is null or exists (select from record.workspace_locks held \
                   where held.workspace_id = attempts.workspace_id and held.run_id = attempts.run_id \
                     and held.fence = attempts.fence)) \
             order by (case phase when 'apply' then 0 else 1 end), offered_at \
             for update skip locked limit 1) \
         returning {COLUMNS}"
    ))
    .bind(runner.to_string())
    .bind(region)
    .bind(platform)
    .bind(f64::from(lease_seconds))
    .bind(lease_token.digest().as_bytes().as_slice())
    .bind(run_token.digest().as_bytes().as_slice())
    .fetch_optional(&store.pool)
    .await?;
    row.map(|row| {
        Ok(LeasedAttempt {
            attempt: parse(&row)?,
            lease_token: lease_token.expose().to_owned(),
            run_token: run_token.expose().to_owned(),
        })
    })
    .transpose()
}
