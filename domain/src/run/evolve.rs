//! What an event makes of a run. Total: an event has happened and cannot be refused. An event that
//! does not fit where the run stands changes nothing; `decide` never writes one.

use super::{Approval, Ending, Event, Hold, Run, RunKind, Standing, TerminalReason};

impl Run {
    /// Takes an event that has happened.
    pub fn evolve(&mut self, event: &Event) {
        match (&mut *self, event) {
            (Self::Unborn, Event::RunQueued { facts, .. }) => {
                let hold = match facts.kind {
                    RunKind::PlanAndApply => Hold::Waiting,
                    RunKind::Speculative => Hold::NotNeeded,
                };
                let standing = Box::new(Standing::Queued { attempts_lost: 0 });
                *self = Self::Born {
                    facts: Box::new(facts.clone()),
                    hold,
                    standing,
                };
            }
            (Self::Born { hold, .. }, Event::LockGranted { fence }) => *hold = Hold::Held(*fence),
            (Self::Born { standing, .. }, event) => {
                if let Some(next) = follow(standing, event) {
                    **standing = next;
                }
            }
            (Self::Unborn, _) => {}
        }
    }
}

/// Where the run stands after `event`; `None` when it stays where it is.
fn follow(now: &Standing, event: &Event) -> Option<Standing> {
    match event {
        Event::RunQueued { .. } | Event::LockGranted { .. } => None,
        Event::PlanStarted { .. }
        | Event::PlanAttemptLost { .. }
        | Event::PlanRecorded { .. }
        | Event::PolicyCheckStarted
        | Event::PolicyEvaluated { .. }
        | Event::PolicyOverridden { .. }
        | Event::ApprovalRequested { .. }
        | Event::RunApproved { .. } => follow_review(now, event),
        Event::ApplyStarted { .. }
        | Event::ApplyHandedBack { .. }
        | Event::ApplySucceeded { .. }
        | Event::RecoveryRequired { .. }
        | Event::CancelRequested { .. } => follow_apply(now, event),
        Event::ApplyFailed { .. }
        | Event::RecoveryResolved { .. }
        | Event::PlanFailed { .. }
        | Event::PlanCredentialsMissing { .. }
        | Event::RunDiscarded { .. }
        | Event::ApprovalExpired { .. }
        | Event::RunCanceled { .. }
        | Event::RunSuperseded { .. }
        | Event::RunFinishedWithoutChanges
        | Event::SpeculativeRunFinished
        | Event::RunFailed { .. } => ending(event).map(Standing::Ended),
    }
}

/// From the queue to the approval.
fn follow_review(now: &Standing, event: &Event) -> Option<Standing> {
    match (now, event) {
        (Standing::Queued { attempts_lost }, Event::PlanStarted { attempt }) => {
            Some(Standing::Planning {
                attempt: attempt.clone(),
                attempts_lost: *attempts_lost,
            })
        }
        (Standing::Planning { attempts_lost, .. }, Event::PlanAttemptLost { .. }) => {
            Some(Standing::Queued {
                attempts_lost: attempts_lost + 1,
            })
        }
        (Standing::Planning { .. }, Event::PlanRecorded { plan }) => {
            Some(Standing::Planned { plan: plan.clone() })
        }
        (Standing::Planned { plan }, Event::PolicyCheckStarted) => {
            Some(Standing::PolicyChecking { plan: plan.clone() })
        }
        // The standing to decide from, until the event that follows in the same decision says more.
        (
            Standing::PolicyChecking { plan },
            Event::PolicyEvaluated {
                result,
                approval_expires_at,
            },
        ) => Some(Standing::OverrideRequired {
            plan: plan.clone(),
            policy: result.clone(),
            expires_at: *approval_expires_at,
            override_expires_at: None,
        }),
        (
            Standing::OverrideRequired {
                plan,
                policy,
                expires_at,
                ..
            },
            Event::PolicyOverridden {
                expires_at: until, ..
            },
        ) => Some(Standing::OverrideRequired {
            plan: plan.clone(),
            policy: policy.clone(),
            expires_at: *expires_at,
            override_expires_at: Some(*until),
        }),
        (
            Standing::OverrideRequired {
                plan,
                override_expires_at,
                ..
            },
            Event::ApprovalRequested {
                evidence,
                expires_at,
                ..
            },
        ) => Some(Standing::AwaitingApproval {
            plan: plan.clone(),
            evidence: evidence.clone(),
            expires_at: *expires_at,
            override_expires_at: *override_expires_at,
        }),
        (
            Standing::AwaitingApproval {
                plan,
                evidence,
                override_expires_at,
                ..
            },
            Event::RunApproved { by, binding, at },
        ) => Some(Standing::Approved {
            plan: plan.clone(),
            evidence: evidence.clone(),
            approval: Approval {
                binding: *binding,
                by: *by,
                at: *at,
            },
            override_expires_at: *override_expires_at,
        }),
        _ => None,
    }
}

/// From the approval to the end of the apply, and a cancel on the way.
fn follow_apply(now: &Standing, event: &Event) -> Option<Standing> {
    match (now, event) {
        (
            Standing::Approved {
                plan,
                evidence,
                approval,
                override_expires_at,
            },
            Event::ApplyStarted { attempt, .. },
        ) => Some(Standing::Applying {
            plan: plan.clone(),
            evidence: evidence.clone(),
            approval: approval.clone(),
            attempt: attempt.clone(),
            override_expires_at: *override_expires_at,
        }),
        (
            Standing::Applying {
                plan,
                evidence,
                approval,
                override_expires_at,
                ..
            },
            Event::ApplyHandedBack { .. },
        ) => Some(Standing::Approved {
            plan: plan.clone(),
            evidence: evidence.clone(),
            approval: approval.clone(),
            override_expires_at: *override_expires_at,
        }),
        (
            Standing::Applying { approval, .. } | Standing::ApplyCanceling { approval, .. },
            Event::ApplySucceeded { publication },
        ) => Some(Standing::Ended(Ending::Applied {
            publication: publication.clone(),
            approval: approval.clone(),
        })),
        (
            Standing::Applying { evidence, .. } | Standing::ApplyCanceling { evidence, .. },
            Event::RecoveryRequired { doubt },
        ) => Some(Standing::RecoveryRequired {
            evidence: evidence.clone(),
            doubt: doubt.clone(),
        }),
        (Standing::Planning { attempt, .. }, Event::CancelRequested { by, reason, at }) => {
            Some(Standing::PlanCanceling {
                attempt: attempt.clone(),
                by: *by,
                reason: reason.clone(),
                requested_at: *at,
            })
        }
        (
            Standing::Applying {
                plan,
                evidence,
                approval,
                attempt,
                ..
            },
            Event::CancelRequested { by, reason, at },
        ) => Some(Standing::ApplyCanceling {
            plan: plan.clone(),
            evidence: evidence.clone(),
            approval: approval.clone(),
            attempt: attempt.clone(),
            by: *by,
            reason: reason.clone(),
            requested_at: *at,
        }),
        _ => None,
    }
}

fn ending(event: &Event) -> Option<Ending> {
    match event {
        Event::PlanFailed { failure } => Some(Ending::Failed {
            reason: failure.reason,
            emergency: None,
        }),
        Event::PlanCredentialsMissing { .. } => Some(Ending::PlanCredentialsRequired),
        Event::RunDiscarded { by, .. } => Some(Ending::Discarded { by: *by }),
        Event::ApprovalExpired { .. } => Some(Ending::Expired),
        Event::ApplyFailed {
            reason, emergency, ..
        } => Some(Ending::Failed {
            reason: *reason,
            emergency: emergency.clone(),
        }),
        Event::RecoveryResolved { by, resolution, .. } => Some(Ending::Recovered {
            resolution: resolution.clone(),
            by: *by,
        }),
        Event::RunCanceled { by, .. } => Some(Ending::Canceled { by: Some(*by) }),
        Event::RunSuperseded { .. } => Some(Ending::Canceled { by: None }),
        Event::RunFinishedWithoutChanges => Some(Ending::NoChanges),
        Event::SpeculativeRunFinished => Some(Ending::SpeculativeFinished),
        Event::RunFailed { reason, .. } => Some(Ending::Failed {
            reason: *reason,
            emergency: None,
        }),
        Event::RunQueued { .. }
        | Event::LockGranted { .. }
        | Event::PlanStarted { .. }
        | Event::PlanAttemptLost { .. }
        | Event::PlanRecorded { .. }
        | Event::PolicyCheckStarted
        | Event::PolicyEvaluated { .. }
        | Event::PolicyOverridden { .. }
        | Event::ApprovalRequested { .. }
        | Event::RunApproved { .. }
        | Event::ApplyStarted { .. }
        | Event::ApplyHandedBack { .. }
        | Event::ApplySucceeded { .. }
        | Event::RecoveryRequired { .. }
        | Event::CancelRequested { .. } => None,
    }
}

impl Event {
    /// The reason code of a terminal event; `None` for every other.
    pub const fn terminal_reason(&self) -> Option<TerminalReason> {
        match self {
            Self::PlanFailed { failure } => Some(failure.reason),
            Self::PlanCredentialsMissing { .. } => Some(TerminalReason::PlanCredentialsRequired),
            Self::RunDiscarded { .. } => Some(TerminalReason::DiscardedByPerson),
            Self::ApprovalExpired { .. } => Some(TerminalReason::ApprovalExpired),
            Self::ApplySucceeded { .. } => Some(TerminalReason::Applied),
            Self::ApplyFailed { reason, .. } | Self::RunFailed { reason, .. } => Some(*reason),
            Self::RecoveryResolved { resolution, .. } => Some(match resolution {
                super::RecoveryResolution::AdoptEmergencyState { .. } => {
                    TerminalReason::RecoveredStateAdopted
                }
                super::RecoveryResolution::DeclareNoChange => TerminalReason::RecoveredNoChange,
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
}
