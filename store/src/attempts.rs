//! Attempts: offered by the workflow, leased by a runner for a limited time, closed once.
//!
//! A lease is two secrets. Both are stored as SHA-256 of 256 random bits; whoever presents one is
//! found by its digest, and only while the attempt is leased and open.

use rand::TryRngCore as _;
use rand::rngs::OsRng;
use sha2::{Digest as _, Sha256};
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row as _};
use stackship_domain::ids::{AttemptId, OrganizationId, RunId, RunnerId, WorkspaceId};
use stackship_domain::run::{Phase, Predecessor};
use stackship_domain::{Fence, Sha256Digest, Timestamp};

use crate::notify::{self, Topic};
use crate::{DbTime, Store, StoreError, Violation, clock};

/// Prefix of a lease token.
const LEASE_TOKEN_PREFIX: &str = "ssl_";
/// Prefix of a run token.
const RUN_TOKEN_PREFIX: &str = "ssx_";
/// Bytes of randomness in a token.
const TOKEN_BYTES: usize = 32;

/// An attempt to offer.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The tenant.
    pub organization: OrganizationId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The run.
    pub run: RunId,
    /// The phase.
    pub phase: Phase,
    /// Counts from 1 within the phase.
    pub number: u32,
    /// Where it must execute.
    pub region: String,
    /// On what.
    pub platform: String,
    /// The fence under which it writes; absent for a speculative run.
    pub fence: Option<Fence>,
    /// The approved digest; present exactly for an apply.
    pub binding: Option<Sha256Digest>,
    /// The state it starts from.
    pub predecessor: Predecessor,
}

/// An attempt, as it is stored.
#[derive(Debug, Clone)]
pub struct AttemptRow {
    /// Which one.
    pub id: AttemptId,
    /// What was offered.
    pub offer: Offer,
    /// Who leased it.
    pub runner: Option<RunnerId>,
    /// When the lease ends.
    pub lease_expires_at: Option<Timestamp>,
    /// When `tofu apply` was about to start.
    pub tofu_started_at: Option<Timestamp>,
    /// When somebody asked it to stop.
    pub cancel_requested_at: Option<Timestamp>,
    /// What the runner reported.
    pub result: Option<serde_json::Value>,
    /// When it was closed.
    pub closed_at: Option<Timestamp>,
    /// Why it was closed.
    pub close_cause: Option<CloseCause>,
}

/// Why an attempt was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseCause {
    /// Its result is in.
    Result,
    /// Its lease ran out.
    LeaseExpired,
    /// Its runner gave it back.
    HandedBack,
    /// Its run ended before anybody leased it.
    Withdrawn,
}

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

/// Whom a run token speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPrincipal {
    /// The tenant.
    pub organization: OrganizationId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The run.
    pub run: RunId,
    /// The phase: a plan reads, an apply also writes state.
    pub phase: Phase,
    /// The attempt.
    pub attempt: AttemptId,
    /// The fence; absent for a speculative run.
    pub fence: Option<Fence>,
}

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

const COLUMNS: &str = "attempt_id, organization_id, workspace_id, run_id, phase, number, region, platform, fence, \
     binding, predecessor, runner_id, lease_expires_at, tofu_started_at, cancel_requested_at, result, closed_at, close_cause";

/// Offers an attempt. Offering the same number again finds the first offer.
pub async fn offer(store: &Store, offer: &Offer) -> Result<AttemptId, StoreError> {
    let fresh: AttemptId = clock::fresh();
    let inserted: Option<String> = sqlx::query_scalar(
        "insert into record.attempts (attempt_id, organization_id, workspace_id, run_id, phase, number, region, \
             platform, fence, binding, predecessor) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
         on conflict (run_id, phase, number) do nothing returning attempt_id",
    )
    .bind(fresh.to_string())
    .bind(offer.organization.to_string())
    .bind(offer.workspace.to_string())
    .bind(offer.run.to_string())
    .bind(offer.phase.as_str())
    .bind(i32::try_from(offer.number).unwrap_or(i32::MAX))
    .bind(&offer.region)
    .bind(&offer.platform)
    .bind(offer.fence.map(Fence::number))
    .bind(offer.binding.map(|digest| digest.to_string()))
    .bind(serde_json::to_value(&offer.predecessor)?)
    .fetch_optional(&store.pool)
    .await?;
    if inserted.is_some() {
        notify::send(&store.pool, Topic::Attempts, &offer.run.to_string()).await?;
        return Ok(fresh);
    }
    let existing: String = sqlx::query_scalar(
        "select attempt_id from record.attempts where run_id = $1 and phase = $2 and number = $3",
    )
    .bind(offer.run.to_string())
    .bind(offer.phase.as_str())
    .bind(i32::try_from(offer.number).unwrap_or(i32::MAX))
    .fetch_one(&store.pool)
    .await?;
    existing
        .parse()
        .map_err(|_| StoreError::inconsistent("record.attempts", "attempt_id", existing))
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
    let (lease_token, run_token) = (secret(LEASE_TOKEN_PREFIX)?, secret(RUN_TOKEN_PREFIX)?);
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
    .bind(token_digest(&lease_token))
    .bind(token_digest(&run_token))
    .fetch_optional(&store.pool)
    .await?;
    row.map(|row| {
        Ok(LeasedAttempt {
            attempt: parse(&row)?,
            lease_token,
            run_token,
        })
    })
    .transpose()
}

/// The attempt that this lease token was made for, open or not: a runner may repeat a result whose
/// answer was lost. Every write asks again whether the lease is still good.
pub async fn by_lease_token(
    store: &Store,
    attempt: AttemptId,
    presented: &str,
) -> Result<Option<AttemptRow>, StoreError> {
    let row = sqlx::query(&format!(
        "select {COLUMNS} from record.attempts where attempt_id = $1 and lease_token_sha256 = $2"
    ))
    .bind(attempt.to_string())
    .bind(token_digest(presented))
    .fetch_optional(&store.pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// Whom a run token speaks for, while its attempt is leased and open.
pub async fn by_run_token(
    store: &Store,
    presented: &str,
) -> Result<Option<RunPrincipal>, StoreError> {
    if !presented.starts_with(RUN_TOKEN_PREFIX) {
        return Ok(None);
    }
    let row = sqlx::query(&format!(
        "select {COLUMNS} from record.attempts \
         where run_token_sha256 = $1 and closed_at is null and lease_expires_at > clock_timestamp()"
    ))
    .bind(token_digest(presented))
    .fetch_optional(&store.pool)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let attempt = parse(&row)?;
    Ok(Some(RunPrincipal {
        organization: attempt.offer.organization,
        workspace: attempt.offer.workspace,
        run: attempt.offer.run,
        phase: attempt.offer.phase,
        attempt: attempt.id,
        fence: attempt.offer.fence,
    }))
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

/// Asks the run's leased attempt to stop; its next heartbeat tells it.
pub async fn request_cancel(store: &Store, run: RunId) -> Result<(), StoreError> {
    sqlx::query(
        "update record.attempts set cancel_requested_at = clock_timestamp() \
         where run_id = $1 and closed_at is null and runner_id is not null and cancel_requested_at is null",
    )
    .bind(run.to_string())
    .execute(&store.pool)
    .await?;
    notify::send(&store.pool, Topic::Attempts, &run.to_string()).await
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

/// Runs that have not ended, in id order after `after`, at most `limit`.
pub async fn unfinished_runs(
    store: &Store,
    after: Option<RunId>,
    limit: i64,
) -> Result<Vec<RunId>, StoreError> {
    let runs: Vec<String> = sqlx::query_scalar(
        "select run_id from record.runs where ended_at is null and run_id > $1 order by run_id limit $2",
    )
    .bind(after.map_or_else(String::new, |run| run.to_string()))
    .bind(limit)
    .fetch_all(&store.pool)
    .await?;
    runs.iter()
        .map(|run| {
            run.parse()
                .map_err(|_| StoreError::inconsistent("record.runs", "run_id", run))
        })
        .collect()
}

/// Closes leases that ran out, at most `limit`, and names their runs.
pub async fn expire(store: &Store, limit: i64) -> Result<Vec<RunId>, StoreError> {
    let runs: Vec<String> = sqlx::query_scalar(
        "update record.attempts set closed_at = clock_timestamp(), close_cause = 'lease_expired' \
         where attempt_id in ( \
             select attempt_id from record.attempts \
             where runner_id is not null and closed_at is null and lease_expires_at <= clock_timestamp() \
             order by lease_expires_at for update skip locked limit $1) \
         returning run_id",
    )
    .bind(limit)
    .fetch_all(&store.pool)
    .await?;
    runs.iter()
        .map(|run| {
            run.parse()
                .map_err(|_| StoreError::inconsistent("record.attempts", "run_id", run))
        })
        .collect()
}

/// Every attempt of a run, oldest first.
pub async fn of_run(pool: &PgPool, run: RunId) -> Result<Vec<AttemptRow>, StoreError> {
    let rows = sqlx::query(&format!(
        "select {COLUMNS} from record.attempts where run_id = $1 order by offered_at, number"
    ))
    .bind(run.to_string())
    .fetch_all(pool)
    .await?;
    rows.iter().map(parse).collect()
}

fn secret(prefix: &str) -> Result<String, StoreError> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    OsRng
        .try_fill_bytes(&mut bytes)
        .map_err(|error| StoreError::Unavailable(sqlx::Error::Io(std::io::Error::other(error))))?;
    Ok(format!("{prefix}{}", hex::encode(bytes)))
}

/// What is stored of a token. Its 256 random bits need no salt and no slow hash.
fn token_digest(token: &str) -> Vec<u8> {
    Sha256::digest(token.as_bytes()).to_vec()
}

fn parse(row: &PgRow) -> Result<AttemptRow, StoreError> {
    let key: String = row.try_get("attempt_id")?;
    let bad = |column: &'static str| StoreError::inconsistent("record.attempts", column, &key);
    let time = |column: &str| -> Result<Option<Timestamp>, sqlx::Error> {
        Ok(row.try_get::<Option<DbTime>, _>(column)?.map(DbTime::get))
    };
    let phase: String = row.try_get("phase")?;
    let offer = Offer {
        organization: row
            .try_get::<String, _>("organization_id")?
            .parse()
            .map_err(|_| bad("organization_id"))?,
        workspace: row
            .try_get::<String, _>("workspace_id")?
            .parse()
            .map_err(|_| bad("workspace_id"))?,
        run: row
            .try_get::<String, _>("run_id")?
            .parse()
            .map_err(|_| bad("run_id"))?,
        phase: match phase.as_str() {
            "plan" => Phase::Plan,
            "apply" => Phase::Apply,
            _ => return Err(bad("phase")),
        },
        number: u32::try_from(row.try_get::<i32, _>("number")?).map_err(|_| bad("number"))?,
        region: row.try_get("region")?,
        platform: row.try_get("platform")?,
        fence: row
            .try_get::<Option<i64>, _>("fence")?
            .map(Fence::from_stored),
        binding: row
            .try_get::<Option<String>, _>("binding")?
            .map(|text| text.parse().map_err(|_| bad("binding")))
            .transpose()?,
        predecessor: serde_json::from_value(row.try_get("predecessor")?)
            .map_err(|_| bad("predecessor"))?,
    };
    Ok(AttemptRow {
        id: key.parse().map_err(|_| bad("attempt_id"))?,
        offer,
        runner: row
            .try_get::<Option<String>, _>("runner_id")?
            .map(|text| text.parse().map_err(|_| bad("runner_id")))
            .transpose()?,
        lease_expires_at: time("lease_expires_at")?,
        tofu_started_at: time("tofu_started_at")?,
        cancel_requested_at: time("cancel_requested_at")?,
        result: row.try_get("result")?,
        closed_at: time("closed_at")?,
        close_cause: match row.try_get::<Option<String>, _>("close_cause")?.as_deref() {
            None => None,
            Some("result") => Some(CloseCause::Result),
            Some("lease_expired") => Some(CloseCause::LeaseExpired),
            Some("handed_back") => Some(CloseCause::HandedBack),
            Some("withdrawn") => Some(CloseCause::Withdrawn),
            Some(_) => return Err(bad("close_cause")),
        },
    })
}
