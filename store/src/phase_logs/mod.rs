//! The text that a phase writes: appended in numbered chunks, read from any offset, kept up to a
//! bound. A chunk that arrives twice counts once, and one that arrives early is asked for again.

mod append;
mod read;

pub use append::{AppendOutcome, Chunk, append, close};
pub use read::{LogSlice, TAIL_BYTES_MAX, TAIL_LINES_MAX, read, tail_lines};

use stackship_domain::ids::RunId;

use crate::Store;
use crate::notify::{self, Topic};

/// The most bytes of a log that are kept; a line says when there was more.
pub const LOG_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The most bytes one read answers with.
pub const READ_BYTES_MAX: usize = 1024 * 1024;

/// Whose log it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogPhase {
    /// The plan's.
    Plan,
    /// Policy evaluation's.
    Policy,
    /// The apply's.
    Apply,
}

impl LogPhase {
    /// The name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Policy => "policy",
            Self::Apply => "apply",
        }
    }
}

/// Nudges readers. What they wait for is in already, so a lost nudge costs only their fallback
/// interval.
async fn nudge(store: &Store, run: RunId) {
    if let Err(error) = notify::send(&store.pool, Topic::Logs, &run.to_string()).await {
        tracing::warn!(error = %error, run.id = %run, "A nudge about a phase log was lost");
    }
}
