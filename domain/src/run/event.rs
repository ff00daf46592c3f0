//! What happened to a run. Events are versioned, never renamed and never re-shaped without an
//! upcaster and a golden file.

use serde::{Deserialize, Serialize};

use super::{
    ApplyReport, Attempt, Doubt, Evidence, Facts, LossReason, PlanFailure, PlanRecord,
    PolicyResult, Publication, RecoveryResolution, StagedState, TerminalReason, Warning,
};
use crate::ids::{AttemptId, RunId};
use crate::{Actor, Fence, Sha256Digest, Timestamp};

/// One thing that happened to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The run was created with everything it pins.
    RunQueued {
        /// What never changes.
        facts: Facts,
        /// Always false; written down so that every layer below can refuse anything else (S-RUN-6).
        auto_apply: bool,
    },
    /// The run got its workspace's lock.
    LockGranted {
        /// The fence of this acquisition.
        fence: Fence,
        /// What whoever decides on the plan must know of the workspace.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<Warning>,
    },
    /// A runner began to plan.
    PlanStarted {
        /// The try.
        attempt: Attempt,
    },
    /// The runner of a plan was lost; the plan will be tried again.
    PlanAttemptLost {
        /// The lost try.
        attempt: AttemptId,
        /// How.
        reason: LossReason,
    },
    /// The plan is finished and stored.
    PlanRecorded {
        /// The plan.
        plan: PlanRecord,
    },
    /// The plan failed.
    PlanFailed {
        /// Why.
        failure: PlanFailure,
    },
    /// The plan needs a credential that the workspace does not grant.
    PlanCredentialsMissing {
        /// One sentence of detail.
        detail: String,
    },
    /// Policy evaluation began.
    PolicyCheckStarted,
    /// Policy was evaluated.
    PolicyEvaluated {
        /// The result.
        result: PolicyResult,
        /// When the question that follows lapses: the override, or the approval.
        approval_expires_at: Timestamp,
    },
    /// A soft-mandatory failure was let through for a limited time.
    PolicyOverridden {
        /// Who.
        by: Actor,
        /// The exact result that was overridden.
        result: Sha256Digest,
        /// Why.
        reason: String,
        /// Until when the override holds.
        expires_at: Timestamp,
    },
    /// A person is asked to decide on exactly this evidence.
    ApprovalRequested {
        /// What the decision is about.
        evidence: Evidence,
        /// Its digest: what an approval must present.
        binding: Sha256Digest,
        /// When the question lapses.
        expires_at: Timestamp,
    },
    /// A person approved.
    RunApproved {
        /// Who.
        by: Actor,
        /// The digest that was reviewed.
        binding: Sha256Digest,
        /// When.
        at: Timestamp,
    },
    /// A person discarded the plan.
    RunDiscarded {
        /// Who.
        by: Actor,
        /// Why, in the person's words.
        reason: Option<String>,
        /// When.
        at: Timestamp,
    },
    /// Nobody decided in time.
    ApprovalExpired {
        /// When the time ran out.
        at: Timestamp,
    },
    /// The override that let the plan through ran out before the plan was applied.
    PolicyOverrideExpired {
        /// When that was found.
        at: Timestamp,
    },
    /// A runner began to apply.
    ApplyStarted {
        /// The try; there is only one.
        attempt: Attempt,
        /// The fence under which it writes.
        fence: Fence,
        /// The approved digest.
        binding: Sha256Digest,
    },
    /// The runner handed the apply back before OpenTofu was started.
    ApplyHandedBack {
        /// The try that was handed back.
        attempt: AttemptId,
    },
    /// The apply succeeded and its state is published.
    ApplySucceeded {
        /// What was published.
        publication: Publication,
    },
    /// The apply failed and what it did is accounted for.
    ApplyFailed {
        /// `apply_failed`, or `apply_refused` when OpenTofu was never started.
        reason: TerminalReason,
        /// One sentence of detail.
        detail: String,
        /// The partial state, kept and never published.
        emergency: Option<StagedState>,
    },
    /// Nobody can say what the apply did.
    RecoveryRequired {
        /// Why, with what was kept.
        doubt: Doubt,
    },
    /// An operator resolved the doubt.
    RecoveryResolved {
        /// Who.
        by: Actor,
        /// How.
        resolution: RecoveryResolution,
        /// Why.
        reason: String,
        /// When.
        at: Timestamp,
    },
    /// A cancel was asked for while a runner works.
    CancelRequested {
        /// Who.
        by: Actor,
        /// Why, in the person's words.
        reason: Option<String>,
        /// When.
        at: Timestamp,
    },
    /// The run was canceled before anything was applied.
    RunCanceled {
        /// Who.
        by: Actor,
        /// Why, in the person's words.
        reason: Option<String>,
        /// When.
        at: Timestamp,
    },
    /// A newer run took this run's place.
    RunSuperseded {
        /// The newer one.
        by: RunId,
        /// When.
        at: Timestamp,
    },
    /// The plan changes nothing, so the run is done.
    RunFinishedWithoutChanges,
    /// The speculative plan is done.
    SpeculativeRunFinished,
    /// The run ended by an error outside OpenTofu.
    RunFailed {
        /// Why.
        reason: TerminalReason,
        /// One sentence of detail.
        detail: String,
    },
}

impl Event {
    /// The version of every event shape written today.
    pub const VERSION: &'static str = "1.0";

    /// The name under which the log stores it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunQueued { .. } => "run_queued",
            Self::LockGranted { .. } => "lock_granted",
            Self::PlanStarted { .. } => "plan_started",
            Self::PlanAttemptLost { .. } => "plan_attempt_lost",
            Self::PlanRecorded { .. } => "plan_recorded",
            Self::PlanFailed { .. } => "plan_failed",
            Self::PlanCredentialsMissing { .. } => "plan_credentials_missing",
            Self::PolicyCheckStarted => "policy_check_started",
            Self::PolicyEvaluated { .. } => "policy_evaluated",
            Self::PolicyOverridden { .. } => "policy_overridden",
            Self::ApprovalRequested { .. } => "approval_requested",
            Self::RunApproved { .. } => "run_approved",
            Self::RunDiscarded { .. } => "run_discarded",
            Self::ApprovalExpired { .. } => "approval_expired",
            Self::PolicyOverrideExpired { .. } => "policy_override_expired",
            Self::ApplyStarted { .. } => "apply_started",
            Self::ApplyHandedBack { .. } => "apply_handed_back",
            Self::ApplySucceeded { .. } => "apply_succeeded",
            Self::ApplyFailed { .. } => "apply_failed",
            Self::RecoveryRequired { .. } => "recovery_required",
            Self::RecoveryResolved { .. } => "recovery_resolved",
            Self::CancelRequested { .. } => "cancel_requested",
            Self::RunCanceled { .. } => "run_canceled",
            Self::RunSuperseded { .. } => "run_superseded",
            Self::RunFinishedWithoutChanges => "run_finished_without_changes",
            Self::SpeculativeRunFinished => "speculative_run_finished",
            Self::RunFailed { .. } => "run_failed",
        }
    }

    /// The reason code of a terminal event; `None` for every other.
    pub const fn terminal_reason(&self) -> Option<TerminalReason> {
        match self {
            Self::PlanFailed { failure } => Some(failure.reason),
            Self::PlanCredentialsMissing { .. } => Some(TerminalReason::PlanCredentialsRequired),
            Self::RunDiscarded { .. } => Some(TerminalReason::DiscardedByPerson),
            Self::ApprovalExpired { .. } => Some(TerminalReason::ApprovalExpired),
            Self::PolicyOverrideExpired { .. } => Some(TerminalReason::PolicyOverrideExpired),
            Self::ApplySucceeded { .. } => Some(TerminalReason::Applied),
            Self::ApplyFailed { reason, .. } | Self::RunFailed { reason, .. } => Some(*reason),
            Self::RecoveryResolved { resolution, .. } => Some(match resolution {
                RecoveryResolution::AdoptEmergencyState { .. } => {
                    TerminalReason::RecoveredStateAdopted
                }
                RecoveryResolution::DeclareNoChange => TerminalReason::RecoveredNoChange,
            }),
            Self::RunCanceled { .. } => Some(TerminalReason::CanceledByPerson),
            Self::RunSuperseded { .. } => Some(TerminalReason::Superseded),
            Self::RunFinishedWithoutChanges => Some(TerminalReason::NoChanges),
            Self::SpeculativeRunFinished => Some(TerminalReason::SpeculativeFinished),
            Self::RunQueued { .. }
            | Self::LockGranted { .. }
            | Self::PlanStarted { .. }
            | Self::PlanAttemptLost { .. }
            | Self::PlanRecorded { .. }
            | Self::PolicyCheckStarted
            | Self::PolicyEvaluated { .. }
            | Self::PolicyOverridden { .. }
            | Self::ApprovalRequested { .. }
            | Self::RunApproved { .. }
            | Self::ApplyStarted { .. }
            | Self::ApplyHandedBack { .. }
            | Self::RecoveryRequired { .. }
            | Self::CancelRequested { .. } => None,
        }
    }

    /// What an apply's report becomes.
    pub(super) fn of_report(report: ApplyReport) -> Self {
        match report {
            ApplyReport::Published { publication } => Self::ApplySucceeded { publication },
            ApplyReport::NotStarted { detail, part } => Self::ApplyFailed {
                reason: TerminalReason::ApplyRefused,
                detail: match part {
                    Some(part) => format!("{part}: {detail}"),
                    None => detail,
                },
                emergency: None,
            },
            ApplyReport::Failed { detail, emergency } => Self::ApplyFailed {
                reason: TerminalReason::ApplyFailed,
                detail,
                emergency,
            },
            ApplyReport::Doubt(doubt) => Self::RecoveryRequired { doubt },
        }
    }
}
