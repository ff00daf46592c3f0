//! The review of a run: everything the log knows about it, as one document.
//!
//! What was never recorded is absent. A phase's status comes from the events of that phase, not from
//! where the run as a whole stands. The document is internal: edges choose what of it they show
//! (object ids, for one, stay behind them).

mod end;
mod fold;
mod machine;
mod replay;
mod table;

use serde::{Deserialize, Serialize};
use stackship_domain::ids::{AttemptId, ObjectId, RunId, RunnerId};
use stackship_domain::run::{
    Doubt, Evidence, Facts, LossReason, PlanRecord, PolicyResult, Publication, RecoveryResolution,
    StagedState, Status, TerminalReason, Warning,
};
use stackship_domain::{Actor, Fence, Sha256Digest, Timestamp};

use crate::WorkspaceStatus;

pub use replay::{AsOf, Comparison, Difference, Replay, replay};
pub(crate) use table::{load, upsert};

/// The most overrides that a review keeps (S-REV-18).
pub const OVERRIDES_MAX: usize = 256;

/// A run as its events tell it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReview {
    /// Which run.
    pub run: RunId,
    /// The newest event in here.
    pub last_sequence: i64,
    /// When that event was recorded.
    pub updated_at: Timestamp,
    /// What never changes: kind, message, source, pins, creator, what was withheld.
    pub facts: Facts,
    /// Where the run stands.
    pub status: Status,
    /// The fence under which it holds or held its workspace's lock.
    pub fence: Option<Fence>,
    /// What its workspace had to say when it gave the lock: to be known before anybody approves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The plan phase.
    pub plan: PlanReview,
    /// The policy check.
    pub policy: PolicyReview,
    /// The question to a person and its answer.
    pub approval: ApprovalReview,
    /// The apply phase.
    pub apply: ApplyReview,
    /// A cancel that was asked for while a runner worked.
    pub cancel_requested: Option<CancelRequest>,
    /// An apply in doubt.
    pub recovery: Option<RecoveryReview>,
    /// How the run ended.
    pub ended: Option<End>,
}

/// When a stage began and ended, by the time its events were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StageTimes {
    /// The first event of the stage.
    pub started_at: Option<Timestamp>,
    /// The last one.
    pub ended_at: Option<Timestamp>,
}

/// Where a plan stands (S-REV-16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// No runner works on it.
    #[default]
    Pending,
    /// A runner works on it, or what policy says about it is not known yet: a client takes a
    /// finished plan to mean that the decision can be seen.
    Running,
    /// Recorded and judged by policy, or recorded when the run ended.
    Finished,
    /// It failed.
    Errored,
    /// The run was canceled before the plan was recorded.
    Canceled,
}

/// Where an apply stands (S-REV-16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplyStatus {
    /// No apply was started; once the run has ended, none will be.
    #[default]
    Pending,
    /// A runner applies.
    Running,
    /// It succeeded and its state is published.
    Finished,
    /// It failed, and what it did is accounted for.
    Errored,
    /// It was canceled before OpenTofu was started.
    Canceled,
    /// Nobody can say what it did.
    Interrupted,
}

/// Where one try stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptStatus {
    /// Its runner works.
    Running,
    /// It reported success.
    Finished,
    /// It reported a failure.
    Errored,
    /// It was stopped because the run was canceled.
    Canceled,
    /// Its runner was lost.
    Lost,
    /// Its runner gave it back before it did anything.
    HandedBack,
    /// Nobody can say what it did.
    Interrupted,
}

/// One numbered try at a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptReview {
    /// Which one.
    pub id: AttemptId,
    /// Counts from 1 within its phase.
    pub number: u32,
    /// Who leased it.
    pub runner: RunnerId,
    /// Where it stands.
    pub status: AttemptStatus,
    /// How its runner was lost, if it was.
    pub loss: Option<LossReason>,
    /// From its start to its end.
    pub times: StageTimes,
}

/// The plan phase.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlanReview {
    /// Where it stands.
    pub status: PlanStatus,
    /// From the first try to the record or the failure.
    pub times: StageTimes,
    /// Every try.
    pub attempts: Vec<AttemptReview>,
    /// The recorded plan: digests, counts, objects, evidence of the sandbox.
    pub record: Option<PlanRecord>,
}

/// The policy check.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PolicyReview {
    /// From its start to its result.
    pub times: StageTimes,
    /// The result.
    pub result: Option<PolicyResult>,
    /// When the question whether to override lapses; only after a soft-mandatory failure.
    pub decide_by: Option<Timestamp>,
    /// The overrides that were given, oldest first, at most [`OVERRIDES_MAX`].
    #[serde(default)]
    pub overrides: Vec<OverrideReview>,
    /// Whether there were more; the history has them.
    #[serde(default)]
    pub overrides_truncated: bool,
}

/// A soft-mandatory failure that was let through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverrideReview {
    /// By whom.
    pub by: Actor,
    /// The exact result that was overridden.
    pub result: Sha256Digest,
    /// Why.
    pub reason: String,
    /// Until when it holds.
    pub expires_at: Timestamp,
    /// When it was recorded.
    pub at: Timestamp,
}

/// The question to a person and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ApprovalReview {
    /// From the question to the answer.
    pub times: StageTimes,
    /// What the person is asked to decide on.
    pub request: Option<ApprovalRequest>,
    /// The answer; also one to the question whether to override.
    pub decision: Option<Decision>,
}

/// What a person is asked to decide on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Every part the decision rests on.
    pub evidence: Evidence,
    /// Its digest: what an approval presents.
    pub binding: Sha256Digest,
    /// When the question lapses.
    pub expires_at: Timestamp,
}

/// How the question was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Decision {
    /// Yes, to exactly this evidence.
    Approved {
        /// Who.
        by: Actor,
        /// When.
        at: Timestamp,
        /// The digest that was reviewed.
        binding: Sha256Digest,
    },
    /// No.
    Discarded {
        /// Who.
        by: Actor,
        /// When.
        at: Timestamp,
        /// Why, in the person's words.
        reason: Option<String>,
    },
    /// The run was canceled while the question stood.
    Canceled {
        /// Who.
        by: Actor,
        /// When.
        at: Timestamp,
        /// Why, in the person's words.
        reason: Option<String>,
    },
    /// A newer run took this run's place while the question stood.
    Superseded {
        /// The newer run.
        by: RunId,
        /// When.
        at: Timestamp,
    },
    /// Nobody answered in time.
    Expired {
        /// When the time was over.
        at: Timestamp,
    },
}

/// The apply phase.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ApplyReview {
    /// Where it stands.
    pub status: ApplyStatus,
    /// From its start to its end.
    pub times: StageTimes,
    /// Every try; one that is not handed back is the last.
    pub attempts: Vec<AttemptReview>,
    /// The published successor, with the time of its publication.
    pub published: Option<PublishedState>,
    /// What a failed or doubtful apply left behind.
    pub emergency: Option<EmergencyState>,
}

/// The state that a successful apply published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedState {
    /// Which state version.
    pub publication: Publication,
    /// When that was recorded.
    pub at: Timestamp,
}

/// What an apply left behind that is not the workspace's state; ids, never contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmergencyState {
    /// The newest staged state.
    pub staged: Option<StagedState>,
    /// An `errored.tfstate` that OpenTofu left in its directory.
    pub errored_state_object: Option<ObjectId>,
}

/// A cancel that was asked for while a runner worked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRequest {
    /// Who asked.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
    /// Why, in the person's words.
    pub reason: Option<String>,
}

/// An apply in doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryReview {
    /// Why nobody can say what it did.
    pub doubt: Doubt,
    /// When that was recorded.
    pub since: Timestamp,
    /// What an operator decided.
    pub resolved: Option<RecoveryDecision>,
}

/// What an operator decided about a doubtful apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryDecision {
    /// Who.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
    /// How.
    pub resolution: RecoveryResolution,
    /// Why.
    pub reason: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The code behind the sentence.
    pub reason: TerminalReason,
    /// One sentence of detail, when the event has one.
    pub detail: Option<String>,
    /// Who caused it.
    pub by: Actor,
    /// Why, in a person's words.
    pub words: Option<String>,
    /// The run that took this run's place.
    pub superseded_by: Option<RunId>,
    /// When that was recorded.
    pub at: Timestamp,
}

impl RunReview {
    /// What whoever decides must know of the workspace. It was recorded when the run got the lock;
    /// before, and for a speculative run to its end, it is what the workspace has to say now.
    pub fn to_be_known(&self, workspace: Option<&WorkspaceStatus>) -> Vec<Warning> {
        match workspace {
            Some(workspace) if self.fence.is_none() && self.ended.is_none() => workspace.warnings(),
            Some(_) | None => self.warnings.clone(),
        }
    }

    /// When the question that stands now lapses: the one to approve, or the one to override.
    pub fn decide_by(&self) -> Option<Timestamp> {
        if self.approval.decision.is_some() {
            return None;
        }
        match &self.approval.request {
            Some(request) => Some(request.expires_at),
            None => self.policy.decide_by,
        }
    }
}
