//! Runners: processes that may lease attempts of any organization. Operators register them.

use std::time::Duration;

use sqlx::PgPool;
use stackship_domain::Timestamp;
use stackship_domain::ids::RunnerId;

use super::Secret;
use super::secret::{presented_digest, same_digest};
use crate::columns::Columns;
use crate::{Store, StoreError, clock};

const PREFIX: &str = "ssr_";
/// How often it is noted that a runner asks for work; it asks twice a minute at least.
const ASKED_EVERY: Duration = Duration::from_secs(30);
/// How long a runner that neither asks for work nor has any counts as there.
pub const SILENCE_MAX: Duration = Duration::from_mins(2);
/// The most regions and platforms that one runner is known for. It has one of each, unless a token is
/// shared or a runner is moved.
const PLACES_MAX: i64 = 100;

/// Registers a runner. Its secret is shown this once.
pub async fn create(store: &Store, name: &str) -> Result<(RunnerId, Secret), StoreError> {
    let id: RunnerId = clock::fresh();
    let secret = Secret::fresh(PREFIX);
    sqlx::query("insert into record.runners (runner_id, name, secret_sha256) values ($1, $2, $3)")
        .bind(id.to_string())
        .bind(name)
        .bind(secret.digest().as_bytes().as_slice())
        .execute(&store.pool)
        .await?;
    Ok((id, secret))
}

/// The runner that presents this secret, unless it is unknown or revoked.
pub async fn authenticate(store: &Store, presented: &str) -> Result<Option<RunnerId>, StoreError> {
    let Some(digest) = presented_digest(PREFIX, presented) else {
        return Ok(None);
    };
    let row = sqlx::query(
        "select runner_id, secret_sha256, \
                last_seen_at is null or last_seen_at < clock_timestamp() - interval '1 minute' as is_stale \
         from record.runners where secret_sha256 = $1 and revoked_at is null",
    )
    .bind(digest.as_bytes().as_slice())
    .fetch_optional(&store.pool)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let columns = Columns::new(&row, "record.runners", "runner_id")?;
    if !same_digest(&columns.digest("secret_sha256")?, &digest) {
        return Ok(None);
    }
    let runner: RunnerId = columns.parsed("runner_id")?;
    if columns.plain("is_stale")? {
        sqlx::query(
            "update record.runners set last_seen_at = clock_timestamp() where runner_id = $1",
        )
        .bind(runner.to_string())
        .execute(&store.pool)
        .await?;
    }
    Ok(Some(runner))
}

/// Whether anybody takes the runs of a region and platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// A runner asks for work, or has some.
    There,
    /// The last one was heard at this time.
    SilentSince(Timestamp),
    /// None was ever seen.
    NeverSeen,
}

impl Presence {
    /// Why nobody takes a run of this region and platform; `None` while somebody does.
    pub fn absence(self, region: &str, platform: &str) -> Option<String> {
        match self {
            Self::There => None,
            Self::SilentSince(since) => Some(format!(
                "no runner of the region `{region}` ({platform}) has been heard since {since}"
            )),
            Self::NeverSeen => Some(format!(
                "no runner of the region `{region}` ({platform}) has ever been seen"
            )),
        }
    }
}

/// A runner asks for work of a region and platform.
pub async fn asked(
    store: &Store,
    runner: RunnerId,
    region: &str,
    platform: &str,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into record.runner_places (runner_id, region, platform) select $1, $2, $3 \
         where (select count(*) filter (where (region, platform) <> ($2, $3)) \
                from record.runner_places where runner_id = $1) < $5 \
         on conflict (runner_id, region, platform) do update set asked_at = clock_timestamp() \
             where runner_places.asked_at < clock_timestamp() - make_interval(secs => $4)",
    )
    .bind(runner.to_string())
    .bind(region)
    .bind(platform)
    .bind(ASKED_EVERY.as_secs_f64())
    .bind(PLACES_MAX)
    .execute(&store.pool)
    .await?;
    Ok(())
}

/// Whether anybody takes the runs of a region and platform. A runner whose hands are full asks for
/// nothing, and is there as long as its leases are.
pub async fn presence(pool: &PgPool, region: &str, platform: &str) -> Result<Presence, StoreError> {
    let row = sqlx::query(
        "select max(asked_at) as heard_at, '' as key, \
             coalesce(max(asked_at) > clock_timestamp() - make_interval(secs => $3), false) \
             or exists (select from record.attempts where region = $1 and platform = $2 \
                 and closed_at is null and lease_expires_at > clock_timestamp()) as is_there \
         from record.runner_places join record.runners using (runner_id) \
         where region = $1 and platform = $2 and revoked_at is null",
    )
    .bind(region)
    .bind(platform)
    .bind(SILENCE_MAX.as_secs_f64())
    .fetch_one(pool)
    .await?;
    let columns = Columns::new(&row, "record.runner_places", "key")?;
    if columns.plain("is_there")? {
        return Ok(Presence::There);
    }
    let heard_at = columns.time_or_null("heard_at")?;
    Ok(heard_at.map_or(Presence::NeverSeen, Presence::SilentSince))
}

/// Takes a runner's rights away. Returns whether it had any.
pub async fn revoke(store: &Store, runner: RunnerId) -> Result<bool, StoreError> {
    let revoked = sqlx::query(
        "update record.runners set revoked_at = clock_timestamp() where runner_id = $1 and revoked_at is null",
    )
    .bind(runner.to_string())
    .execute(&store.pool)
    .await?;
    Ok(revoked.rows_affected() == 1)
}
