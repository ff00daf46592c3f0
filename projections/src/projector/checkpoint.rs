//! How far the read models have followed the log.

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgPool, Row as _};
use stackship_domain::Timestamp;
use stackship_store::DbTime;
use stackship_store::log::{FeedPosition, LoggedEvent};

use crate::ProjectionError;
use crate::target::Target;

/// How far a set of read models has followed the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// Raised by every rebuild.
    pub generation: i64,
    /// The last event that was applied.
    pub position: FeedPosition,
    /// How many events were applied.
    pub applied: i64,
    /// When the last one of them was recorded.
    pub updated_at: Option<Timestamp>,
}

const COLUMNS: &str = "generation, epoch, transaction_id, global_position, applied, updated_at";

/// The checkpoint of what readers see; `None` when the schema has none.
pub async fn checkpoint(pool: &PgPool) -> Result<Option<Checkpoint>, ProjectionError> {
    let row = sqlx::query(&format!(
        "select {COLUMNS} from view.checkpoints where name = 'live'"
    ))
    .fetch_optional(pool)
    .await?;
    row.as_ref().map(read).transpose()
}

/// Takes the checkpoint for one transaction; `None` when another one has it.
pub(crate) async fn lock(
    connection: &mut PgConnection,
    target: Target,
) -> Result<Option<Checkpoint>, ProjectionError> {
    let row = sqlx::query(&format!(
        "select {COLUMNS} from view.checkpoints where name = $1 for update skip locked"
    ))
    .bind(target.checkpoint())
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(read).transpose()
}

/// Moves the checkpoint to `last`, in the transaction that applied everything up to it.
pub(super) async fn advance(
    connection: &mut PgConnection,
    target: Target,
    last: &LoggedEvent,
    applied: usize,
) -> Result<(), ProjectionError> {
    let written = sqlx::query(
        "update view.checkpoints set epoch = $2, transaction_id = $3, global_position = $4, \
             applied = applied + $5, updated_at = $6 where name = $1",
    )
    .bind(target.checkpoint())
    .bind(last.at.epoch)
    .bind(last.at.transaction)
    .bind(last.at.position)
    .bind(i64::try_from(applied).expect("a batch's size fits 64 bits"))
    .bind(DbTime(last.recorded_at))
    .execute(connection)
    .await?
    .rows_affected();
    ProjectionError::all_written("checkpoints", 1, written)
}

/// When the first event behind this position was recorded, readable or not.
pub(super) async fn first_after(
    connection: &mut PgConnection,
    position: FeedPosition,
) -> Result<Option<Timestamp>, ProjectionError> {
    let recorded_at: Option<DbTime> = sqlx::query_scalar(
        "select recorded_at from log.events \
         where (epoch, transaction_id, global_position) > ($1, ($2::text)::xid8, $3) \
         order by epoch, transaction_id, global_position limit 1",
    )
    .bind(position.epoch)
    .bind(position.transaction.to_string())
    .bind(position.position)
    .fetch_optional(connection)
    .await?;
    Ok(recorded_at.map(DbTime::get))
}

fn read(row: &PgRow) -> Result<Checkpoint, ProjectionError> {
    Ok(Checkpoint {
        generation: row.try_get("generation")?,
        position: FeedPosition {
            epoch: row.try_get("epoch")?,
            transaction: row.try_get("transaction_id")?,
            position: row.try_get("global_position")?,
        },
        applied: row.try_get("applied")?,
        updated_at: row
            .try_get::<Option<DbTime>, _>("updated_at")?
            .map(DbTime::get),
    })
}
