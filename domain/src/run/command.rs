//! What may be asked of a run. Commands carry the facts that rules need, the time among them.

use super::{
    ApplyReport, Attempt, LossReason, NewRun, PlanFailure, PlanRecord, PolicyResult,
    RecoveryResolution, StagedState, Warning,
};
use crate::ids::{AttemptId, RunId};
use crate::{Actor, Fence, Sha256Digest, Timestamp};

/// One thing that may be asked of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Create it.
    Create(Box<NewRun>),
    /// The workspace gave its lock to this run.
    GrantLock {
        /// The fence of the acquisition.
        fence: Fence,
        /// What the workspace has to say at this moment.
        warnings: Vec<Warning>,
    },
    /// A runner leased a plan attempt.
    StartPlan {
        /// The try.
        attempt: Attempt,
    },
    /// A runner of a plan was lost.
    LosePlan {
        /// The lost try.
        attempt: AttemptId,
        /// How.
        reason: LossReason,
        /// When; a run that was being canceled is canceled now.
        at: Timestamp,
    },
    /// A plan is finished and stored.
    RecordPlan {
        /// By which try.
        attempt: AttemptId,
        /// The plan.
        plan: Box<PlanRecord>,
    },
    /// A plan failed.
    FailPlan {
        /// By which try.
        attempt: AttemptId,
        /// Why.
        failure: PlanFailure,
    },
    /// A plan stopped because it was asked to.
    StopPlan {
        /// Which try.
        attempt: AttemptId,
        /// When it had stopped.
        at: Timestamp,
    },
    /// A plan needs a credential that the workspace does not grant.
    RequirePlanCredentials {
        /// By which try.
        attempt: AttemptId,
        /// One sentence of detail.
        detail: String,
    },
    /// Begin to evaluate policy.
    StartPolicyCheck,
    /// Policy was evaluated.
    RecordPolicy {
        /// The result.
        result: PolicyResult,
        /// When a requested approval would lapse.
        approval_expires_at: Timestamp,
    },
    /// Let a soft-mandatory failure pass for a limited time.
    OverridePolicy {
        /// Who.
        by: Actor,
        /// The exact result that was reviewed.
        result: Sha256Digest,
        /// Why.
        reason: String,
        /// Now.
        at: Timestamp,
        /// Until when the override holds.
        expires_at: Timestamp,
        /// When a requested approval would lapse.
        approval_expires_at: Timestamp,
    },
    /// Approve exactly this evidence.
    Approve {
        /// Who.
        by: Actor,
        /// The digest that was reviewed.
        binding: Sha256Digest,
        /// Now.
        at: Timestamp,
    },
    /// Turn the plan down.
    Discard {
        /// Who.
        by: Actor,
        /// Why.
        reason: Option<String>,
        /// Now.
        at: Timestamp,
    },
    /// The time to decide is over, or the override under which the run was approved.
    Expire {
        /// Now.
        at: Timestamp,
    },
    /// A runner leased the apply attempt.
    StartApply {
        /// The try.
        attempt: Attempt,
        /// The fence in its lease.
        fence: Fence,
        /// The digest in its lease.
        binding: Sha256Digest,
        /// Now.
        at: Timestamp,
    },
    /// The runner gave the apply back before it started OpenTofu. The run cannot see whether it
    /// did: only a runner that has not, and will not, may say so.
    HandBackApply {
        /// Which try.
        attempt: AttemptId,
        /// Now.
        at: Timestamp,
    },
    /// The apply ended, as far as could be confirmed.
    RecordApply {
        /// By which try.
        attempt: AttemptId,
        /// The fence under which it wrote.
        fence: Fence,
        /// How.
        report: Box<ApplyReport>,
        /// Now.
        at: Timestamp,
    },
    /// The runner of an apply was lost.
    LoseApply {
        /// The lost try.
        attempt: AttemptId,
        /// How.
        reason: LossReason,
        /// The newest state that was staged.
        emergency: Option<StagedState>,
    },
    /// An operator resolves the doubt.
    ResolveRecovery {
        /// Who.
        by: Actor,
        /// How.
        resolution: RecoveryResolution,
        /// Why.
        reason: String,
        /// Now.
        at: Timestamp,
    },
    /// Stop the run.
    Cancel {
        /// Who.
        by: Actor,
        /// Why.
        reason: Option<String>,
        /// Now.
        at: Timestamp,
    },
    /// A newer run takes this run's place.
    Supersede {
        /// The newer one.
        by: RunId,
        /// Now.
        at: Timestamp,
    },
    /// End the run by an error outside OpenTofu.
    Fail {
        /// Why.
        failure: PlanFailure,
    },
}

impl Command {
    /// The name in refusals, spans and the reviewed table.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::GrantLock { .. } => "grant_lock",
            Self::StartPlan { .. } => "start_plan",
            Self::LosePlan { .. } => "lose_plan",
            Self::RecordPlan { .. } => "record_plan",
            Self::FailPlan { .. } => "fail_plan",
            Self::StopPlan { .. } => "stop_plan",
            Self::RequirePlanCredentials { .. } => "require_plan_credentials",
            Self::StartPolicyCheck => "start_policy_check",
            Self::RecordPolicy { .. } => "record_policy",
            Self::OverridePolicy { .. } => "override",
            Self::Approve { .. } => "approve",
            Self::Discard { .. } => "discard",
            Self::Expire { .. } => "expire",
            Self::StartApply { .. } => "start_apply",
            Self::HandBackApply { .. } => "hand_back_apply",
            Self::RecordApply { .. } => "record_apply",
            Self::LoseApply { .. } => "lose_apply",
            Self::ResolveRecovery { .. } => "resolve_recovery",
            Self::Cancel { .. } => "cancel",
            Self::Supersede { .. } => "supersede",
            Self::Fail { .. } => "fail",
        }
    }
}
