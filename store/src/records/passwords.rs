//! Passwords, and the proof by which a person behind a token shows again who they are (S-ART-1).
//!
//! A token can be stolen; what is guarded asks for more than a token. A proof belongs to one token and
//! is good for a limited time. Only the Argon2id hash of a password is kept, and guessing has a bound
//! per user, whatever token is used.

use std::time::Duration;

use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _};
use serde_json::json;
use sqlx::{PgPool, Row as _};
use stackship_domain::Timestamp;
use stackship_domain::ids::{TokenId, UserId};
use zeroize::Zeroizing;

use super::tokens::Principal;
use super::{commit, tell};
use crate::log::Context;
use crate::{DbTime, Store, StoreError};

/// The fewest characters of a password.
pub const PASSWORD_CHARS_MIN: usize = 12;
/// The longest password, in bytes; hashing more would only cost time.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// How long a proof is good (S-ART-1).
pub const PROOF_TIME_MAX: Duration = Duration::from_mins(15);
/// Failed tries of one user within [`FAILURE_WINDOW`]; further tries are not even looked at.
pub const FAILURES_MAX: i32 = 10;
/// From the first failed try on.
pub const FAILURE_WINDOW: Duration = Duration::from_mins(15);

/// A password in clear, on its way to be hashed.
#[derive(Clone)]
pub struct Password(Zeroizing<String>);

impl std::fmt::Debug for Password {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Password(..)")
    }
}

/// A text that cannot be a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a password has at least {PASSWORD_CHARS_MIN} characters and at most {PASSWORD_BYTES_MAX} bytes"
)]
pub struct InvalidPassword;

impl Password {
    /// A password that may be set.
    pub fn new(text: String) -> Result<Self, InvalidPassword> {
        let password = Self::presented(text)?;
        if password.0.chars().count() < PASSWORD_CHARS_MIN {
            return Err(InvalidPassword);
        }
        Ok(password)
    }

    /// A password that somebody presents; whether it fits is still to be seen.
    pub fn presented(text: String) -> Result<Self, InvalidPassword> {
        let text = Zeroizing::new(text);
        if text.len() > PASSWORD_BYTES_MAX {
            return Err(InvalidPassword);
        }
        Ok(Self(text))
    }
}

/// Why somebody did not prove who they are.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The password is not the user's, or the user has none: which of them is not told.
    #[error("the password is not right")]
    Wrong,
    /// Too many tries failed.
    #[error("too many tries failed; try again later")]
    TooManyTries,
    /// A failure of ours.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Sets a user's password. Earlier proofs are void.
pub async fn set(
    store: &Store,
    context: &Context,
    user: UserId,
    password: Password,
) -> Result<(), StoreError> {
    let hash = hashed(password).await?;
    let mut transaction = store.pool.begin().await?;
    sqlx::query("update record.users set password_hash = $2 where user_id = $1")
        .bind(user.to_string())
        .bind(hash)
        .execute(&mut *transaction)
        .await?;
    for forgotten in [
        "delete from record.step_ups where user_id = $1",
        "delete from record.password_failures where user_id = $1",
    ] {
        sqlx::query(forgotten)
            .bind(user.to_string())
            .execute(&mut *transaction)
            .await?;
    }
    tell(
        &mut transaction,
        context,
        "password_set",
        json!({"user": user}),
    )
    .await?;
    commit(store, transaction).await
}

/// Proves that the person behind a token knows the user's password; until when that is good. Every try
/// is told in the log, the failed ones too.
pub async fn prove(
    store: &Store,
    context: &Context,
    who: Principal,
    password: Password,
) -> Result<Timestamp, ProveError> {
    // Counted before it is looked at: tries that run side by side cannot outrun the bound.
    if !count_try(&store.pool, who.user).await? {
        return Err(ProveError::TooManyTries);
    }
    let hash: Option<String> =
        sqlx::query_scalar("select password_hash from record.users where user_id = $1")
            .bind(who.user.to_string())
            .fetch_optional(&store.pool)
            .await
            .map_err(StoreError::from)?
            .flatten();
    if !fits(password, hash).await? {
        let mut transaction = store.pool.begin().await.map_err(StoreError::from)?;
        let detail = json!({"user": who.user, "token": who.token, "method": "password"});
        tell(&mut transaction, context, "step_up_failed", detail).await?;
        commit(store, transaction).await?;
        return Err(ProveError::Wrong);
    }
    Ok(record_proof(store, context, who).await?)
}

async fn record_proof(
    store: &Store,
    context: &Context,
    who: Principal,
) -> Result<Timestamp, StoreError> {
    let mut transaction = store.pool.begin().await?;
    let row = sqlx::query(
        "insert into record.step_ups (token_id, user_id, method) values ($1, $2, 'password') \
         on conflict (token_id) do update set proved_at = excluded.proved_at, method = excluded.method \
         returning proved_at + make_interval(secs => $3) as good_until",
    )
    .bind(who.token.to_string())
    .bind(who.user.to_string())
    .bind(PROOF_TIME_MAX.as_secs_f64())
    .fetch_one(&mut *transaction)
    .await?;
    let good_until = row.try_get::<DbTime, _>("good_until")?.get();
    sqlx::query("delete from record.password_failures where user_id = $1")
        .bind(who.user.to_string())
        .execute(&mut *transaction)
        .await?;
    let detail = json!({"user": who.user, "token": who.token, "method": "password"});
    tell(&mut transaction, context, "step_up_passed", detail).await?;
    commit(store, transaction).await?;
    Ok(good_until)
}

/// Whether the person behind this token has proved who they are, and that is still good. The database's
/// clock judges, which also took the time of the proof.
pub async fn is_proven(pool: &PgPool, token: TokenId) -> Result<bool, StoreError> {
    let proven = sqlx::query_scalar(
        "select exists (select from record.step_ups where token_id = $1 \
           and proved_at > clock_timestamp() - make_interval(secs => $2))",
    )
    .bind(token.to_string())
    .bind(PROOF_TIME_MAX.as_secs_f64())
    .fetch_one(pool)
    .await?;
    Ok(proven)
}

/// Counts a try as failed until it is known better; whether it may be made.
async fn count_try(pool: &PgPool, user: UserId) -> Result<bool, StoreError> {
    let failures: i32 = sqlx::query_scalar(
        "insert into record.password_failures as known (user_id, failures) values ($1, 1) \
         on conflict (user_id) do update set \
             failures = case when known.since < clock_timestamp() - make_interval(secs => $2) then 1 \
                             else least(known.failures + 1, $3 + 1) end, \
             since = case when known.since < clock_timestamp() - make_interval(secs => $2) then clock_timestamp() \
                          else known.since end \
         returning failures",
    )
    .bind(user.to_string())
    .bind(FAILURE_WINDOW.as_secs_f64())
    .bind(FAILURES_MAX)
    .fetch_one(pool)
    .await?;
    Ok(failures <= FAILURES_MAX)
}

async fn hashed(password: Password) -> Result<String, StoreError> {
    let hash = tokio::task::spawn_blocking(move || {
        Argon2::default()
            .hash_password(password.0.as_bytes())
            .map(|hash| hash.to_string())
    });
    hash.await
        .map_err(|error| StoreError::Hash(error.into()))?
        .map_err(|error| StoreError::Hash(error.into()))
}

/// Compares with the hash; a user without one costs the same time and never fits.
async fn fits(password: Password, hash: Option<String>) -> Result<bool, StoreError> {
    let compared = tokio::task::spawn_blocking(move || {
        if let Some(hash) = hash {
            Argon2::default()
                .verify_password(password.0.as_bytes(), hash.as_str())
                .is_ok()
        } else {
            let spent = Argon2::default().hash_password(password.0.as_bytes());
            drop(spent);
            false
        }
    });
    compared
        .await
        .map_err(|error| StoreError::Hash(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_has_bounds_and_no_debug_text() {
        assert_eq!(
            Password::new("eleven char".to_owned()).err(),
            Some(InvalidPassword)
        );
        assert!(Password::new("twelve chars".to_owned()).is_ok());
        assert!(Password::presented("short".to_owned()).is_ok());
        let long = "x".repeat(PASSWORD_BYTES_MAX + 1);
        assert_eq!(Password::presented(long).err(), Some(InvalidPassword));
        let password = Password::new("correct horse battery".to_owned());
        assert_eq!(format!("{:?}", password.unwrap()), "Password(..)");
    }
}
