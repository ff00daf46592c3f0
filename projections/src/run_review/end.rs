//! What the end of a run leaves in its review: the reason, and phases that nothing will finish now.

use stackship_domain::Timestamp;
use stackship_domain::run::{Event, TerminalReason};

use super::fold::close;
use super::{ApplyStatus, AttemptStatus, End, PlanStatus, RunReview};
use crate::Recorded;

impl RunReview {
    /// Takes the end that an event brings; nothing when it brings none.
    pub(super) fn end(&mut self, recorded: &Recorded<Event>) {
        let Some(reason) = recorded.event.terminal_reason() else {
            return;
        };
        let now = recorded.recorded_at;
        let mut end = End {
            reason,
            detail: None,
            by: recorded.actor,
            words: None,
            superseded_by: None,
            at: now,
        };
        match &recorded.event {
            Event::PlanFailed { failure } => end.detail = Some(failure.detail.clone()),
            Event::PlanCredentialsMissing { detail }
            | Event::ApplyFailed { detail, .. }
            | Event::RunFailed { detail, .. } => end.detail = Some(detail.clone()),
            Event::RunDiscarded { by, reason, .. } | Event::RunCanceled { by, reason, .. } => {
                end.by = *by;
                end.words.clone_from(reason);
            }
            Event::RecoveryResolved { by, reason, .. } => {
                end.by = *by;
                end.words = Some(reason.clone());
            }
            Event::RunSuperseded { by, .. } => end.superseded_by = Some(*by),
            // The reason says it all.
            Event::ApprovalExpired { .. }
            | Event::PolicyOverrideExpired { .. }
            | Event::ApplySucceeded { .. }
            | Event::RunFinishedWithoutChanges
            | Event::SpeculativeRunFinished => {}
            // These end nothing.
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
            | Event::CancelRequested { .. } => return,
        }
        self.settle(reason, now);
        self.ended = Some(end);
    }

    /// A plan that was recorded is finished, whatever ended the run; what a runner was still at is
    /// over too.
    fn settle(&mut self, reason: TerminalReason, now: Timestamp) {
        let canceled = matches!(
            reason,
            TerminalReason::CanceledByPerson | TerminalReason::Superseded
        );
        let attempt = if canceled {
            AttemptStatus::Canceled
        } else {
            AttemptStatus::Errored
        };
        if matches!(self.plan.status, PlanStatus::Pending | PlanStatus::Running) {
            self.plan.status = match (&self.plan.record, canceled) {
                (Some(_), _) => PlanStatus::Finished,
                (None, true) => PlanStatus::Canceled,
                (None, false) => PlanStatus::Errored,
            };
            if self.plan.times.started_at.is_some() {
                self.plan.times.ended_at.get_or_insert(now);
            }
        }
        if self.apply.status == ApplyStatus::Running {
            self.apply.status = if canceled {
                ApplyStatus::Canceled
            } else {
                ApplyStatus::Errored
            };
            self.apply.times.ended_at = Some(now);
        }
        if self.policy.times.started_at.is_some() {
            self.policy.times.ended_at.get_or_insert(now);
        }
        close(&mut self.plan.attempts, attempt, now);
        close(&mut self.apply.attempts, attempt, now);
    }
}
