//! What runners, policy and people report about a run, as the log keeps it.

use serde::{Deserialize, Serialize};

use super::evidence::Predecessor;
use super::status::closed_set;
use crate::ids::{AttemptId, ObjectId, RunnerId, StateVersionId};
use crate::{Actor, Sha256Digest, Timestamp};

closed_set! {
    /// The two executed phases.
    Phase {
        /// Planning.
        Plan = "plan",
        /// Applying.
        Apply = "apply",
    }
}

/// One numbered try at a phase in one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Which one.
    pub id: AttemptId,
    /// Counts from 1 within its phase.
    pub number: u32,
    /// Who leased it.
    pub runner: RunnerId,
}

closed_set! {
    /// Whether a plan would change anything. Judged by OpenTofu's exit code together with the JSON:
    /// a plan that only moves, forgets, imports or changes outputs is a change.
    PlanChanges {
        /// Approval is required.
        Some = "some",
        /// Nothing to approve.
        None = "none",
    }
}

/// How many resources a plan touches, by action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Created.
    pub create: u32,
    /// Updated in place.
    pub change: u32,
    /// Destroyed.
    pub destroy: u32,
    /// Created and destroyed; counted in `create` and `destroy` too.
    pub replace: u32,
    /// Imported.
    pub import: u32,
    /// Dropped from the state without being destroyed.
    pub forget: u32,
    /// Moved to another address.
    #[serde(rename = "move")]
    pub moved: u32,
    /// Outputs that change.
    pub output: u32,
}

/// A finished plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// SHA-256 of the exact plan file.
    pub plan: Sha256Digest,
    /// SHA-256 of the plan as JSON.
    pub plan_json: Sha256Digest,
    /// SHA-256 of the plan-diff.
    pub plan_diff: Sha256Digest,
    /// SHA-256 of the plan as policies see it; there exactly when `policy_input_object` is.
    pub policy_input: Option<Sha256Digest>,
    /// How many resources and outputs policies see nothing of, because redaction was not certain.
    /// Nothing that a policy says about such a plan is a pass.
    #[serde(default)]
    pub policy_input_doubts: u64,
    /// SHA-256 of the dependency bundle.
    pub dependencies: Sha256Digest,
    /// The state it was planned against.
    pub predecessor: Predecessor,
    /// Whether it changes anything.
    pub changes: PlanChanges,
    /// How much.
    pub counts: Counts,
    /// How long the plan file is.
    pub plan_bytes: u64,
    /// How long the plan as JSON is.
    pub plan_json_bytes: u64,
    /// The stored plan file.
    pub plan_object: ObjectId,
    /// The stored plan as JSON.
    pub plan_json_object: ObjectId,
    /// The stored plan-diff: what of the plan people may see.
    pub plan_diff_object: ObjectId,
    /// The stored plan as policies see it; absent when it would be too long, and no policy may pass.
    pub policy_input_object: Option<ObjectId>,
    /// The stored dependency lock file; absent when the configuration needs no provider.
    pub lock_file_object: Option<ObjectId>,
    /// Where the sandbox came from and how it was isolated.
    pub sandbox: serde_json::Value,
}

/// Why a plan failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanFailure {
    /// The code of the terminal reason.
    pub reason: super::TerminalReason,
    /// One sentence, already free of secrets.
    pub detail: String,
}

closed_set! {
    /// What policy says about a plan.
    PolicyOutcome {
        /// Nothing stands in the way; advisory findings may exist.
        Pass = "pass",
        /// A soft-mandatory policy failed.
        SoftFailed = "soft_failed",
        /// A hard-mandatory policy failed.
        HardFailed = "hard_failed",
        /// Policy could not be evaluated: never a pass, never overridable.
        Error = "error",
    }
}

closed_set! {
    /// Why policies could not be evaluated. Each is non-passing and none can be overridden.
    PolicyErrorCode {
        /// It took longer than allowed.
        PolicyTimeout = "policy_timeout",
        /// The limited process did not end by itself: out of memory, out of stack, out of processor
        /// time.
        PolicyCrashed = "policy_crashed",
        /// A policy is wrong, or what came back is not a result.
        PolicyError = "policy_error",
        /// There is no plan that policies can be asked about: what they would see of it is missing,
        /// is not what was recorded, or has parts that are withheld for want of certainty.
        PolicyInput = "policy_input_unusable",
        /// A pinned bundle is gone, or is not what was pinned.
        PolicyBundle = "policy_bundle_unreadable",
        /// The limited process could not be started, again and again.
        PolicyUnavailable = "policy_unavailable",
    }
}

/// How many policies denied a plan, by how much their denial weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DenyingPolicies {
    /// Only recorded.
    pub advisory: u32,
    /// May be overridden.
    pub soft_mandatory: u32,
    /// May not.
    pub hard_mandatory: u32,
}

/// A recorded policy evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyResult {
    /// What it says.
    pub outcome: PolicyOutcome,
    /// SHA-256 of the canonical result document.
    pub digest: Sha256Digest,
    /// SHA-256 of the policy bundles that were evaluated; the empty set has one too.
    pub bundle: Sha256Digest,
    /// Which engine evaluated it.
    pub engine: String,
    /// The engine's features, which decide what builtins a policy has.
    #[serde(default)]
    pub features: Vec<String>,
    /// How many policies were evaluated.
    pub policies: u32,
    /// How many of them denied.
    #[serde(default)]
    pub denying: DenyingPolicies,
    /// How many denials they gave, those that are not kept included.
    #[serde(default)]
    pub denials: u64,
    /// How many warnings they gave, those that are not kept included.
    #[serde(default)]
    pub warnings: u64,
    /// Why they could not be evaluated; only with the outcome `error`.
    #[serde(default)]
    pub error_code: Option<PolicyErrorCode>,
    /// The stored result document.
    pub object: ObjectId,
}

/// A person's approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The digest of the evidence that was reviewed.
    pub binding: Sha256Digest,
    /// Who approved.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
}

/// The successor state that a successful apply published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// The state version.
    pub version: StateVersionId,
    /// Its serial.
    pub serial: i64,
    /// SHA-256 of its exact bytes.
    pub digest: Sha256Digest,
}

/// A state that an apply uploaded and that was never published: the run's emergency state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedState {
    /// The staged state version.
    pub version: StateVersionId,
    /// Its serial.
    pub serial: i64,
    /// Its lineage.
    pub lineage: String,
    /// SHA-256 of its exact bytes.
    pub digest: Sha256Digest,
}

impl StagedState {
    /// What a run records once this state is published.
    pub const fn publication(&self) -> Publication {
        Publication {
            version: self.version,
            serial: self.serial,
            digest: self.digest,
        }
    }
}

closed_set! {
    /// Why nobody can say what an apply did.
    DoubtReason {
        /// The runner stopped renewing its lease.
        LeaseLost = "lease_lost",
        /// The sandbox was killed or vanished.
        SandboxLost = "sandbox_lost",
        /// The apply was interrupted before it ended by itself.
        Interrupted = "interrupted",
        /// A limit ended the apply.
        LimitExceeded = "limit_exceeded",
        /// OpenTofu reported success but published nothing.
        NothingPublished = "nothing_published",
        /// What was published cannot be confirmed.
        PublicationUnconfirmed = "publication_unconfirmed",
        /// OpenTofu could not upload the state.
        StateUploadFailed = "state_upload_failed",
    }
}

/// An apply whose effect is not known (S-STA-3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// Why.
    pub reason: DoubtReason,
    /// One sentence of detail, already free of secrets.
    pub detail: String,
    /// The newest state that was staged.
    pub emergency: Option<StagedState>,
    /// An `errored.tfstate` that OpenTofu left in its directory.
    pub errored_state_object: Option<ObjectId>,
}

/// How an apply ended, as far as the control plane could confirm it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ApplyReport {
    /// OpenTofu succeeded and its successor state is published.
    Published {
        /// What was published.
        publication: Publication,
    },
    /// OpenTofu was never started: a check failed, or a cancel came first.
    NotStarted {
        /// The part of the evidence that differed, if that was it.
        part: Option<super::EvidencePart>,
        /// One sentence of detail, already free of secrets.
        detail: String,
    },
    /// OpenTofu reported an error; what it did is in the emergency state.
    Failed {
        /// One sentence of detail, already free of secrets.
        detail: String,
        /// The partial state; absent when nothing at all was staged and nothing can have happened.
        emergency: Option<StagedState>,
    },
    /// Nobody can say.
    Doubt(Doubt),
}

closed_set! {
    /// How a runner was lost.
    LossReason {
        /// It stopped renewing its lease.
        LeaseExpired = "lease_expired",
        /// It handed the attempt back while shutting down.
        HandedBack = "handed_back",
        /// Its sandbox vanished.
        SandboxLost = "sandbox_lost",
    }
}

/// What an operator decided about a doubtful apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "resolution", rename_all = "snake_case")]
pub enum RecoveryResolution {
    /// The emergency state became the successor.
    AdoptEmergencyState {
        /// What was published.
        publication: Publication,
    },
    /// Nothing had changed.
    DeclareNoChange,
}
