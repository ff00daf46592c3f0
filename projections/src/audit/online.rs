//! Chains as the database has them: their heads, and their check against the log itself.

use std::io::BufRead;

use sqlx::PgPool;
use stackship_domain::Sha256Digest;

use super::heads::HeadLog;
use super::page::digest;
use super::stored::read_part;
use super::verify::{ChainCheck, Fault, Verified, VerifyError, Witness};
use crate::ProjectionError;

/// Where an organization's chain ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainHead {
    /// The tenant.
    pub organization: String,
    /// The last entry's number.
    pub number: i64,
    /// The last entry's hash.
    pub hash: Sha256Digest,
}

/// Where chains end: those of at most `limit` organizations, in the order of their ids, behind this one.
pub async fn audit_heads_after(
    pool: &PgPool,
    organization: &str,
    limit: i64,
) -> Result<Vec<ChainHead>, ProjectionError> {
    let rows: Vec<(String, i64, Vec<u8>)> = sqlx::query_as(
        "select organization_id, number, hash from view.audit_heads where organization_id > $1 \
         order by organization_id limit $2",
    )
    .bind(organization)
    .bind(limit)
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(read).collect()
}

/// Waits until everything that was read before is on disk. The projector does not wait for the disk, so
/// a crash of the database can take away entries that were seen already; they are made anew from the
/// log, but until then a head that was signed for them looks like one of a chain that was cut.
pub async fn audit_on_disk(pool: &PgPool) -> Result<(), ProjectionError> {
    // A commit that waits for the disk waits for all before it; it needs something to write.
    sqlx::query(
        "select set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'stackship', '')",
    )
    .execute(pool)
    .await?;
    Ok(())
}

pub(super) async fn head(
    pool: &PgPool,
    organization: &str,
) -> Result<Option<ChainHead>, ProjectionError> {
    let row: Option<(String, i64, Vec<u8>)> = sqlx::query_as(
        "select organization_id, number, hash from view.audit_heads where organization_id = $1",
    )
    .bind(organization)
    .fetch_optional(pool)
    .await?;
    row.map(read).transpose()
}

fn read(
    (organization, number, hash): (String, i64, Vec<u8>),
) -> Result<ChainHead, ProjectionError> {
    let hash = digest(&hash).ok_or_else(|| ProjectionError::row("audit_heads", &organization))?;
    Ok(ChainHead {
        organization,
        number,
        hash,
    })
}

/// Why a stored audit did not pass.
impl From<ProjectionError> for VerifyError {
    fn from(error: ProjectionError) -> Self {
        Self::Read(std::io::Error::other(error))
    }
}

/// Checks an organization's audit in the database: every entry against its event, every event that was
/// followed against the entries, the end against the kept head; with signed heads also against those.
pub async fn verify_stored<R: BufRead>(
    pool: &PgPool,
    organization: &str,
    heads: Option<&mut HeadLog<R>>,
) -> Result<Verified, VerifyError> {
    let kept = head(pool, organization).await?;
    let until = kept.as_ref().map_or(0, |head| head.number);
    let (mut chain, mut witness) = (ChainCheck::default(), Witness::new(heads));
    loop {
        let entries = read_part(pool, organization, chain.number() + 1, until).await?;
        if entries.is_empty() {
            break;
        }
        for entry in &entries {
            chain.take(&entry.line(chain.hash())?)?;
            witness.meet(organization, &chain)?;
        }
    }
    if let Some(head) = kept
        && (head.number, head.hash) != (chain.number(), chain.hash())
    {
        return Err(Fault::HeadDiffers {
            said: head.number,
            number: chain.number(),
            what: "the end was cut off, or its head was changed",
        }
        .into());
    }
    witness.finish(organization, &chain)?;
    nothing_beside(pool, organization, until).await?;
    Ok(Verified {
        organization: organization.to_owned(),
        entries: chain.number(),
        hash: chain.hash(),
        heads: witness.met(),
    })
}

/// No event that the projector has passed may be without an entry. What is written meanwhile is not
/// followed yet, so it is no part of the question.
async fn nothing_beside(pool: &PgPool, organization: &str, until: i64) -> Result<(), VerifyError> {
    let beside: Option<(String, i64)> = sqlx::query_as(
        "select event.aggregate_id, event.sequence from log.events as event, view.checkpoints as live \
         where live.name = 'live' and event.organization_id = $1 \
           and (event.epoch, (event.transaction_id::text)::bigint, event.global_position) \
               <= (live.epoch, live.transaction_id, live.global_position) \
           and not exists (select from view.audit_entries as entry \
               where entry.aggregate_type = event.aggregate_type and entry.aggregate_id = event.aggregate_id \
                 and entry.sequence = event.sequence) \
         order by event.epoch, event.transaction_id, event.global_position limit 1",
    )
    .bind(organization)
    .fetch_optional(pool)
    .await
    .map_err(ProjectionError::from)?;
    if let Some((aggregate, sequence)) = beside {
        return Err(Fault::EntryMissing {
            aggregate,
            sequence,
        }
        .into());
    }
    let beyond: Option<i64> = sqlx::query_scalar(
        "select number from view.audit_entries as entry where organization_id = $1 and number > $2 \
           and number > (select number from view.audit_heads where organization_id = $1) limit 1",
    )
    .bind(organization)
    .bind(until)
    .fetch_optional(pool)
    .await
    .map_err(ProjectionError::from)?;
    match beyond {
        Some(found) => Err(Fault::OutOfPlace {
            after: until,
            found,
        }
        .into()),
        None => Ok(()),
    }
}
