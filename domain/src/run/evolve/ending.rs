//! The events that end a run, and where each fits. A run that has ended stays as it is.

use crate::run::{Approval, Ending, Event, Publication, Standing, TerminalReason};

impl Standing {
    /// How `event` ends a run that stands here; `None` when it does not.
    pub(super) fn ended(&self, event: &Event) -> Option<Ending> {
        let (fits, ending) = match event {
            Event::ApplySucceeded { publication } => return self.applied(publication),
            Event::PlanFailed { failure } => (self.plans(), failed(failure.reason)),
            Event::PlanCredentialsMissing { .. } => (self.plans(), Ending::PlanCredentialsRequired),
            Event::RunDiscarded { by, .. } => (self.asks_a_person(), Ending::Discarded { by: *by }),
            Event::ApprovalExpired { .. } => (self.asks_a_person(), Ending::Expired),
            Event::PolicyOverrideExpired { .. } => (self.rests_on_an_override(), Ending::Expired),
            Event::ApplyFailed {
                reason, emergency, ..
            } => {
                let (reason, emergency) = (*reason, emergency.clone());
                (self.applies(), Ending::Failed { reason, emergency })
            }
            Event::RecoveryResolved { by, resolution, .. } => {
                let (resolution, by) = (resolution.clone(), *by);
                (self.doubts(), Ending::Recovered { resolution, by })
            }
            Event::RunCanceled { by, .. } => {
                (self.may_be_canceled(), Ending::Canceled { by: Some(*by) })
            }
            Event::RunSuperseded { .. } => {
                (self.waits() || self.plans(), Ending::Canceled { by: None })
            }
            Event::RunFinishedWithoutChanges => (self.was_evaluated(), Ending::NoChanges),
            Event::SpeculativeRunFinished => (self.was_evaluated(), Ending::SpeculativeFinished),
            Event::RunFailed { reason, .. } => (self.waits_for_stackship(), failed(*reason)),
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
            | Event::RecoveryRequired { .. }
            | Event::CancelRequested { .. } => return None,
        };
        fits.then_some(ending)
    }

    fn applied(&self, publication: &Publication) -> Option<Ending> {
        let approval = self.approval_of_apply()?;
        Some(Ending::Applied {
            publication: publication.clone(),
            approval: approval.clone(),
        })
    }

    const fn approval_of_apply(&self) -> Option<&Approval> {
        let (Self::Applying { approval, .. } | Self::ApplyCanceling { approval, .. }) = self else {
            return None;
        };
        Some(approval)
    }

    const fn plans(&self) -> bool {
        matches!(self, Self::Planning { .. })
    }

    const fn applies(&self) -> bool {
        self.approval_of_apply().is_some()
    }

    const fn doubts(&self) -> bool {
        matches!(self, Self::RecoveryRequired { .. })
    }

    const fn asks_a_person(&self) -> bool {
        matches!(
            self,
            Self::OverrideRequired { .. } | Self::AwaitingApproval { .. }
        )
    }

    const fn rests_on_an_override(&self) -> bool {
        self.override_expires_at().is_some()
    }

    const fn may_be_canceled(&self) -> bool {
        let canceling = matches!(
            self,
            Self::PlanCanceling { .. } | Self::ApplyCanceling { .. }
        );
        self.waits() || canceling
    }

    const fn was_evaluated(&self) -> bool {
        matches!(
            self,
            Self::PolicyChecking { .. } | Self::OverrideRequired { .. }
        )
    }

    const fn waits_for_stackship(&self) -> bool {
        matches!(
            self,
            Self::Queued { .. } | Self::Planned { .. } | Self::PolicyChecking { .. }
        )
    }
}

const fn failed(reason: TerminalReason) -> Ending {
    Ending::Failed {
        reason,
        emergency: None,
    }
}
