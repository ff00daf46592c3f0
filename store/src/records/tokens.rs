//! API tokens. A token opens one organization; only the digest of its secret is kept. One that was made
//! with another ends with it at the latest ([`Descent`]).

mod descent;

use serde_json::json;
use sqlx::PgPool;
use sqlx::postgres::PgRow;
use stackship_domain::ids::{OrganizationId, TokenId, UserId};
use stackship_domain::{Actor, Timestamp};

use super::secret::{presented_digest, same_digest};
use super::{Page, Secret, commit, tell};
use crate::columns::Columns;
use crate::log::Context;
use crate::{DbTime, Store, StoreError, clock};

use descent::Access;
pub use descent::{Descent, MintError, Revoked};

const PREFIX: &str = "ss_";
/// How many revoked descendants a fact names; it tells the number of all.
const DESCENDANTS_TOLD_MAX: usize = 1_000;

/// A token to be created.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// Whom it speaks for.
    pub user: UserId,
    /// What it is for, in the user's words.
    pub description: String,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// What it comes from.
    pub descent: Descent,
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// Whom it speaks for.
    pub user: UserId,
    /// What it is for.
    pub description: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: Actor,
    /// The token that it was made with and ends with.
    pub minted_by: Option<TokenId>,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was last presented, to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// Whom a presented token speaks for, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Principal {
    /// The user.
    pub user: UserId,
    /// The organization it opens.
    pub organization: OrganizationId,
    /// The token.
    pub token: TokenId,
}

/// Creates a token for the organization of `context`.
pub async fn create(
    store: &Store,
    context: &Context,
    new: &NewToken,
) -> Result<(TokenId, Secret), MintError> {
    let id: TokenId = clock::fresh();
    let secret = Secret::fresh(PREFIX);
    let mut transaction = store.pool.begin().await?;
    if let Some(minter) = new.descent.minter() {
        descent::ends_within(
            &mut transaction,
            context.organization,
            minter,
            new.expires_at,
        )
        .await?;
    }
    sqlx::query(
        "insert into record.tokens \
         (token_id, user_id, organization_id, secret_sha256, description, created_by, expires_at, minted_by) \
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(id.to_string())
    .bind(new.user.to_string())
    .bind(context.organization.to_string())
    .bind(secret.digest().as_bytes().as_slice())
    .bind(&new.description)
    .bind(context.actor.to_string())
    .bind(new.expires_at.map(DbTime))
    .bind(new.descent.minter().map(|minter| minter.to_string()))
    .execute(&mut *transaction)
    .await?;
    let detail = json!({
        "token": id, "user": new.user, "expires_at": new.expires_at,
        "made_with": new.descent.presented(), "ends_with": new.descent.minter(),
    });
    tell(&mut transaction, context, "token_created", detail).await?;
    commit(store, transaction).await?;
    Ok((id, secret))
}

/// Whom a presented token speaks for; nobody when it is unknown, revoked or over, or its user
/// disabled.
pub async fn authenticate(store: &Store, presented: &str) -> Result<Option<Principal>, StoreError> {
    let Some(digest) = presented_digest(PREFIX, presented) else {
        return Ok(None);
    };
    let row = sqlx::query(
        "select token.token_id, token.user_id, token.organization_id, token.secret_sha256, \
                token.last_used_at is null or token.last_used_at < clock_timestamp() - interval '1 minute' as is_stale \
         from record.tokens token join record.users using (user_id) \
         where token.secret_sha256 = $1 and token.revoked_at is null and disabled_at is null \
           and (token.expires_at is null or token.expires_at > clock_timestamp())",
    )
    .bind(digest.as_bytes().as_slice())
    .fetch_optional(&store.pool)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let columns = Columns::new(&row, "record.tokens", "token_id")?;
    if !same_digest(&columns.digest("secret_sha256")?, &digest) {
        return Ok(None);
    }
    let token: TokenId = columns.parsed("token_id")?;
    if columns.plain("is_stale")? {
        mark_used(&store.pool, token).await?;
    }
    Ok(Some(Principal {
        user: columns.parsed("user_id")?,
        organization: columns.parsed("organization_id")?,
        token,
    }))
}

async fn mark_used(pool: &PgPool, token: TokenId) -> Result<(), StoreError> {
    sqlx::query(
        "update record.tokens set last_used_at = clock_timestamp() where token_id = $1 \
           and (last_used_at is null or last_used_at < clock_timestamp() - interval '1 minute')",
    )
    .bind(token.to_string())
    .execute(pool)
    .await?;
    Ok(())
}

/// The user's tokens in the organization, newest first, revoked ones included.
pub async fn list(
    pool: &PgPool,
    organization: OrganizationId,
    user: UserId,
    page: &Page,
) -> Result<Vec<Token>, StoreError> {
    let rows = sqlx::query(
        "select token_id, user_id, description, created_at, created_by, minted_by, expires_at, revoked_at, last_used_at \
         from record.tokens where organization_id = $1 and user_id = $2 and ($3 = '' or token_id < $3) \
         order by token_id desc limit $4",
    )
    .bind(organization.to_string())
    .bind(user.to_string())
    .bind(page.after())
    .bind(page.limit())
    .fetch_all(pool)
    .await?;
    rows.iter().map(parse).collect()
}

/// Whom a token of the organization speaks for, or spoke for.
pub async fn user_of(
    pool: &PgPool,
    organization: OrganizationId,
    token: TokenId,
) -> Result<Option<UserId>, StoreError> {
    let row = sqlx::query(
        "select token_id, user_id from record.tokens where organization_id = $1 and token_id = $2",
    )
    .bind(organization.to_string())
    .bind(token.to_string())
    .fetch_optional(pool)
    .await?;
    row.as_ref().map(user_in).transpose()
}

/// Revokes a token of the organization, and every live one that descends from it. Nothing is found when
/// it is not live.
pub async fn revoke(
    store: &Store,
    context: &Context,
    token: TokenId,
) -> Result<Option<Revoked>, StoreError> {
    let mut transaction = store.pool.begin().await?;
    descent::enter(&mut transaction, context.organization, Access::Revoke).await?;
    let revoked = sqlx::query(
        "update record.tokens set revoked_at = clock_timestamp() \
         where organization_id = $1 and token_id = $2 and revoked_at is null",
    )
    .bind(context.organization.to_string())
    .bind(token.to_string())
    .execute(&mut *transaction)
    .await?;
    if revoked.rows_affected() == 0 {
        return Ok(None);
    }
    let descendants = descent::revoke(&mut transaction, context.organization, token).await?;
    let told = descendants.get(..DESCENDANTS_TOLD_MAX);
    let detail = json!({
        "token": token,
        "descendants": descendants.len(),
        "descendant_tokens": told.unwrap_or(&descendants),
    });
    tell(&mut transaction, context, "token_revoked", detail).await?;
    commit(store, transaction).await?;
    Ok(Some(Revoked {
        descendants: descendants.len(),
    }))
}

/// Whom a token of the organization speaks for, while it is live: for what was handed out on its
/// behalf and must not outlive it.
pub async fn live(
    pool: &PgPool,
    organization: OrganizationId,
    token: TokenId,
) -> Result<Option<Principal>, StoreError> {
    let row = sqlx::query(
        "select token.token_id, token.user_id from record.tokens token join record.users using (user_id) \
         where token.organization_id = $1 and token.token_id = $2 and token.revoked_at is null \
           and disabled_at is null and (token.expires_at is null or token.expires_at > clock_timestamp())",
    )
    .bind(organization.to_string())
    .bind(token.to_string())
    .fetch_optional(pool)
    .await?;
    let user = row.as_ref().map(user_in).transpose()?;
    Ok(user.map(|user| Principal {
        user,
        organization,
        token,
    }))
}

/// Whom the token in a row speaks for.
fn user_in(row: &PgRow) -> Result<UserId, StoreError> {
    Columns::new(row, "record.tokens", "token_id")?.parsed("user_id")
}

fn parse(row: &PgRow) -> Result<Token, StoreError> {
    let columns = Columns::new(row, "record.tokens", "token_id")?;
    Ok(Token {
        id: columns.parsed("token_id")?,
        user: columns.parsed("user_id")?,
        description: columns.plain("description")?,
        created_at: columns.time("created_at")?,
        created_by: columns.parsed("created_by")?,
        minted_by: columns.parsed_or_null("minted_by")?,
        expires_at: columns.time_or_null("expires_at")?,
        revoked_at: columns.time_or_null("revoked_at")?,
        last_used_at: columns.time_or_null("last_used_at")?,
    })
}
