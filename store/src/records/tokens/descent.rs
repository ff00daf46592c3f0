//! Tokens that were made with tokens, and end with them.

use sqlx::PgConnection;
use stackship_domain::Timestamp;
use stackship_domain::ids::{OrganizationId, TokenId};

use crate::StoreError;
use crate::columns::Columns;

/// Who mints in an organization shares a lock; who revokes has it alone. The queue of a lock is in order,
/// so those who mint ever on cannot keep a revocation out: without it, a chain that grows as fast as it
/// is followed has no end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Access {
    Mint,
    Revoke,
}

/// Takes the lock until the transaction ends.
pub(super) async fn enter(
    connection: &mut PgConnection,
    organization: OrganizationId,
    access: Access,
) -> Result<(), StoreError> {
    let lock = match access {
        Access::Mint => "select pg_advisory_xact_lock_shared(hashtextextended($1, 0))",
        Access::Revoke => "select pg_advisory_xact_lock(hashtextextended($1, 0))",
    };
    sqlx::query(lock)
        .bind(format!("descent of tokens in {organization}"))
        .execute(connection)
        .await?;
    Ok(())
}

/// What a token comes from, and so with what it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descent {
    /// Somebody at the machine made it.
    Machine,
    /// It was made with this token: it ends no later, and is revoked with it.
    Of(TokenId),
    /// It was made with this token and stands by itself: the person behind it had proved again who
    /// they are.
    Apart(TokenId),
}

impl Descent {
    /// The token that was presented.
    pub(super) const fn presented(self) -> Option<TokenId> {
        match self {
            Self::Machine => None,
            Self::Of(token) | Self::Apart(token) => Some(token),
        }
    }

    /// The token that it ends with.
    pub(super) const fn minter(self) -> Option<TokenId> {
        match self {
            Self::Machine | Self::Apart(_) => None,
            Self::Of(token) => Some(token),
        }
    }
}

/// Why a token was not made.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// The token that it was to be made with has ended meanwhile.
    #[error("the token that this one was to be made with is over")]
    MinterOver,
    /// It would outlive the token that it is made with.
    #[error("a token ends no later than the one that it is made with, at {end}")]
    OutlivesMinter {
        /// When that one ends.
        end: Timestamp,
    },
    /// A failure of ours.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for MintError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// What revoking a token came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revoked {
    /// How many live tokens that descend from it were revoked along.
    pub descendants: usize,
}

/// Whether the minter is live and lasts as long as the new token. It stays so until that one is there:
/// whoever revokes it meanwhile waits, and then finds the new one.
pub(super) async fn ends_within(
    connection: &mut PgConnection,
    organization: OrganizationId,
    minter: TokenId,
    end: Option<Timestamp>,
) -> Result<(), MintError> {
    enter(connection, organization, Access::Mint).await?;
    let row = sqlx::query(
        "select token_id, expires_at from record.tokens \
         where organization_id = $1 and token_id = $2 and revoked_at is null \
           and (expires_at is null or expires_at > clock_timestamp())",
    )
    .bind(organization.to_string())
    .bind(minter.to_string())
    .fetch_optional(connection)
    .await?;
    let row = row.ok_or(MintError::MinterOver)?;
    let minters = Columns::new(&row, "record.tokens", "token_id")?.time_or_null("expires_at")?;
    match minters {
        Some(last) if end.is_none_or(|end| end > last) => {
            Err(MintError::OutlivesMinter { end: last })
        }
        Some(_) | None => Ok(()),
    }
}

/// Revokes every live token that descends from this one, which is revoked, and says which. Nobody mints
/// meanwhile: [`Access::Revoke`] was entered before.
pub(super) async fn revoke(
    connection: &mut PgConnection,
    organization: OrganizationId,
    token: TokenId,
) -> Result<Vec<String>, StoreError> {
    let revoked = sqlx::query_scalar(
        "with recursive descent as ( \
             select token_id from record.tokens where organization_id = $1 and minted_by = $2 \
             union \
             select token.token_id from record.tokens token \
                 join descent on token.minted_by = descent.token_id where token.organization_id = $1 \
         ) \
         update record.tokens set revoked_at = clock_timestamp() \
         where token_id in (select token_id from descent) and revoked_at is null returning token_id",
    );
    let revoked = revoked
        .bind(organization.to_string())
        .bind(token.to_string())
        .fetch_all(connection)
        .await?;
    Ok(revoked)
}
