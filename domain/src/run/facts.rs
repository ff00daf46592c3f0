//! What is fixed when a run is created and never changes.

use serde::{Deserialize, Serialize};

use super::PolicyPins;
use super::status::closed_set;
use crate::ids::{ConfigurationVersionId, InputSnapshotId, OrganizationId, ProjectId, WorkspaceId};
use crate::{Actor, Fence, Sha256Digest, Timestamp, TofuVersion};

closed_set! {
    /// What a run may become (S-RUN-5).
    RunKind {
        /// Planned, reviewed, approved, applied.
        PlanAndApply = "plan_and_apply",
        /// Planned and never applied.
        Speculative = "speculative",
    }
}

closed_set! {
    /// Where a run came from (S-SRC-1).
    SourceKind {
        /// The v1 API.
        Api = "api",
        /// The tofu CLI, through v2.
        Cli = "cli",
        /// The GitHub App.
        Github = "github",
    }
}

/// Where a run came from, with what that source knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The edge.
    pub kind: SourceKind,
    /// Commit SHA, when the source knows one.
    pub commit_sha: Option<String>,
    /// Branch or pull-request ref.
    pub git_ref: Option<String>,
    /// The Git commit message: secondary to the run's own message (S-SRC-5).
    pub commit_message: Option<String>,
    /// Who wrote the commit.
    pub commit_author: Option<String>,
    /// A link to the commit.
    pub commit_url: Option<String>,
}

impl Source {
    /// A source without any version control.
    pub const fn plain(kind: SourceKind) -> Self {
        Self {
            kind,
            commit_sha: None,
            git_ref: None,
            commit_message: None,
            commit_author: None,
            commit_url: None,
        }
    }
}

/// What a run pins before anything executes (S-RUN-2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins {
    /// SHA-256 of the packed configuration.
    pub configuration: Sha256Digest,
    /// SHA-256 of the canonical input snapshot.
    pub inputs: Sha256Digest,
    /// The exact OpenTofu release.
    pub tofu_version: TofuVersion,
    /// Where runners of this run execute.
    pub region: String,
    /// Operating system and architecture, as OpenTofu names them: `linux_amd64`.
    pub platform: String,
    /// The policies that it is judged by. A run that was created before there were any has none.
    #[serde(default)]
    pub policies: PolicyPins,
}

/// What a creator asks for. `auto_apply` and `destroy` are here to be refused (S-RUN-3, S-RUN-6):
/// an edge passes on what it was asked, and the aggregate says no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// What the run will be, once created.
    pub facts: Facts,
    /// Whether the caller asked for an apply without approval.
    pub auto_apply: bool,
    /// Whether the caller asked for a destroy-mode run.
    pub destroy: bool,
}

/// What never changes about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The tenant.
    pub organization: OrganizationId,
    /// The project of the workspace at creation.
    pub project: ProjectId,
    /// The workspace whose state it plans against.
    pub workspace: WorkspaceId,
    /// What the run may become.
    pub kind: RunKind,
    /// Where it came from.
    pub source: Source,
    /// The run's own title.
    pub message: String,
    /// Who created it.
    pub created_by: Actor,
    /// When it was created; microseconds, and half of the inventory's sort key (S-INV-1).
    pub created_at: Timestamp,
    /// The uploaded source.
    pub configuration_version: ConfigurationVersionId,
    /// The pinned inputs.
    pub input_snapshot: InputSnapshotId,
    /// Keys of sensitive variables left out of a speculative snapshot (S-SRC-4).
    pub withheld_variables: Vec<String>,
    /// Directory below the configuration's root in which OpenTofu runs.
    pub working_directory: String,
    /// What cannot change any more.
    pub pins: Pins,
}

/// Whether a run has its workspace's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// A speculative run takes no lock.
    NotNeeded,
    /// Not acquired yet.
    Waiting,
    /// Acquired, with this fence.
    Held(Fence),
}

impl Hold {
    /// The fence, when the lock is held.
    pub const fn fence(self) -> Option<Fence> {
        match self {
            Self::NotNeeded | Self::Waiting => None,
            Self::Held(fence) => Some(fence),
        }
    }
}
