//! The lines of an export: one JSON object for each entry, in the order of the chain, and one for the
//! head, which says that nothing is missing.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use stackship_domain::{Sha256Digest, Timestamp};

use super::{CHAIN_START, Columns};

/// The longest line that is read: an event holds one MiB as the database counts, and its text with
/// every character escaped is a few times as long.
pub const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How a head's line begins; no entry's does.
pub(super) const HEAD_PREFIX: &[u8] = b"{\"head\":";

/// One entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryLine<'a> {
    /// The tenant.
    #[serde(borrow)]
    pub organization: Cow<'a, str>,
    /// Counts from 1, without gaps.
    pub position: i64,
    /// `run`, `workspace` or `fact`.
    #[serde(borrow)]
    pub aggregate_type: Cow<'a, str>,
    /// Whose event it is.
    #[serde(borrow)]
    pub aggregate_id: Cow<'a, str>,
    /// Its number within the aggregate.
    pub sequence: i64,
    /// Its name.
    #[serde(borrow)]
    pub event_type: Cow<'a, str>,
    /// Version of its stored shape.
    #[serde(borrow)]
    pub event_version: Cow<'a, str>,
    /// Who caused it.
    #[serde(borrow)]
    pub actor: Cow<'a, str>,
    /// The request that led to it.
    #[serde(borrow)]
    pub request_id: Cow<'a, str>,
    /// The command that led to it.
    #[serde(borrow)]
    pub command_id: Cow<'a, str>,
    /// When it was written.
    pub recorded_at: Timestamp,
    /// What happened: the database's own text, so that whoever reads it gets the numbers that were
    /// hashed, to the last bit.
    #[serde(borrow)]
    pub payload: &'a RawValue,
    /// The hash of the entry before; zeros before the first one.
    pub previous_hash: Sha256Digest,
    /// The hash of this one.
    pub hash: Sha256Digest,
}

impl EntryLine<'_> {
    /// What is hashed beside the payload.
    pub fn columns(&self) -> Columns<'_> {
        Columns {
            organization: &self.organization,
            aggregate_type: &self.aggregate_type,
            aggregate_id: &self.aggregate_id,
            sequence: self.sequence,
            event_type: &self.event_type,
            event_version: &self.event_version,
            actor: &self.actor,
            request_id: &self.request_id,
            command_id: &self.command_id,
            recorded_at: self.recorded_at,
        }
    }
}

/// The last line: where the chain ended when it was exported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportHead {
    /// The layout that is hashed.
    pub chain: String,
    /// The tenant.
    pub organization: String,
    /// The last entry's position; 0 when there is none.
    pub position: i64,
    /// The last entry's hash; zeros when there is none.
    pub hash: Sha256Digest,
    /// When the export began.
    pub exported_at: Timestamp,
    /// The SHA-256 of every byte before this line and of this line with zeros here.
    pub sha256: Sha256Digest,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeadLine {
    pub(super) head: ExportHead,
}

impl HeadLine {
    /// The line of a head behind everything that `before` has digested.
    pub(super) fn sealed(
        mut head: ExportHead,
        mut before: Sha256,
    ) -> Result<Vec<u8>, serde_json::Error> {
        head.sha256 = CHAIN_START;
        let mut line = Self { head };
        before.update(bytes(&line)?);
        line.head.sha256 = Sha256Digest::from_bytes(before.finalize().into());
        bytes(&line)
    }
}

/// A line with its end.
pub(super) fn bytes(line: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    Ok(bytes)
}
