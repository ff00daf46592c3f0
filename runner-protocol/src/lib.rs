//! The words that a runner and the control plane say to each other over HTTP: `/runner/v1`.
//!
//! Both sides speak these types and nothing else, so neither room depends on the other. A lease
//! carries two secrets: the *lease token* opens `/runner/v1/attempts/{id}/…` for this attempt alone,
//! the *run token* opens the parts of `/api/v2` that OpenTofu needs in this phase alone.
//!
//! | method and path | body | answer |
//! | --- | --- | --- |
//! | `POST /runner/v1/leases` | [`LeaseRequest`] | 200 [`Lease`], or 204 when nothing was offered in time |
//! | `POST /runner/v1/attempts/{id}/heartbeat` | [`Heartbeat`] | 200 [`HeartbeatAnswer`]; 410 when the lease is lost |
//! | `GET /runner/v1/attempts/{id}/inputs/{name}` | | the bytes of an [`InputName`] |
//! | `PUT /runner/v1/attempts/{id}/artifacts/{kind}` | bytes of an [`ArtifactKind`], [`SHA256_HEADER`] | 200 [`StoredArtifact`] |
//! | `POST /runner/v1/attempts/{id}/logs?sequence=N` | sanitized bytes | 204; saying a sequence again is harmless |
//! | `POST /runner/v1/attempts/{id}/result` | [`PhaseResult`] | 204; saying it again is harmless |
//! | `POST /runner/v1/attempts/{id}/hand-back` | | 204: another runner may take the attempt |

use std::fmt;

use serde::{Deserialize, Serialize};
use stackship_domain::ids::{
    AttemptId, ObjectId, OrganizationId, RunId, RunnerId, StateVersionId, WorkspaceId,
};
use stackship_domain::run::{Counts, Evidence, EvidencePart, Phase, Predecessor, TerminalReason};
use stackship_domain::{Fence, Name, Sha256Digest, Timestamp, TofuVersion};

/// The name of this protocol, with its version.
pub const PROTOCOL: &str = "runner/v1";
/// Request header of an artifact upload: the SHA-256 of the body, 64 hexadecimal digits.
pub const SHA256_HEADER: &str = "x-stackship-sha256";
/// The most bytes one log append may carry.
pub const LOG_APPEND_BYTES_MAX: usize = 256 * 1024;
/// The most bytes of sanitized log that one phase keeps.
pub const LOG_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The longest a lease request may wait, in milliseconds.
pub const LEASE_WAIT_MS_MAX: u64 = 25_000;
/// The longest a heartbeat may wait for an order, in milliseconds.
pub const HEARTBEAT_WAIT_MS_MAX: u64 = 25_000;
/// The largest plan file, in bytes.
pub const PLAN_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The largest plan as JSON, in bytes (S-ART-5).
pub const PLAN_JSON_BYTES_MAX: u64 = 100 * 1024 * 1024;
/// The largest plan-diff, in bytes (S-ART-2).
pub const PLAN_DIFF_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The largest plan as policies see it, in bytes.
pub const POLICY_INPUT_BYTES_MAX: u64 = 100 * 1024 * 1024;
/// The largest dependency lock file, in bytes.
pub const LOCK_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The largest state, in bytes.
pub const STATE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The largest packed configuration, in bytes.
pub const CONFIGURATION_BYTES_MAX: u64 = 100 * 1024 * 1024;
/// The most characters of detail in a result.
pub const DETAIL_CHARS_MAX: usize = 1_000;

/// A secret text: never shown by `Debug`, never by accident in a log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The secret itself; for the one place that must write it into a header.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

/// A runner asks for work.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseRequest {
    /// Where the runner executes; only runs pinned to this region are offered.
    pub region: String,
    /// What it can execute, as OpenTofu names it: `linux_amd64`.
    pub platform: String,
    /// How long to wait for an offer, in milliseconds; cut to [`LEASE_WAIT_MS_MAX`].
    pub wait_ms: u64,
    /// Version of the runner's program.
    pub release: String,
    /// Whether runs are isolated: `bubblewrap`, or `none` in a development environment.
    pub isolation: String,
}

/// One attempt, leased to one runner for a limited time.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// The attempt.
    pub attempt: AttemptId,
    /// Its number within the phase.
    pub number: u32,
    /// The runner that holds it.
    pub runner: RunnerId,
    /// The run.
    pub run: RunId,
    /// The phase to execute.
    pub phase: Phase,
    /// The tenant.
    pub organization: OrganizationId,
    /// Its name, as the `cloud` block has it.
    pub organization_name: Name,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Its name, as the `cloud` block has it.
    pub workspace_name: Name,
    /// The fence under which this attempt writes; absent for a speculative run.
    pub fence: Option<Fence>,
    /// Opens this attempt's endpoints.
    pub lease_token: Secret,
    /// Opens this phase's part of `/api/v2`; added by the gateway, never handed to the sandbox.
    pub run_token: Secret,
    /// How long the lease lasts without a heartbeat, in seconds.
    pub lease_seconds: u32,
    /// The exact release to run.
    pub tofu_version: TofuVersion,
    /// The packed configuration.
    pub configuration: InputRef,
    /// The input snapshot.
    pub snapshot: InputRef,
    /// The state this phase starts from.
    pub predecessor: Predecessor,
    /// What was approved; present exactly for an apply.
    pub approved: Option<ApprovedPlan>,
    /// Longest time for the phase itself, in seconds.
    pub phase_seconds_max: u32,
}

/// The bytes a runner fetches, and what they must be.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputRef {
    /// SHA-256 of the exact bytes.
    pub sha256: Sha256Digest,
    /// Their number.
    pub bytes: u64,
}

/// What a person approved, with everything needed to check it again part by part.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovedPlan {
    /// Every part.
    pub evidence: Evidence,
    /// The digest that was approved.
    pub binding: Sha256Digest,
    /// The plan file.
    pub plan: InputRef,
    /// The plan as JSON.
    pub plan_json: InputRef,
    /// The policy result.
    pub policy_result: InputRef,
    /// The dependency lock file; absent when the plan needed no provider.
    pub lock_file: Option<InputRef>,
}

/// An input, as it stands in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputName {
    /// The packed configuration.
    Configuration,
    /// The input snapshot.
    Snapshot,
    /// The approved plan file.
    Plan,
    /// The approved plan as JSON.
    PlanJson,
    /// The approved policy result.
    PolicyResult,
    /// The dependency lock file of the plan.
    LockFile,
}

impl InputName {
    /// The path segment.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Snapshot => "snapshot",
            Self::Plan => "plan",
            Self::PlanJson => "plan_json",
            Self::PolicyResult => "policy_result",
            Self::LockFile => "lock_file",
        }
    }
}

/// An artifact, as it stands in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// The plan file.
    Plan,
    /// The plan as JSON.
    PlanJson,
    /// What of the plan people may see.
    PlanDiff,
    /// What of the plan policies see.
    PolicyInput,
    /// The dependency lock file.
    LockFile,
    /// An `errored.tfstate` that OpenTofu left behind.
    ErroredState,
}

impl ArtifactKind {
    /// The path segment.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::PlanJson => "plan_json",
            Self::PlanDiff => "plan_diff",
            Self::PolicyInput => "policy_input",
            Self::LockFile => "lock_file",
            Self::ErroredState => "errored_state",
        }
    }

    /// The most bytes the control plane takes.
    pub const fn bytes_max(self) -> u64 {
        match self {
            Self::Plan => PLAN_BYTES_MAX,
            Self::PlanJson => PLAN_JSON_BYTES_MAX,
            Self::PlanDiff => PLAN_DIFF_BYTES_MAX,
            Self::PolicyInput => POLICY_INPUT_BYTES_MAX,
            Self::LockFile => LOCK_FILE_BYTES_MAX,
            Self::ErroredState => STATE_BYTES_MAX,
        }
    }
}

/// A stored artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredArtifact {
    /// Where it is.
    pub object: ObjectId,
    /// SHA-256 of its exact bytes.
    pub sha256: Sha256Digest,
    /// Their number.
    pub bytes: u64,
}

/// A runner says that it is alive, and listens for an order. The lease is renewed when this arrives;
/// the answer comes at once when the run was asked to stop, as soon as it is asked to, and otherwise
/// when the wait is over.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    /// Whether `tofu apply` has been started, or is about to be: from here on the attempt cannot be
    /// handed back. A runner sends it, and waits for the answer, before it starts `tofu apply`.
    pub tofu_started: bool,
    /// How long the answer may wait for an order: no longer than [`HEARTBEAT_WAIT_MS_MAX`] and a
    /// third of the lease.
    #[serde(default)]
    pub wait_ms: u64,
}

/// What the control plane answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatAnswer {
    /// When the lease ends without another heartbeat.
    pub lease_expires_at: Timestamp,
    /// Whether somebody asked the run to stop.
    pub cancel: bool,
}

/// How a phase ended, as the runner saw it. What it means is decided by the control plane.
#[expect(
    clippy::large_enum_variant,
    reason = "one value a phase, and its wire form stays flat"
)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case", deny_unknown_fields)]
pub enum PhaseResult {
    /// A plan ended.
    Plan {
        /// How.
        end: PlanEnd,
    },
    /// An apply ended.
    Apply {
        /// How.
        end: ApplyEnd,
    },
}

/// How a plan ended.
#[expect(
    clippy::large_enum_variant,
    reason = "one value a phase, and its wire form stays flat"
)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case", deny_unknown_fields)]
pub enum PlanEnd {
    /// `tofu plan` wrote a plan.
    Planned {
        /// Exit code of `tofu plan -detailed-exitcode`: 0 or 2.
        exit_code: i32,
        /// What the plan's JSON holds.
        json: PlanJsonFacts,
        /// The plan file.
        plan: StoredArtifact,
        /// The plan as JSON.
        plan_json: StoredArtifact,
        /// What of the plan people may see.
        plan_diff: StoredArtifact,
        /// What of the plan policies see; absent when that would be too long, and no policy may pass.
        policy_input: Option<StoredArtifact>,
        /// The dependency lock file.
        lock_file: Option<StoredArtifact>,
        /// SHA-256 of the dependency bundle.
        dependencies: Sha256Digest,
        /// Where and how isolated it ran.
        sandbox: serde_json::Value,
    },
    /// There is no plan.
    Failed {
        /// `plan_failed`, `plan_refused`, `plan_limit_exceeded` or `sandbox_unavailable`.
        reason: TerminalReason,
        /// One sentence, free of secrets.
        detail: String,
    },
    /// The plan was interrupted because a cancel was asked for.
    Stopped,
    /// The sandbox vanished; another attempt may succeed.
    SandboxLost {
        /// One sentence, free of secrets.
        detail: String,
    },
}

/// What the JSON form of a plan says, counted by the same reading that makes the plan-diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanJsonFacts {
    /// Counts by action.
    pub counts: Counts,
    /// Whether the document marks the plan as errored.
    pub errored: bool,
    /// How many resources and outputs policies see nothing of, because redaction was not certain; at
    /// least one when OpenTofu left changes for a later plan.
    pub doubtful: u64,
}

/// How an apply ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case", deny_unknown_fields)]
pub enum ApplyEnd {
    /// `tofu apply` ended by itself with this exit code.
    Exited {
        /// The exit code.
        exit_code: i32,
        /// Whether the runner had interrupted it.
        interrupted: bool,
        /// The newest state that went through the gateway: what the runner saw of it.
        seen: Option<SeenState>,
        /// An `errored.tfstate` in the working directory.
        errored_state: Option<StoredArtifact>,
        /// Where and how isolated it ran.
        sandbox: serde_json::Value,
    },
    /// `tofu apply` was never started.
    NotStarted {
        /// The part of the evidence that differed, if that was it.
        part: Option<EvidencePart>,
        /// One sentence, free of secrets.
        detail: String,
    },
    /// The sandbox ended without an exit code of `tofu apply`: killed, out of memory, over a limit.
    Killed {
        /// Whether a named limit did it.
        limit_exceeded: bool,
        /// One sentence, free of secrets.
        detail: String,
        /// The newest state that went through the gateway.
        seen: Option<SeenState>,
        /// An `errored.tfstate` in the working directory.
        errored_state: Option<StoredArtifact>,
    },
}

/// A state upload, as the gateway saw it pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenState {
    /// The state version the control plane named.
    pub version: StateVersionId,
    /// SHA-256 of the bytes that passed.
    pub sha256: Sha256Digest,
}
