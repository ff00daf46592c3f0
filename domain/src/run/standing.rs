//! Where a run stands, with what is known by then and nothing else.

use super::{
    Approval, Attempt, Doubt, Evidence, PlanRecord, PolicyResult, Publication, RecoveryResolution,
    StagedState, Status, TerminalReason,
};
use crate::{Actor, Timestamp};

/// Where a run stands. Ends carry what a later question may ask: by whom, why, with what left over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Waits for its workspace or for a runner.
    Queued {
        /// How many plan attempts lost their runner.
        attempts_lost: u32,
    },
    /// A runner plans.
    Planning {
        /// The current try.
        attempt: Attempt,
        /// How many earlier tries lost their runner.
        attempts_lost: u32,
    },
    /// A runner plans and was asked to stop.
    PlanCanceling {
        /// The current try.
        attempt: Attempt,
        /// Who asked.
        by: Actor,
        /// Why.
        reason: Option<String>,
        /// When they asked.
        requested_at: Timestamp,
    },
    /// The plan is recorded.
    Planned {
        /// The plan.
        plan: PlanRecord,
    },
    /// Policy is being evaluated.
    PolicyChecking {
        /// The plan.
        plan: PlanRecord,
    },
    /// A soft-mandatory policy failed; a person overrides it or lets it be.
    OverrideRequired {
        /// The plan.
        plan: PlanRecord,
        /// The result.
        policy: PolicyResult,
        /// When the question lapses.
        expires_at: Timestamp,
        /// Until when an override holds, once somebody overrode it.
        override_expires_at: Option<Timestamp>,
    },
    /// A person decides.
    AwaitingApproval {
        /// The plan.
        plan: PlanRecord,
        /// What the decision is about.
        evidence: Evidence,
        /// When the question lapses.
        expires_at: Timestamp,
        /// Until when a policy override holds, if one was needed.
        override_expires_at: Option<Timestamp>,
    },
    /// Approved; waits for a runner.
    Approved {
        /// The plan.
        plan: PlanRecord,
        /// What was approved.
        evidence: Evidence,
        /// By whom.
        approval: Approval,
        /// Until when a policy override holds, if one was needed.
        override_expires_at: Option<Timestamp>,
    },
    /// A runner applies.
    Applying {
        /// The plan.
        plan: PlanRecord,
        /// What was approved.
        evidence: Evidence,
        /// By whom.
        approval: Approval,
        /// The try.
        attempt: Attempt,
        /// Until when a policy override holds, if one was needed.
        override_expires_at: Option<Timestamp>,
    },
    /// A runner applies and was asked to stop.
    ApplyCanceling {
        /// The plan.
        plan: PlanRecord,
        /// What was approved.
        evidence: Evidence,
        /// By whom.
        approval: Approval,
        /// The try.
        attempt: Attempt,
        /// Who asked.
        by: Actor,
        /// Why.
        reason: Option<String>,
        /// When they asked.
        requested_at: Timestamp,
    },
    /// The apply's outcome is in doubt.
    RecoveryRequired {
        /// What was approved.
        evidence: Evidence,
        /// Why, with what was kept.
        doubt: Doubt,
    },
    /// Over.
    Ended(Ending),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Applied.
    Applied {
        /// What was published.
        publication: Publication,
        /// The approval it rests on.
        approval: Approval,
    },
    /// Nothing to change.
    NoChanges,
    /// A speculative plan is done.
    SpeculativeFinished,
    /// An error that is accounted for.
    Failed {
        /// Why.
        reason: TerminalReason,
        /// The partial state of a failed apply.
        emergency: Option<StagedState>,
    },
    /// Turned down.
    Discarded {
        /// By whom.
        by: Actor,
    },
    /// Nobody decided.
    Expired,
    /// Stopped before anything was applied.
    Canceled {
        /// By whom; `None` when a newer run took its place.
        by: Option<Actor>,
    },
    /// A credential was missing.
    PlanCredentialsRequired,
    /// An operator resolved the doubt.
    Recovered {
        /// How.
        resolution: RecoveryResolution,
        /// By whom.
        by: Actor,
    },
}

impl Standing {
    /// Whether nobody works on the run right now, so that it can end at once.
    pub const fn waits(&self) -> bool {
        match self {
            Self::Queued { .. }
            | Self::Planned { .. }
            | Self::PolicyChecking { .. }
            | Self::OverrideRequired { .. }
            | Self::AwaitingApproval { .. }
            | Self::Approved { .. } => true,
            Self::Planning { .. }
            | Self::PlanCanceling { .. }
            | Self::Applying { .. }
            | Self::ApplyCanceling { .. }
            | Self::RecoveryRequired { .. }
            | Self::Ended(_) => false,
        }
    }

    /// When the run lapses if nobody and nothing moves it on; `None` where it waits for no person
    /// and under no override.
    pub const fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::OverrideRequired { expires_at, .. }
            | Self::AwaitingApproval { expires_at, .. } => Some(*expires_at),
            Self::Approved {
                override_expires_at,
                ..
            } => *override_expires_at,
            Self::Queued { .. }
            | Self::Planning { .. }
            | Self::PlanCanceling { .. }
            | Self::Planned { .. }
            | Self::PolicyChecking { .. }
            | Self::Applying { .. }
            | Self::ApplyCanceling { .. }
            | Self::RecoveryRequired { .. }
            | Self::Ended(_) => None,
        }
    }

    /// Until when the policy override holds that this run waits under; `None` where it needed none,
    /// and once its apply has begun.
    pub const fn override_expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::AwaitingApproval {
                override_expires_at,
                ..
            }
            | Self::Approved {
                override_expires_at,
                ..
            } => *override_expires_at,
            Self::Queued { .. }
            | Self::Planning { .. }
            | Self::PlanCanceling { .. }
            | Self::Planned { .. }
            | Self::PolicyChecking { .. }
            | Self::OverrideRequired { .. }
            | Self::Applying { .. }
            | Self::ApplyCanceling { .. }
            | Self::RecoveryRequired { .. }
            | Self::Ended(_) => None,
        }
    }

    /// The status in the closed set.
    pub const fn status(&self) -> Status {
        match self {
            Self::Queued { .. } => Status::Queued,
            Self::Planning { .. } => Status::Planning,
            Self::Planned { .. } => Status::Planned,
            Self::PolicyChecking { .. } => Status::PolicyChecking,
            Self::OverrideRequired { .. } => Status::OverrideRequired,
            Self::AwaitingApproval { .. } => Status::AwaitingApproval,
            Self::Approved { .. } => Status::Approved,
            Self::Applying { .. } => Status::Applying,
            Self::PlanCanceling { .. } | Self::ApplyCanceling { .. } => Status::Canceling,
            Self::RecoveryRequired { .. } => Status::RecoveryRequired,
            Self::Ended(ending) => ending.status(),
        }
    }
}

impl Ending {
    /// The terminal status.
    pub const fn status(&self) -> Status {
        match self {
            Self::Applied { .. } => Status::Applied,
            Self::NoChanges => Status::NoChanges,
            Self::SpeculativeFinished => Status::SpeculativeFinished,
            Self::Failed { .. } => Status::Failed,
            Self::Discarded { .. } => Status::Discarded,
            Self::Expired => Status::Expired,
            Self::Canceled { .. } => Status::Canceled,
            Self::PlanCredentialsRequired => Status::PlanCredentialsRequired,
            Self::Recovered { .. } => Status::Recovered,
        }
    }
}
