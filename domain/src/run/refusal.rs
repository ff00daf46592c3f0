//! A no by the rules: what the caller can act upon. Nothing here is a failure of the machine.

use super::{EvidencePart, Status, TerminalReason};
use crate::{Actor, Fence};

/// Why a command was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The run does not exist.
    #[error("there is no such run")]
    NoSuchRun,
    /// The run exists already.
    #[error("the run exists already")]
    AlreadyCreated,
    /// Automatic apply is never accepted (S-RUN-6).
    #[error("automatic apply is not supported: a person approves each plan")]
    AutoApply,
    /// Destroy mode is not supported (S-RUN-3).
    #[error("destroy-mode runs are not supported; an ordinary plan may destroy resources")]
    DestroyMode,
    /// The command does not fit where the run stands.
    #[error("`{command}` is not possible while the run is `{status}`")]
    WrongStatus {
        /// The command.
        command: &'static str,
        /// Where the run stands.
        status: Status,
    },
    /// A report from a try that is not the current one.
    #[error("the report is from an attempt that is no longer the run's current one")]
    StaleAttempt,
    /// A fence that is not the current one (S-STA-2).
    #[error(
        "the workspace lock has moved on: fence {presented} was presented, {current} is current"
    )]
    StaleFence {
        /// What was presented.
        presented: Fence,
        /// What is current.
        current: Fence,
    },
    /// The run does not hold its workspace's lock.
    #[error("the run does not hold its workspace's lock")]
    LockNotHeld,
    /// The reviewed evidence is not the current one (S-RUN-7).
    #[error(
        "the plan that was reviewed is not the current one: `{part}` differs; read the run again"
    )]
    StaleEvidence {
        /// The part that differs.
        part: EvidencePart,
    },
    /// A speculative run is never applied (S-RUN-5).
    #[error("a speculative run is never applied")]
    Speculative,
    /// The time to decide is over.
    #[error("the time to decide on this plan is over; start a new run")]
    ApprovalExpired,
    /// The time to decide is not over yet.
    #[error("the time to decide on this plan is not over yet")]
    ApprovalNotExpired,
    /// Somebody else decided first.
    #[error("`{by}` approved this run already")]
    AlreadyApproved {
        /// Who.
        by: Actor,
    },
    /// A result about policies that are not the ones the run has pinned.
    #[error("the policy result is about other policies than the run has pinned")]
    OtherPolicies,
    /// The result that was to be overridden is not the current one.
    #[error("the policy result that was reviewed is not the current one; read the run again")]
    StalePolicyResult,
    /// The override that let the plan through no longer holds.
    #[error("the policy override has expired; start a new run")]
    OverrideExpired,
    /// An override lasts at most 24 hours and ends in the future.
    #[error("an override ends in the future and lasts at most 24 hours")]
    OverrideTime,
    /// Only a person decides this; no runner and no timer.
    #[error("`{command}` is a person's decision")]
    PersonRequired {
        /// The command.
        command: &'static str,
    },
    /// A failure whose reason is no failure.
    #[error("`{reason}` is not a reason for which a run fails before its apply")]
    NotAFailure {
        /// What was given.
        reason: TerminalReason,
    },
    /// A state was to be adopted that is not the one the apply left behind.
    #[error("the state to adopt is not one that the apply left behind")]
    NotTheEmergencyState,
    /// A decision without a reason.
    #[error("`reason` must say why")]
    ReasonMissing,
}
