//! Where a run can stand: a closed set.

use serde::{Deserialize, Serialize};

macro_rules! closed_set {
    ($(#[$outer:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// Every member.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name on every wire and in every record.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use closed_set;

closed_set! {
    /// Where a run stands.
    Status {
        /// Waits for its workspace, or for a runner.
        Queued = "queued",
        /// A runner plans it.
        Planning = "planning",
        /// The plan is recorded.
        Planned = "planned",
        /// Policy is being evaluated.
        PolicyChecking = "policy_checking",
        /// A soft-mandatory policy failed; somebody may override it.
        OverrideRequired = "override_required",
        /// A person decides.
        AwaitingApproval = "awaiting_approval",
        /// Approved; waits for a runner.
        Approved = "approved",
        /// A runner applies it.
        Applying = "applying",
        /// A cancel was asked for while a runner works.
        Canceling = "canceling",
        /// The apply's outcome is in doubt; an operator decides.
        RecoveryRequired = "recovery_required",
        /// Applied; the successor state is published.
        Applied = "applied",
        /// The plan changes nothing.
        NoChanges = "no_changes",
        /// The speculative plan is done.
        SpeculativeFinished = "speculative_finished",
        /// Ended by an error that is accounted for.
        Failed = "failed",
        /// A person turned the plan down.
        Discarded = "discarded",
        /// Nobody decided in time, or a policy override ran out.
        Expired = "expired",
        /// Canceled before anything was applied.
        Canceled = "canceled",
        /// The plan needs a cloud credential that the workspace does not grant.
        PlanCredentialsRequired = "plan_credentials_required",
        /// An operator resolved the doubt.
        Recovered = "recovered",
    }
}

impl Status {
    /// Whether nothing can follow.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Queued
            | Self::Planning
            | Self::Planned
            | Self::PolicyChecking
            | Self::OverrideRequired
            | Self::AwaitingApproval
            | Self::Approved
            | Self::Applying
            | Self::Canceling
            | Self::RecoveryRequired => false,
            Self::Applied
            | Self::NoChanges
            | Self::SpeculativeFinished
            | Self::Failed
            | Self::Discarded
            | Self::Expired
            | Self::Canceled
            | Self::PlanCredentialsRequired
            | Self::Recovered => true,
        }
    }
}

closed_set! {
    /// Why a run ended: the code behind the sentence in its header (S-REV-11).
    TerminalReason {
        /// The plan was approved and applied.
        Applied = "applied",
        /// Nothing to do.
        NoChanges = "no_changes",
        /// A speculative plan is never applied.
        SpeculativeFinished = "speculative_finished",
        /// OpenTofu reported an error while planning.
        PlanFailed = "plan_failed",
        /// The configuration or an input was refused before OpenTofu planned.
        PlanRefused = "plan_refused",
        /// A limit ended the plan.
        PlanLimitExceeded = "plan_limit_exceeded",
        /// No sandbox could be had.
        SandboxUnavailable = "sandbox_unavailable",
        /// Every plan attempt lost its runner.
        PlanAttemptsExhausted = "plan_attempts_exhausted",
        /// A hard-mandatory policy failed.
        PolicyDenied = "policy_denied",
        /// Policy could not be evaluated.
        PolicyError = "policy_error",
        /// What was to be applied is not what was approved; nothing was applied.
        ApplyRefused = "apply_refused",
        /// OpenTofu reported an error while applying; the partial state is kept.
        ApplyFailed = "apply_failed",
        /// A person discarded the plan.
        DiscardedByPerson = "discarded_by_person",
        /// The time to decide ran out.
        ApprovalExpired = "approval_expired",
        /// The override that let the plan through ran out before the plan was applied.
        PolicyOverrideExpired = "policy_override_expired",
        /// A person canceled the run.
        CanceledByPerson = "canceled_by_person",
        /// A newer run of the same source took its place.
        Superseded = "superseded",
        /// The workspace grants no credential for this plan.
        PlanCredentialsRequired = "plan_credentials_required",
        /// An operator adopted the emergency state.
        RecoveredStateAdopted = "recovered_state_adopted",
        /// An operator declared that nothing changed.
        RecoveredNoChange = "recovered_no_change",
    }
}

impl TerminalReason {
    /// Whether it says that a run failed, and that nothing had been applied.
    pub const fn is_failure_before_apply(self) -> bool {
        match self {
            Self::PlanFailed
            | Self::PlanRefused
            | Self::PlanLimitExceeded
            | Self::SandboxUnavailable
            | Self::PlanAttemptsExhausted
            | Self::PolicyDenied
            | Self::PolicyError => true,
            Self::Applied
            | Self::NoChanges
            | Self::SpeculativeFinished
            | Self::ApplyRefused
            | Self::ApplyFailed
            | Self::DiscardedByPerson
            | Self::ApprovalExpired
            | Self::PolicyOverrideExpired
            | Self::CanceledByPerson
            | Self::Superseded
            | Self::PlanCredentialsRequired
            | Self::RecoveredStateAdopted
            | Self::RecoveredNoChange => false,
        }
    }

    /// One sentence for a person.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Applied => "The approved plan was applied.",
            Self::NoChanges => "The plan found nothing to change.",
            Self::SpeculativeFinished => "The speculative plan finished; it is never applied.",
            Self::PlanFailed => "OpenTofu reported an error while planning.",
            Self::PlanRefused => "The configuration or its inputs were refused before planning.",
            Self::PlanLimitExceeded => "The plan was stopped because it exceeded a limit.",
            Self::SandboxUnavailable => "No sandbox could be started for this run.",
            Self::PlanAttemptsExhausted => "Every attempt to plan lost its runner.",
            Self::PolicyDenied => "A hard-mandatory policy denied this plan.",
            Self::PolicyError => "Policy could not be evaluated, so the plan was not let through.",
            Self::ApplyRefused => {
                "What was to be applied differed from what was approved; nothing was applied."
            }
            Self::ApplyFailed => {
                "OpenTofu reported an error while applying; the partial state is kept."
            }
            Self::DiscardedByPerson => "The plan was discarded.",
            Self::ApprovalExpired => "Nobody decided on the plan in time.",
            Self::PolicyOverrideExpired => {
                "The policy override ran out before the plan was applied."
            }
            Self::CanceledByPerson => "The run was canceled.",
            Self::Superseded => "A newer run took this run's place.",
            Self::PlanCredentialsRequired => {
                "The plan needs a cloud credential that the workspace does not grant."
            }
            Self::RecoveredStateAdopted => "An operator adopted the emergency state.",
            Self::RecoveredNoChange => "An operator declared that nothing had changed.",
        }
    }
}
