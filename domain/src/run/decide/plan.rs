//! The plan phase: attempts, their reports, their losses. A plan changes nothing outside, so it may
//! be tried again, and a cancel that was asked for holds whatever the plan still found.

use super::{Born, Decision, failure_before_apply};
use crate::Timestamp;
use crate::ids::AttemptId;
use crate::run::{
    Attempt, Event, Hold, LossReason, PLAN_ATTEMPTS_MAX, PlanFailure, PlanRecord, Refusal,
    Standing, TerminalReason,
};

impl Born<'_> {
    pub(super) fn start_plan(&self, attempt: Attempt) -> Decision {
        match (self.standing, self.hold) {
            (Standing::Queued { .. }, Hold::Waiting) => Err(Refusal::LockNotHeld),
            (Standing::Queued { .. }, Hold::Held(_) | Hold::NotNeeded) => {
                Ok(vec![Event::PlanStarted { attempt }])
            }
            (Standing::Planning { attempt: now, .. }, _) if *now == attempt => Ok(vec![]),
            _ => Err(self.wrong_status()),
        }
    }

    pub(super) fn record_plan(&self, attempt: AttemptId, plan: PlanRecord) -> Decision {
        self.plan_report(attempt, Event::PlanRecorded { plan })
    }

    pub(super) fn fail_plan(&self, attempt: AttemptId, failure: PlanFailure) -> Decision {
        let reason = failure.reason;
        let decision = self.plan_report(attempt, Event::PlanFailed { failure })?;
        failure_before_apply(reason)?;
        Ok(decision)
    }

    pub(super) fn require_plan_credentials(&self, attempt: AttemptId, detail: String) -> Decision {
        self.plan_report(attempt, Event::PlanCredentialsMissing { detail })
    }

    /// What the current attempt found, unless somebody canceled the run meanwhile.
    fn plan_report(&self, attempt: AttemptId, found: Event) -> Decision {
        match self.standing {
            Standing::Planning { attempt: now, .. } if now.id == attempt => Ok(vec![found]),
            Standing::PlanCanceling {
                attempt: now,
                by,
                reason,
                requested_at,
            } if now.id == attempt => Ok(vec![Event::RunCanceled {
                by: *by,
                reason: reason.clone(),
                at: *requested_at,
            }]),
            Standing::Planning { .. } | Standing::PlanCanceling { .. } => {
                Err(Refusal::StaleAttempt)
            }
            _ => Err(self.wrong_status()),
        }
    }

    pub(super) fn stop_plan(&self, attempt: AttemptId, at: Timestamp) -> Decision {
        match self.standing {
            Standing::PlanCanceling { attempt: now, .. } if now.id != attempt => {
                Err(Refusal::StaleAttempt)
            }
            Standing::PlanCanceling { by, reason, .. } => Ok(vec![Event::RunCanceled {
                by: *by,
                reason: reason.clone(),
                at,
            }]),
            _ => Err(self.wrong_status()),
        }
    }

    pub(super) fn lose_plan(
        &self,
        attempt: AttemptId,
        reason: LossReason,
        at: Timestamp,
    ) -> Decision {
        match self.standing {
            Standing::Planning { attempt: now, .. } if now.id != attempt => {
                Err(Refusal::StaleAttempt)
            }
            Standing::Planning { attempts_lost, .. } => {
                let lost = Event::PlanAttemptLost { attempt, reason };
                if attempts_lost + 1 < PLAN_ATTEMPTS_MAX {
                    Ok(vec![lost])
                } else {
                    Ok(vec![lost, attempts_exhausted(reason)])
                }
            }
            _ => self.stop_plan(attempt, at),
        }
    }
}

fn attempts_exhausted(last: LossReason) -> Event {
    Event::RunFailed {
        reason: TerminalReason::PlanAttemptsExhausted,
        detail: format!("{PLAN_ATTEMPTS_MAX} attempts to plan lost their runner ({last})."),
    }
}
