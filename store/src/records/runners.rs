//! Runners: processes that may lease attempts of any organization. Operators register them.

use stackship_domain::ids::RunnerId;

use super::Secret;
use super::secret::{presented_digest, same_digest};
use crate::columns::Columns;
use crate::{Store, StoreError, clock};

const PREFIX: &str = "ssr_";

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
