//! The log in one order without gaps, for whoever follows it.
//!
//! Positions are handed out before commits, so "greater than the last one" loses events. The order
//! here is by writing transaction, and only transactions older than every one still running are
//! visible: an event can never appear behind the point a reader has passed.

use sqlx::{PgConnection, PgPool, Row as _};
use stackship_domain::Timestamp;

use super::Upcast;
use crate::{DbTime, StoreError};

/// A point in the feed; the reader has seen everything up to and including it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct FeedPosition {
    /// Raised by the restore procedure.
    pub epoch: i16,
    /// The writing transaction; 64-bit, so it never wraps.
    pub transaction: i64,
    /// The position within it.
    pub position: i64,
}

/// One event as the log keeps it, brought to today's shape.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedEvent {
    /// Where it stands in the feed.
    pub at: FeedPosition,
    /// `run`, `workspace` or `fact`.
    pub aggregate_type: String,
    /// Whose event it is.
    pub aggregate_id: String,
    /// Its number within the aggregate, from 1.
    pub sequence: i64,
    /// Its name.
    pub event_type: String,
    /// Version of its stored shape.
    pub event_version: String,
    /// Its payload, in today's shape.
    pub payload: serde_json::Value,
    /// Its payload as it was stored: what a later release, with other ideas of today's shape, reads
    /// as well. For whoever vouches for what is written.
    pub stored_payload: serde_json::Value,
    /// The tenant.
    pub organization_id: String,
    /// Who caused it.
    pub actor: String,
    /// The request that led to it.
    pub request_id: String,
    /// The command that led to it.
    pub command_id: String,
    /// When it was written.
    pub recorded_at: Timestamp,
}

const READ: &str = "\
select epoch, (transaction_id::text)::bigint as transaction, global_position, aggregate_type, aggregate_id, sequence, \
       event_type, event_version, payload, organization_id, metadata ->> 'actor' as actor, \
       metadata ->> 'request_id' as request_id, command_id, recorded_at \
from log.events \
where (epoch, transaction_id, global_position) > ($1, ($2::text)::xid8, $3) \
  and (epoch < (select epoch from log.store_epoch) or transaction_id < pg_snapshot_xmin(pg_current_snapshot())) \
order by epoch, transaction_id, global_position \
limit $4";

/// The next events after `after`, at most `limit`, in feed order.
pub async fn feed_read(
    connection: &mut PgConnection,
    after: FeedPosition,
    limit: i64,
) -> Result<Vec<LoggedEvent>, StoreError> {
    feed_read_as(connection, after, limit, super::upcast).await
}

/// The same as a release with another `upcast` reads it.
pub async fn feed_read_as(
    connection: &mut PgConnection,
    after: FeedPosition,
    limit: i64,
    upcast: Upcast,
) -> Result<Vec<LoggedEvent>, StoreError> {
    let rows = sqlx::query(READ)
        .bind(after.epoch)
        .bind(after.transaction.to_string())
        .bind(after.position)
        .bind(limit)
        .fetch_all(connection)
        .await?;
    rows.iter().map(|row| event(row, upcast)).collect()
}

/// The next events of one aggregate after event `after`, at most `limit`, in their order.
pub async fn stream_read(
    connection: &mut PgConnection,
    (aggregate_type, aggregate_id): (&str, &str),
    after: i64,
    limit: i64,
) -> Result<Vec<LoggedEvent>, StoreError> {
    let rows = sqlx::query(
        "select epoch, (transaction_id::text)::bigint as transaction, global_position, aggregate_type, aggregate_id, \
                sequence, event_type, event_version, payload, organization_id, metadata ->> 'actor' as actor, \
                metadata ->> 'request_id' as request_id, command_id, recorded_at \
         from log.events where aggregate_type = $1 and aggregate_id = $2 and sequence > $3 \
         order by sequence limit $4",
    )
    .bind(aggregate_type)
    .bind(aggregate_id)
    .bind(after)
    .bind(limit)
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| event(row, super::upcast)).collect()
}

/// When an aggregate's event was written; `None` when it has no such event.
pub async fn written_at(
    pool: &PgPool,
    (aggregate_type, aggregate_id): (&str, &str),
    sequence: i64,
) -> Result<Option<Timestamp>, StoreError> {
    let at: Option<DbTime> = sqlx::query_scalar(
        "select recorded_at from log.events where aggregate_type = $1 and aggregate_id = $2 and sequence = $3",
    )
    .bind(aggregate_type)
    .bind(aggregate_id)
    .bind(sequence)
    .fetch_optional(pool)
    .await?;
    Ok(at.map(DbTime::get))
}

/// The last event that is safe to read now; the start of the feed when there is none. A reader that
/// has passed it has seen everything that was committed when this was asked, except what older
/// transactions still hold back.
pub async fn feed_safe_end(connection: &mut PgConnection) -> Result<FeedPosition, StoreError> {
    let row = sqlx::query(
        "select epoch, (transaction_id::text)::bigint as transaction, global_position from log.events \
         where epoch < (select epoch from log.store_epoch) or transaction_id < pg_snapshot_xmin(pg_current_snapshot()) \
         order by epoch desc, transaction_id desc, global_position desc limit 1",
    )
    .fetch_optional(connection)
    .await?;
    row.map_or(Ok(FeedPosition::default()), |row| position(&row))
}

/// Whether this cluster can have written the newest events of the log. A log that was restored into
/// another one may hold transactions that this one has yet to reach: whatever it writes now would
/// stand before what readers have passed, and they would never see it. A new epoch puts it behind.
pub async fn written_here(pool: &PgPool) -> Result<bool, StoreError> {
    let reached: Option<bool> = sqlx::query_scalar(
        "select transaction_id < pg_snapshot_xmax(pg_current_snapshot()) from log.events \
         where epoch = (select epoch from log.store_epoch) order by epoch desc, transaction_id desc limit 1",
    )
    .fetch_optional(pool)
    .await?;
    Ok(reached.unwrap_or(true))
}

fn position(row: &sqlx::postgres::PgRow) -> Result<FeedPosition, StoreError> {
    Ok(FeedPosition {
        epoch: row.try_get("epoch")?,
        transaction: row.try_get("transaction")?,
        position: row.try_get("global_position")?,
    })
}

fn event(row: &sqlx::postgres::PgRow, upcast: Upcast) -> Result<LoggedEvent, StoreError> {
    let at = position(row)?;
    let aggregate_type: String = row.try_get("aggregate_type")?;
    let event_type: String = row.try_get("event_type")?;
    let event_version: String = row.try_get("event_version")?;
    let stored_payload: serde_json::Value = row.try_get("payload")?;
    let payload = upcast(
        &aggregate_type,
        &event_type,
        &event_version,
        stored_payload.clone(),
    )
    .map_err(|_| StoreError::inconsistent("log.events", "event_version", at.position))?;
    Ok(LoggedEvent {
        at,
        aggregate_type,
        aggregate_id: row.try_get("aggregate_id")?,
        sequence: row.try_get("sequence")?,
        event_type,
        event_version,
        payload,
        stored_payload,
        organization_id: row.try_get("organization_id")?,
        actor: row.try_get("actor")?,
        request_id: row.try_get("request_id")?,
        command_id: row.try_get("command_id")?,
        recorded_at: row.try_get::<DbTime, _>("recorded_at")?.get(),
    })
}
