//! Answers that are kept so that a request can be sent again under the name its caller gave it.
//!
//! Who claims a request carries it out. What it then changes commits together with a fact under its
//! command id, and the database takes each such fact once; so a claim whose answer was lost is never
//! carried out a second time.

use serde_json::Value;
use sqlx::PgPool;
use stackship_domain::Sha256Digest;
use stackship_domain::ids::OrganizationId;

use crate::StoreError;
use crate::columns::Columns;

/// How long an answer is kept, in seconds: a day.
pub const ANSWER_KEPT_SECONDS: u32 = 24 * 60 * 60;
/// The most bytes of an answer that is kept.
pub const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// After so many seconds without an answer, whoever claimed a request is taken for dead.
pub const CLAIM_SECONDS_MAX: u32 = 2 * 60;
/// How a command id begins whose facts the database takes once.
pub const COMMAND_PREFIX: &str = "request-";
/// How many old answers a claim removes at most.
const REMOVED_MAX: i64 = 100;
const TABLE: &str = "record.answers";

/// A request that its caller has named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedRequest {
    /// The tenant.
    pub organization: OrganizationId,
    /// Digest of who asks, what for, and the name.
    pub name: Sha256Digest,
    /// Digest of the body.
    pub body: Sha256Digest,
}

impl NamedRequest {
    /// The id of the command that this request is.
    pub fn command_id(&self) -> String {
        let whole = format!("{} {} {}", self.organization, self.name, self.body);
        format!("{COMMAND_PREFIX}{}", Sha256Digest::of(whole.as_bytes()))
    }
}

/// An answer that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// The HTTP status: a success.
    pub status: u16,
    /// The exact body.
    pub body: String,
}

/// What claiming a request came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// It is the caller's to carry out, who then answers or releases it.
    Fresh,
    /// It was carried out; this was the answer.
    Answered(KeptAnswer),
    /// It was carried out and its answer is not kept; this is what it told of itself.
    CarriedOut(Value),
    /// Its name was given to another body.
    OtherBody,
    /// Somebody is carrying it out.
    Busy,
}

/// Claims a request.
pub async fn claim(pool: &PgPool, request: &NamedRequest) -> Result<Claim, StoreError> {
    remove_old(pool, request.organization).await?;
    let claimed = sqlx::query(
        "insert into record.answers as held (organization_id, request, body_sha256) values ($1, $2, $3) \
         on conflict (organization_id, request) do update \
             set body_sha256 = excluded.body_sha256, claimed_at = clock_timestamp(), status = null, answer = null \
             where held.claimed_at < clock_timestamp() - make_interval(secs => $4) \
                or (held.status is null and held.body_sha256 = excluded.body_sha256 \
                    and held.claimed_at < clock_timestamp() - make_interval(secs => $5))",
    )
    .bind(request.organization.to_string())
    .bind(request.name.to_string())
    .bind(request.body.as_bytes().as_slice())
    .bind(f64::from(ANSWER_KEPT_SECONDS))
    .bind(f64::from(CLAIM_SECONDS_MAX))
    .execute(pool)
    .await?;
    if claimed.rows_affected() == 0 {
        return held(pool, request).await;
    }
    match told(pool, request).await? {
        Some(fact) => {
            release(pool, request).await?;
            Ok(Claim::CarriedOut(fact))
        }
        None => Ok(Claim::Fresh),
    }
}

/// Keeps the answer of a claimed request.
pub async fn answer(
    pool: &PgPool,
    request: &NamedRequest,
    answer: &KeptAnswer,
) -> Result<(), StoreError> {
    sqlx::query(
        "update record.answers set status = $3, answer = $4 where organization_id = $1 and request = $2",
    )
    .bind(request.organization.to_string())
    .bind(request.name.to_string())
    .bind(i32::from(answer.status))
    .bind(&answer.body)
    .execute(pool)
    .await?;
    Ok(())
}

/// Gives up a claim: the same name is free for another try.
pub async fn release(pool: &PgPool, request: &NamedRequest) -> Result<(), StoreError> {
    sqlx::query(
        "delete from record.answers where organization_id = $1 and request = $2 and status is null",
    )
    .bind(request.organization.to_string())
    .bind(request.name.to_string())
    .execute(pool)
    .await?;
    Ok(())
}

async fn remove_old(pool: &PgPool, organization: OrganizationId) -> Result<(), StoreError> {
    sqlx::query(
        "delete from record.answers where organization_id = $1 and request in ( \
             select request from record.answers where organization_id = $1 \
               and claimed_at < clock_timestamp() - make_interval(secs => $2) \
             order by claimed_at limit $3)",
    )
    .bind(organization.to_string())
    .bind(f64::from(ANSWER_KEPT_SECONDS))
    .bind(REMOVED_MAX)
    .execute(pool)
    .await?;
    Ok(())
}

async fn held(pool: &PgPool, request: &NamedRequest) -> Result<Claim, StoreError> {
    let row = sqlx::query(
        "select request, body_sha256, status, answer from record.answers where organization_id = $1 and request = $2",
    )
    .bind(request.organization.to_string())
    .bind(request.name.to_string())
    .fetch_optional(pool)
    .await?;
    // It was released in between; whoever did it may have more to say the next time.
    let Some(row) = row else {
        return Ok(Claim::Busy);
    };
    let columns = Columns::new(&row, TABLE, "request")?;
    if columns.digest("body_sha256")? != request.body {
        return Ok(Claim::OtherBody);
    }
    let status: Option<i16> = columns.plain("status")?;
    let body: Option<String> = columns.plain("answer")?;
    let (Some(status), Some(body)) = (status, body) else {
        return Ok(Claim::Busy);
    };
    let status = u16::try_from(status).map_err(|_| columns.inconsistent("status"))?;
    Ok(Claim::Answered(KeptAnswer { status, body }))
}

/// The first fact that the request's command told.
async fn told(pool: &PgPool, request: &NamedRequest) -> Result<Option<Value>, StoreError> {
    let fact = sqlx::query_scalar(
        "select payload from log.events where aggregate_type = 'fact' and command_id = $1 \
           and command_id like 'request-%' order by global_position limit 1",
    )
    .bind(request.command_id())
    .fetch_optional(pool)
    .await?;
    Ok(fact)
}
