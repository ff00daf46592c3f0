//! Ends before the end: a person stops the run, a newer run takes its place, or StackShip itself
//! cannot go on. While a runner works, stopping is a request; the runner's answer ends the run.

use super::{Born, Decision, failure_before_apply};
use crate::ids::RunId;
use crate::run::{Ending, Event, PlanFailure, RunKind, Standing};
use crate::{Actor, Timestamp};

impl Born<'_> {
    pub(super) fn cancel(&self, by: Actor, reason: Option<String>, at: Timestamp) -> Decision {
        match self.standing {
            waiting if waiting.waits() => Ok(vec![Event::RunCanceled { by, reason, at }]),
            Standing::Planning { .. } | Standing::Applying { .. } => {
                Ok(vec![Event::CancelRequested { by, reason, at }])
            }
            Standing::PlanCanceling { by: earlier, .. }
            | Standing::ApplyCanceling { by: earlier, .. }
            | Standing::Ended(Ending::Canceled { by: Some(earlier) })
                if *earlier == by =>
            {
                Ok(vec![])
            }
            _ => Err(self.wrong_status()),
        }
    }

    /// A run that applies goes on: half an apply helps no newer run.
    pub(super) fn supersede(&self, by: RunId, at: Timestamp) -> Decision {
        match (self.standing, self.facts.kind) {
            (waiting, _) if waiting.waits() => Ok(vec![Event::RunSuperseded { by, at }]),
            // It holds no lock: whatever its runner still reports is refused.
            (Standing::Planning { .. }, RunKind::Speculative) => {
                Ok(vec![Event::RunSuperseded { by, at }])
            }
            // Its runner works under the workspace's lock, so the run ends when the runner stopped.
            (Standing::Planning { .. }, RunKind::PlanAndApply) => {
                Ok(vec![Event::CancelRequested {
                    by: Actor::System,
                    reason: Some(format!("`{by}` took this run's place.")),
                    at,
                }])
            }
            (Standing::Ended(Ending::Canceled { by: None }), _) => Ok(vec![]),
            _ => Err(self.wrong_status()),
        }
    }

    pub(super) fn fail(&self, failure: PlanFailure) -> Decision {
        match self.standing {
            Standing::Queued { .. }
            | Standing::Planned { .. }
            | Standing::PolicyChecking { .. } => {
                failure_before_apply(failure.reason)?;
                Ok(vec![Event::RunFailed {
                    reason: failure.reason,
                    detail: failure.detail,
                }])
            }
            _ => Err(self.wrong_status()),
        }
    }
}
