//! The audit: every event of an organization in one order, each chained to the one before by its
//! SHA-256. A changed, missing or moved event breaks the chain. A cut-off end does not, and neither
//! does a chain that was written anew from some entry on: signed heads, kept outside the database,
//! show both.

mod chain;
mod cursor;
mod export;
mod heads;
mod line;
mod online;
mod page;
mod stored;
mod strict;
mod table;
mod verify;
mod writer;

use stackship_domain::ids::{OrganizationId, RunId, WorkspaceId};
use stackship_domain::{Actor, Sha256Digest, Timestamp};

pub use chain::{CHAIN_START, CHAIN_VERSION, Columns, Linker, link};
pub use export::AuditExport;
pub use heads::{
    HEAD_LINE_BYTES_MAX, HeadKey, HeadLog, HeadPublicKey, InvalidPublicKey, SignedHead,
};
pub use line::{EntryLine, ExportHead, LINE_BYTES_MAX};
pub use online::{ChainHead, audit_heads_after, audit_on_disk, verify_stored};
pub(crate) use table::append;
pub use verify::{ChainCheck, Fault, Verified, VerifyError, verify_export};
pub use writer::ExportWriter;

/// One event of an organization, in the order of its audit.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// The tenant.
    pub organization: OrganizationId,
    /// Counts from 1 within the organization, without gaps.
    pub number: i64,
    /// `run`, `workspace` or `fact`.
    pub aggregate_type: String,
    /// Whose event it is.
    pub aggregate_id: String,
    /// Its number within the aggregate.
    pub sequence: i64,
    /// Its name.
    pub event_type: String,
    /// Version of its stored shape.
    pub event_version: String,
    /// Who caused it.
    pub actor: Actor,
    /// The request that led to it.
    pub request_id: String,
    /// The command that led to it.
    pub command_id: String,
    /// When it was written.
    pub recorded_at: Timestamp,
    /// The run it is about.
    pub run: Option<String>,
    /// The workspace it is about.
    pub workspace: Option<String>,
    /// What happened, as it was stored.
    pub payload: serde_json::Value,
    /// The hash of the entry before.
    pub previous_hash: Sha256Digest,
    /// The hash that chains it to the entry before.
    pub hash: Sha256Digest,
}

/// Which entries are listed. What is `None` does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    /// Only what this one caused.
    pub actor: Option<Actor>,
    /// Only what is about this run.
    pub run: Option<RunId>,
    /// Only what is about this workspace or one of its runs.
    pub workspace: Option<WorkspaceId>,
    /// Only events of this name.
    pub event_type: Option<String>,
    /// Nothing that was recorded before.
    pub from: Option<Timestamp>,
    /// Nothing that was recorded then or later.
    pub to: Option<Timestamp>,
}

/// A page of an organization's audit, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditPage {
    /// The entries.
    pub entries: Vec<AuditEntry>,
    /// Where the next page begins; `None` on the last one.
    pub next_cursor: Option<String>,
}
