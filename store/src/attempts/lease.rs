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

/// The most applies that one region and platform lease in a row while a plan waits. A person waits for
/// an apply and it holds a lock, so applies come first; but however many there are, each time this
/// many were leased the oldest plan gets its turn. And however many plans there are, an apply waits
/// for at most one of them. Runners that ask at the same moment may each take the turn they saw.
pub const APPLIES_IN_A_ROW_MAX: i64 = 4;

/// Leases the oldest offer that fits: of an apply or of a plan, whichever's turn it is, else of the
/// other; `None` when there is none. An offer whose fence has passed is nobody's, and must not stand
/// before the others.
pub async fn lease_next(
    store: &Store,
    runner: RunnerId,
    region: &str,
    platform: &str,
    lease_seconds: u32,
) -> Result<Option<LeasedAttempt>, StoreError> {
    let lease_token = Secret::fresh(LEASE_TOKEN_PREFIX);
    let run_token = Secret::fresh(RUN_TOKEN_PREFIX);
    let (first, other) = (oldest_offer("turn.rank"), oldest_offer("1 - turn.rank"));
    let row = sqlx::query(&format!(
        "update record.attempts set runner_id = $1, leased_at = clock_timestamp(), \
             lease_expires_at = clock_timestamp() + make_interval(secs => $4), \
             lease_token_sha256 = $5, run_token_sha256 = $6 \
         where attempt_id = ( \
             with turn as materialized ( \
                 select case when count(*) = $7 and bool_and(phase = 'apply') then 1 else 0 end as rank \
                 from (select phase from record.attempts \
                     where region = $2 and platform = $3 and leased_at is not null \
                     order by leased_at desc limit $7) as newest) \
             select coalesce(({first}), ({other}))) \
         returning {COLUMNS}"
    ))
    .bind(runner.to_string())
    .bind(region)
    .bind(platform)
    .bind(f64::from(lease_seconds))
    .bind(lease_token.digest().as_bytes().as_slice())
    .bind(run_token.digest().as_bytes().as_slice())
    .bind(APPLIES_IN_A_ROW_MAX)
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

/// The oldest offer of applies (0) or plans (1) that nobody else is taking: one range of
/// `attempts_offered`.
fn oldest_offer(rank: &str) -> String {
    format!(
        "select attempt_id from record.attempts \
         where runner_id is null and closed_at is null and region = $2 and platform = $3 \
           and (case phase when 'apply' then 0 else 1 end) = (select {rank} from turn) \
           and (fence is null or exists (select from record.workspace_locks held \
               where held.workspace_id = attempts.workspace_id and held.run_id = attempts.run_id \
                 and held.fence = attempts.fence)) \
         order by offered_at for update skip locked limit 1"
    )
}
