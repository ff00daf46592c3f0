//! Appending. One row a log is locked first, so that appenders take turns.

use sqlx::{PgConnection, Row as _};
use stackship_domain::ids::RunId;

use super::{LOG_BYTES_MAX, LogPhase, nudge};
use crate::{Store, StoreError};

/// The most bytes of one stored piece; the schema has the same bound.
const PIECE_BYTES_MAX: usize = 256 * 1024;
/// What stands at the end of a log of which more was written than is kept.
const TRUNCATED: &[u8] = "\n… log truncated: more was written than is kept …\n".as_bytes();

/// A numbered part of what an attempt writes.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// Which attempt writes, from 1.
    pub attempt_number: u32,
    /// Which part this is, from 0 within the attempt.
    pub sequence: u64,
    /// The part.
    pub bytes: &'a [u8],
}

/// What became of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOutcome {
    /// It is in.
    Stored {
        /// Where the log ends now.
        end_offset: u64,
    },
    /// It was in before.
    Repeated,
    /// It is not the next one, or its attempt is over.
    Gap {
        /// The next one.
        expected: u64,
    },
    /// The log takes no more: it is closed, or as long as logs get.
    Full,
}

/// The log's row, locked.
struct Head {
    bytes: u64,
    attempt_number: u32,
    next_sequence: u64,
    takes_more: bool,
}

/// Appends a chunk, once.
pub async fn append(
    store: &Store,
    run: RunId,
    phase: LogPhase,
    chunk: Chunk<'_>,
) -> Result<AppendOutcome, StoreError> {
    let mut transaction = store.pool.begin().await?;
    let head = lock_head(&mut transaction, run, phase).await?;
    if !head.takes_more {
        return Ok(AppendOutcome::Full);
    }
    let expected = if chunk.attempt_number > head.attempt_number {
        0
    } else {
        head.next_sequence
    };
    if chunk.attempt_number < head.attempt_number || chunk.sequence > expected {
        return Ok(AppendOutcome::Gap { expected });
    }
    if chunk.sequence < expected {
        return Ok(AppendOutcome::Repeated);
    }
    let room = usize::try_from(LOG_BYTES_MAX.saturating_sub(head.bytes)).unwrap_or(usize::MAX);
    let truncated = chunk.bytes.len() > room;
    let kept = &chunk.bytes[..chunk.bytes.len().min(room)];
    let mut end_offset = head.bytes;
    for piece in kept
        .chunks(PIECE_BYTES_MAX)
        .chain(truncated.then_some(TRUNCATED))
    {
        insert_piece(&mut transaction, run, phase, end_offset, piece).await?;
        end_offset += piece.len() as u64;
    }
    sqlx::query(
        "update record.phase_logs set bytes = $3, attempt_number = $4, next_sequence = $5, truncated = $6 \
         where run_id = $1 and phase = $2",
    )
    .bind(run.to_string())
    .bind(phase.as_str())
    .bind(stored(end_offset, run)?)
    .bind(i32::try_from(chunk.attempt_number).map_err(|_| bad("attempt_number", run))?)
    .bind(stored(chunk.sequence + 1, run)?)
    .bind(truncated)
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    nudge(store, run).await;
    Ok(AppendOutcome::Stored { end_offset })
}

/// Says that a log is complete; closing it again changes nothing and tells nobody.
pub async fn close(store: &Store, run: RunId, phase: LogPhase) -> Result<(), StoreError> {
    let closed = sqlx::query(
        "insert into record.phase_logs as log (run_id, phase, closed_at) values ($1, $2, clock_timestamp()) \
         on conflict (run_id, phase) do update set closed_at = excluded.closed_at where log.closed_at is null",
    )
    .bind(run.to_string())
    .bind(phase.as_str())
    .execute(&store.pool)
    .await?;
    if closed.rows_affected() > 0 {
        nudge(store, run).await;
    }
    Ok(())
}

async fn lock_head(
    connection: &mut PgConnection,
    run: RunId,
    phase: LogPhase,
) -> Result<Head, StoreError> {
    sqlx::query("insert into record.phase_logs (run_id, phase) values ($1, $2) on conflict (run_id, phase) do nothing")
        .bind(run.to_string())
        .bind(phase.as_str())
        .execute(&mut *connection)
        .await?;
    let row = sqlx::query(
        "select bytes, attempt_number::bigint, next_sequence, not truncated and closed_at is null as takes_more \
         from record.phase_logs where run_id = $1 and phase = $2 for update",
    )
    .bind(run.to_string())
    .bind(phase.as_str())
    .fetch_one(connection)
    .await?;
    Ok(Head {
        bytes: u64::try_from(row.try_get::<i64, _>("bytes")?).map_err(|_| bad("bytes", run))?,
        attempt_number: u32::try_from(row.try_get::<i64, _>("attempt_number")?)
            .map_err(|_| bad("attempt_number", run))?,
        next_sequence: u64::try_from(row.try_get::<i64, _>("next_sequence")?)
            .map_err(|_| bad("next_sequence", run))?,
        takes_more: row.try_get("takes_more")?,
    })
}

async fn insert_piece(
    connection: &mut PgConnection,
    run: RunId,
    phase: LogPhase,
    start_offset: u64,
    piece: &[u8],
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into record.log_chunks (run_id, phase, start_offset, body) values ($1, $2, $3, $4)",
    )
    .bind(run.to_string())
    .bind(phase.as_str())
    .bind(stored(start_offset, run)?)
    .bind(piece)
    .execute(connection)
    .await?;
    Ok(())
}

fn stored(number: u64, run: RunId) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| bad("next_sequence", run))
}

fn bad(column: &'static str, run: RunId) -> StoreError {
    StoreError::inconsistent("record.phase_logs", column, run)
}
