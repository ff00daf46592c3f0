//! The inventory: one row a run, for lists and sweeps. A row is a part of the run's review, so it
//! can never tell another story.

mod cursor;
mod page;
mod table;
mod unfinished;

use stackship_domain::ids::{OrganizationId, ProjectId, RunId, WorkspaceId};
use stackship_domain::run::{RunKind, SourceKind, Status};
use stackship_domain::{Actor, Timestamp};

pub(crate) use table::upsert;
pub use unfinished::{UNFINISHED_MAX, UnfinishedRun};

use crate::RunReview;

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryRow {
    /// Which run.
    pub run: RunId,
    /// The tenant.
    pub organization: OrganizationId,
    /// The project of its workspace at its creation.
    pub project: ProjectId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Where it stands.
    pub status: Status,
    /// What it may become.
    pub kind: RunKind,
    /// Its title.
    pub message: String,
    /// Where it came from.
    pub source: SourceKind,
    /// Who created it.
    pub created_by: Actor,
    /// When it was created.
    pub created_at: Timestamp,
    /// When something last happened to it.
    pub updated_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The newest event in here.
    pub last_sequence: i64,
}

/// Which runs a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InventoryFilter {
    /// Only runs that stand here.
    pub status: Option<Status>,
    /// Only runs of this workspace.
    pub workspace: Option<WorkspaceId>,
}

/// A page of runs, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryPage {
    /// The runs.
    pub rows: Vec<InventoryRow>,
    /// Where the next page begins; `None` on the last one.
    pub next_cursor: Option<String>,
}

impl From<&RunReview> for InventoryRow {
    fn from(review: &RunReview) -> Self {
        Self {
            run: review.run,
            organization: review.facts.organization,
            project: review.facts.project,
            workspace: review.facts.workspace,
            status: review.status,
            kind: review.facts.kind,
            message: review.facts.message.clone(),
            source: review.facts.source.kind,
            created_by: review.facts.created_by,
            created_at: review.facts.created_at,
            updated_at: review.updated_at,
            ended_at: review.ended.as_ref().map(|end| end.at),
            last_sequence: review.last_sequence,
        }
    }
}
