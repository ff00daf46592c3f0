//! The apply phase. It happens once: what is lost or doubtful is an operator's to judge, and never
//! looks like success, failure or a cancel.

use super::approval::same_binding;
use super::{Born, Decision};
use crate::ids::AttemptId;
use crate::run::{
    ApplyReport, Attempt, Doubt, DoubtReason, Event, LossReason, Refusal, RunKind, StagedState,
    Standing,
};
use crate::{Fence, Sha256Digest, Timestamp};

impl Born<'_> {
    pub(super) fn start_apply(
        &self,
        attempt: Attempt,
        fence: Fence,
        binding: Sha256Digest,
        at: Timestamp,
    ) -> Decision {
        if self.facts.kind == RunKind::Speculative {
            return Err(Refusal::Speculative);
        }
        match self.standing {
            Standing::Approved { approval, .. } => {
                self.current_fence(fence)?;
                same_binding(approval.binding, binding)?;
                self.override_holds(at)?;
                Ok(vec![Event::ApplyStarted {
                    attempt,
                    fence,
                    binding,
                }])
            }
            Standing::Applying {
                attempt: now,
                approval,
                ..
            } if *now == attempt => {
                self.current_fence(fence)?;
                same_binding(approval.binding, binding)?;
                Ok(vec![])
            }
            _ => Err(self.wrong_status()),
        }
    }

    pub(super) fn hand_back_apply(&self, attempt: AttemptId, at: Timestamp) -> Decision {
        self.applying_attempt(attempt)?;
        match self.standing {
            Standing::Applying { .. } => Ok(vec![Event::ApplyHandedBack { attempt }]),
            Standing::ApplyCanceling { by, reason, .. } => Ok(vec![Event::RunCanceled {
                by: *by,
                reason: reason.clone(),
                at,
            }]),
            _ => Err(self.wrong_status()),
        }
    }

    pub(super) fn record_apply(
        &self,
        attempt: AttemptId,
        fence: Fence,
        report: ApplyReport,
        at: Timestamp,
    ) -> Decision {
        self.applying_attempt(attempt)?;
        self.current_fence(fence)?;
        match (self.standing, report) {
            // OpenTofu was never started, so the cancel came in time.
            (Standing::ApplyCanceling { by, reason, .. }, ApplyReport::NotStarted { .. }) => {
                Ok(vec![Event::RunCanceled {
                    by: *by,
                    reason: reason.clone(),
                    at,
                }])
            }
            (Standing::ApplyCanceling { .. }, ApplyReport::Failed { detail, emergency }) => {
                Ok(vec![doubt(DoubtReason::Interrupted, detail, emergency)])
            }
            // What happened is told, also to somebody who wanted to stop it.
            (_, report) => Ok(vec![Event::of_report(report)]),
        }
    }

    pub(super) fn lose_apply(
        &self,
        attempt: AttemptId,
        reason: LossReason,
        emergency: Option<StagedState>,
    ) -> Decision {
        self.applying_attempt(attempt)?;
        let reason = match reason {
            LossReason::LeaseExpired | LossReason::HandedBack => DoubtReason::LeaseLost,
            LossReason::SandboxLost => DoubtReason::SandboxLost,
        };
        let detail = "The runner was lost while it applied.".to_owned();
        Ok(vec![doubt(reason, detail, emergency)])
    }

    /// The run is applying (also while it is being canceled) in exactly this try.
    fn applying_attempt(&self, attempt: AttemptId) -> Result<(), Refusal> {
        match self.standing {
            Standing::Applying { attempt: now, .. }
            | Standing::ApplyCanceling { attempt: now, .. } => {
                if now.id == attempt {
                    Ok(())
                } else {
                    Err(Refusal::StaleAttempt)
                }
            }
            _ => Err(self.wrong_status()),
        }
    }
}

fn doubt(reason: DoubtReason, detail: String, emergency: Option<StagedState>) -> Event {
    Event::RecoveryRequired {
        doubt: Doubt {
            reason,
            detail,
            emergency,
            errored_state_object: None,
        },
    }
}
