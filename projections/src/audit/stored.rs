//! Entries as the database has them, in parts that fit into memory.

use serde_json::value::RawValue;
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row as _};
use stackship_domain::{Sha256Digest, Timestamp};
use stackship_store::DbTime;

use super::page::digest;
use super::{EntryLine, Fault};
use crate::ProjectionError;

/// The most entries of one part.
const PART_ENTRIES_MAX: i64 = 500;
/// The most bytes that the payloads of one part have together, unless one alone has more.
const PART_BYTES_MAX: i64 = 4 * 1024 * 1024;

/// Payloads travel as the database prints them: numbers keep their digits.
const READ: &str = "\
select * from (\
    select entry.*, event.payload::text as payload_text, \
        (entry.organization_id, entry.event_type, entry.event_version, entry.actor, entry.request_id, \
            entry.command_id, entry.recorded_at) \
        is distinct from (event.organization_id, event.event_type, event.event_version, \
            event.metadata ->> 'actor', event.metadata ->> 'request_id', event.command_id, event.recorded_at) \
        as differs, \
        sum(octet_length(event.payload::text)) over (order by entry.number) as bytes \
    from view.audit_entries as entry \
    left join log.events as event using (aggregate_type, aggregate_id, sequence) \
    where entry.organization_id = $1 and entry.number between $2 and $3) as part \
where number = $2 or bytes <= $4 order by number";

/// An entry with its event; without one when the event is gone.
pub(super) struct StoredEntry {
    organization: String,
    pub(super) number: i64,
    aggregate_type: String,
    aggregate_id: String,
    sequence: i64,
    event_type: String,
    event_version: String,
    actor: String,
    request_id: String,
    command_id: String,
    recorded_at: Timestamp,
    pub(super) hash: Sha256Digest,
    payload: Option<Box<RawValue>>,
    /// Whether the event says another thing than the entry.
    differs: bool,
}

/// The next entries from number `first` on, up to `last`; none when there are no more.
pub(super) async fn read_part(
    pool: &PgPool,
    organization: &str,
    first: i64,
    last: i64,
) -> Result<Vec<StoredEntry>, ProjectionError> {
    let rows = sqlx::query(READ)
        .bind(organization)
        .bind(first)
        .bind(last.min(first.saturating_add(PART_ENTRIES_MAX - 1)))
        .bind(PART_BYTES_MAX)
        .fetch_all(pool)
        .await?;
    rows.iter().map(StoredEntry::read).collect()
}

impl StoredEntry {
    fn read(row: &PgRow) -> Result<Self, ProjectionError> {
        let organization: String = row.try_get("organization_id")?;
        let number: i64 = row.try_get("number")?;
        let inconsistent =
            || ProjectionError::row("audit_entries", format!("{organization}/{number}"));
        let hash: Vec<u8> = row.try_get("hash")?;
        let payload: Option<String> = row.try_get("payload_text")?;
        let payload = payload.map(RawValue::from_string).transpose();
        Ok(Self {
            number,
            aggregate_type: row.try_get("aggregate_type")?,
            aggregate_id: row.try_get("aggregate_id")?,
            sequence: row.try_get("sequence")?,
            event_type: row.try_get("event_type")?,
            event_version: row.try_get("event_version")?,
            actor: row.try_get("actor")?,
            request_id: row.try_get("request_id")?,
            command_id: row.try_get("command_id")?,
            recorded_at: row.try_get::<DbTime, _>("recorded_at")?.get(),
            hash: digest(&hash).ok_or_else(inconsistent)?,
            payload: payload.map_err(|_| inconsistent())?,
            differs: row.try_get("differs")?,
            organization,
        })
    }

    /// Its line behind the entry with this hash.
    pub(super) fn line(&self, previous_hash: Sha256Digest) -> Result<EntryLine<'_>, Fault> {
        let number = self.number;
        let payload = self.payload.as_deref();
        let payload = payload.ok_or(Fault::EventMissing { number })?;
        if self.differs {
            return Err(Fault::Changed { number });
        }
        Ok(EntryLine {
            organization: self.organization.as_str().into(),
            position: self.number,
            aggregate_type: self.aggregate_type.as_str().into(),
            aggregate_id: self.aggregate_id.as_str().into(),
            sequence: self.sequence,
            event_type: self.event_type.as_str().into(),
            event_version: self.event_version.as_str().into(),
            actor: self.actor.as_str().into(),
            request_id: self.request_id.as_str().into(),
            command_id: self.command_id.as_str().into(),
            recorded_at: self.recorded_at,
            payload,
            previous_hash,
            hash: self.hash,
        })
    }
}
