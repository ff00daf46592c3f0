//! Tokens that were made with tokens, and end with them.

use sqlx::PgConnection;
use stackship_domain::Timestamp;
use stackship_domain::ids::{OrganizationId, TokenId};

use crate::StoreError;
use crate::columns::Columns;

/// How often descendants are looked for. Each look but the last needs somebody who minted just then
/// with what the one before could not see.
const LOOKS_MAX: usize = 1_000;

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

/// Holds the minter until the new token is there: whoever revokes it meanwhile waits, and then finds
/// the new one.
pub(super) async fn ends_within(
    connection: &mut PgConnection,
    organization: OrganizationId,
    minter: TokenId,
    end: Option<Timestamp>,
) -> Result<(), MintError> {
    let row = sqlx::query(
        "select token_id, expires_at from record.tokens \
         where organization_id = $1 and token_id = $2 and revoked_at is null \
           and (expires_at is null or expires_at > clock_timestamp()) for share",
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

/// Revokes every live token that descends from this one, which is revoked, and says which.
///
/// Looks until a look finds nothing more. A look waits for those who are just minting with a token that
/// it has found, and cannot see yet what they make; the next one does. No token that was found mints
/// again.
pub(super) async fn revoke(
    connection: &mut PgConnection,
    organization: OrganizationId,
    token: TokenId,
) -> Result<Vec<String>, StoreError> {
    let mut all = Vec::new();
    for _ in 0..LOOKS_MAX {
        let found: Vec<String> = sqlx::query_scalar(
            "with recursive descent as ( \
                 select token_id from record.tokens where organization_id = $1 and minted_by = $2 \
                 union \
                 select token.token_id from record.tokens token \
                     join descent on token.minted_by = descent.token_id where token.organization_id = $1 \
             ), live as ( \
                 select token_id from record.tokens \
                 where token_id in (select token_id from descent) and revoked_at is null \
                 order by token_id for update \
             ) \
             update record.tokens set revoked_at = clock_timestamp() \
             where token_id in (select token_id from live) returning token_id",
        )
        .bind(organization.to_string())
        .bind(token.to_string())
        .fetch_all(&mut *connection)
        .await?;
        if found.is_empty() {
            return Ok(all);
        }
        all.extend(found);
    }
    Err(StoreError::inconsistent(
        "record.tokens",
        "minted_by",
        token,
    ))
}
