//! Reading, from any offset: only the pieces that are asked for leave the database.

use futures::TryStreamExt as _;
use sqlx::Row as _;
use stackship_domain::ids::{OrganizationId, RunId};

use super::{LogPhase, READ_BYTES_MAX};
use crate::{Store, StoreError};

/// The most lines a tail holds.
pub const TAIL_LINES_MAX: usize = 8;
/// The most bytes a tail looks at.
pub const TAIL_BYTES_MAX: usize = 8 * 1024;

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSlice {
    /// The part.
    pub bytes: Vec<u8>,
    /// Where the next part begins.
    pub next_offset: u64,
    /// Whether the log is complete.
    pub closed: bool,
    /// Where the log ends now. A reader is done when the log is closed and it stands here.
    pub total: u64,
}

/// At most `limit` bytes (and at most [`READ_BYTES_MAX`]) of a log of the organization from `offset`
/// on; nothing where nothing was written yet.
pub async fn read(
    store: &Store,
    organization: OrganizationId,
    run: RunId,
    phase: LogPhase,
    offset: u64,
    limit: usize,
) -> Result<LogSlice, StoreError> {
    let Some((total, closed)) = extent(store, organization, run, phase).await? else {
        return Ok(LogSlice {
            bytes: Vec::new(),
            next_offset: offset,
            closed: false,
            total: 0,
        });
    };
    let end = total.min(offset.saturating_add(limit.min(READ_BYTES_MAX) as u64));
    let bytes = if offset < end {
        pieces(store, run, phase, offset, end).await?
    } else {
        Vec::new()
    };
    Ok(LogSlice {
        next_offset: offset + bytes.len() as u64,
        bytes,
        closed,
        total,
    })
}

/// The last whole lines of a log, at most `lines` and at most `bytes` of them together.
pub async fn tail_lines(
    store: &Store,
    organization: OrganizationId,
    run: RunId,
    phase: LogPhase,
    lines: usize,
    bytes: usize,
) -> Result<Vec<String>, StoreError> {
    let Some((total, _)) = extent(store, organization, run, phase).await? else {
        return Ok(Vec::new());
    };
    let offset = total.saturating_sub(bytes.min(TAIL_BYTES_MAX) as u64);
    if offset == total {
        return Ok(Vec::new());
    }
    let content = pieces(store, run, phase, offset, total).await?;
    // The first line is whole only at the beginning of the log.
    let whole = if offset == 0 {
        0
    } else {
        content
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1)
    };
    let text = String::from_utf8_lossy(&content[whole..]);
    let mut tail: Vec<String> = text
        .lines()
        .rev()
        .take(lines.min(TAIL_LINES_MAX))
        .map(ToOwned::to_owned)
        .collect();
    tail.reverse();
    Ok(tail)
}

/// Where the log ends and whether it is closed. Asked before the pieces: a log that was closed by
/// then has no more of them.
async fn extent(
    store: &Store,
    organization: OrganizationId,
    run: RunId,
    phase: LogPhase,
) -> Result<Option<(u64, bool)>, StoreError> {
    let row = sqlx::query(
        "select log.bytes, log.closed_at is not null as closed \
         from record.phase_logs log join record.runs using (run_id) \
         where organization_id = $1 and log.run_id = $2 and log.phase = $3",
    )
    .bind(organization.to_string())
    .bind(run.to_string())
    .bind(phase.as_str())
    .fetch_optional(&store.pool)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let total = u64::try_from(row.try_get::<i64, _>("bytes")?).map_err(|_| bad(run))?;
    Ok(Some((total, row.try_get("closed")?)))
}

/// The bytes from `offset` to `end`, both within the log.
async fn pieces(
    store: &Store,
    run: RunId,
    phase: LogPhase,
    offset: u64,
    end: u64,
) -> Result<Vec<u8>, StoreError> {
    let mut rows = sqlx::query(
        "select start_offset, body from record.log_chunks \
         where run_id = $1 and phase = $2 and start_offset < $4 and start_offset >= ( \
             select max(start_offset) from record.log_chunks where run_id = $1 and phase = $2 and start_offset <= $3) \
         order by start_offset",
    )
    .bind(run.to_string())
    .bind(phase.as_str())
    .bind(i64::try_from(offset).map_err(|_| bad(run))?)
    .bind(i64::try_from(end).map_err(|_| bad(run))?)
    .fetch(&store.pool);
    let mut content = Vec::new();
    let mut next = offset;
    while let Some(row) = rows.try_next().await? {
        let start = u64::try_from(row.try_get::<i64, _>("start_offset")?).map_err(|_| bad(run))?;
        let body: &[u8] = row.try_get("body")?;
        // Pieces lie side by side; anything else would answer with bytes from elsewhere.
        let from = next
            .checked_sub(start)
            .and_then(|from| usize::try_from(from).ok())
            .ok_or_else(|| bad(run))?;
        let piece = body.get(from..).ok_or_else(|| bad(run))?;
        let wanted = usize::try_from(end - next).unwrap_or(usize::MAX);
        content.extend_from_slice(&piece[..piece.len().min(wanted)]);
        next = start + body.len() as u64;
    }
    Ok(content)
}

fn bad(run: RunId) -> StoreError {
    StoreError::inconsistent("record.log_chunks", "start_offset", run)
}
