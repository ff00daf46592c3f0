//! The audit: every event of an organization in one order, each chained to the one before by its
//! SHA-256. A changed, missing or moved event breaks the chain; a cut-off end does not, which is why
//! heads are also to be kept outside the database.

mod chain;
mod page;
mod table;

use stackship_domain::ids::OrganizationId;
use stackship_domain::{Actor, Sha256Digest, Timestamp};

pub use chain::{CHAIN_START, CHAIN_VERSION, link};
pub(crate) use table::append;

/// One event of an organization, in the order of its audit.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// The hash that chains it to the entry before.
    pub hash: Sha256Digest,
}

/// A page of an organization's audit, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// The entries.
    pub entries: Vec<AuditEntry>,
    /// What to ask for entries before; `None` on the last page.
    pub next_before: Option<i64>,
}
