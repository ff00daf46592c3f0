//! What an event makes of a run. Total: an event has happened and cannot be refused. An event that
//! does not fit where the run stands changes nothing; `decide` never writes one.

mod apply;
mod ending;
mod review;

use super::{Event, Hold, Run, RunKind, Standing};

impl Run {
    /// Takes an event that has happened.
    pub fn evolve(&mut self, event: &Event) {
        match (&mut *self, event) {
            (Self::Unborn, Event::RunQueued { facts, .. }) => {
                let hold = match facts.kind {
                    RunKind::PlanAndApply => Hold::Waiting,
                    RunKind::Speculative => Hold::NotNeeded,
                };
                *self = Self::Born {
                    facts: Box::new(facts.clone()),
                    hold,
                    standing: Box::new(Standing::Queued { attempts_lost: 0 }),
                };
            }
            (
                Self::Born {
                    hold: hold @ Hold::Waiting,
                    standing,
                    ..
                },
                Event::LockGranted { fence, .. },
            ) if matches!(**standing, Standing::Queued { .. }) => *hold = Hold::Held(*fence),
            (
                Self::Born {
                    facts, standing, ..
                },
                event,
            ) => {
                if let Some(next) = standing.after(event, facts.kind) {
                    **standing = next;
                }
            }
            (Self::Unborn, _) => {}
        }
    }
}

impl Standing {
    /// Where the run stands after `event`; `None` when it stays where it is.
    fn after(&self, event: &Event, kind: RunKind) -> Option<Self> {
        match event {
            Event::RunQueued { .. } | Event::LockGranted { .. } => None,
            Event::PlanStarted { attempt } => self.plan_started(attempt),
            Event::PlanAttemptLost { .. } => self.plan_attempt_lost(),
            Event::PlanRecorded { plan } => self.plan_recorded(plan),
            Event::PolicyCheckStarted => self.policy_check_started(),
            Event::PolicyEvaluated {
                result,
                approval_expires_at,
            } => self.policy_evaluated(kind, result, *approval_expires_at),
            Event::PolicyOverridden { expires_at, .. } => self.policy_overridden(*expires_at),
            Event::ApprovalRequested {
                evidence,
                expires_at,
                ..
            } => self.approval_requested(evidence, *expires_at),
            Event::RunApproved { by, binding, at } => self.approved(*by, *binding, *at),
            Event::ApplyStarted { attempt, .. } => self.apply_started(attempt),
            Event::ApplyHandedBack { .. } => self.apply_handed_back(),
            Event::RecoveryRequired { doubt } => self.recovery_required(doubt),
            Event::CancelRequested { by, reason, at } => {
                self.cancel_requested(*by, reason.as_deref(), *at)
            }
            Event::ApplySucceeded { .. }
            | Event::ApplyFailed { .. }
            | Event::RecoveryResolved { .. }
            | Event::PlanFailed { .. }
            | Event::PlanCredentialsMissing { .. }
            | Event::RunDiscarded { .. }
            | Event::ApprovalExpired { .. }
            | Event::PolicyOverrideExpired { .. }
            | Event::RunCanceled { .. }
            | Event::RunSuperseded { .. }
            | Event::RunFinishedWithoutChanges
            | Event::SpeculativeRunFinished
            | Event::RunFailed { .. } => self.ended(event).map(Self::Ended),
        }
    }
}
