//! What an event makes of a review. Total, like the aggregate's own fold: an event has happened.

use stackship_domain::Timestamp;
use stackship_domain::ids::{AttemptId, ObjectId, RunId};
use stackship_domain::run::{
    Attempt, Doubt, Event, LossReason, PlanRecord, PolicyOutcome, PolicyResult, RunKind,
    StagedState, Status,
};

use super::{
    ApplyReview, ApplyStatus, ApprovalRequest, ApprovalReview, AttemptReview, AttemptStatus,
    CancelRequest, Decision, EmergencyState, OVERRIDES_MAX, OverrideReview, PlanReview, PlanStatus,
    PolicyReview, PublishedState, RecoveryDecision, RecoveryReview, RunReview, StageTimes,
};
use crate::Recorded;

impl RunReview {
    /// The review of a run that was just created; `None` when the event does not create it.
    pub fn begin(run: RunId, recorded: &Recorded<Event>) -> Option<Self> {
        let Event::RunQueued { facts, .. } = &recorded.event else {
            return None;
        };
        Some(Self {
            run,
            last_sequence: recorded.sequence,
            updated_at: recorded.recorded_at,
            facts: facts.clone(),
            status: Status::Queued,
            fence: None,
            warnings: Vec::new(),
            plan: PlanReview::default(),
            policy: PolicyReview::default(),
            approval: ApprovalReview::default(),
            apply: ApplyReview::default(),
            cancel_requested: None,
            recovery: None,
            ended: None,
        })
    }

    /// Takes an event that has happened.
    #[expect(
        clippy::too_many_lines,
        reason = "it is the list of all events, each taken at once"
    )]
    pub fn take(&mut self, recorded: &Recorded<Event>) {
        let now = recorded.recorded_at;
        match &recorded.event {
            Event::RunQueued { .. }
            | Event::RunFinishedWithoutChanges
            | Event::SpeculativeRunFinished
            | Event::PlanFailed { .. }
            | Event::PlanCredentialsMissing { .. }
            | Event::RunFailed { .. } => {}
            Event::LockGranted { fence, warnings } => {
                self.fence = Some(*fence);
                self.warnings.clone_from(warnings);
            }
            Event::PlanStarted { attempt } => self.plan_started(attempt, now),
            Event::PlanAttemptLost { attempt, reason } => {
                self.plan_attempt_lost(*attempt, *reason, now);
            }
            Event::PlanRecorded { plan } => self.plan_recorded(plan, now),
            Event::PolicyCheckStarted => self.policy.times.started_at = Some(now),
            Event::PolicyEvaluated {
                result,
                approval_expires_at,
            } => self.policy_evaluated(result, *approval_expires_at, now),
            Event::PolicyOverridden {
                by,
                result,
                reason,
                expires_at,
            } => {
                self.policy.take_override(OverrideReview {
                    by: *by,
                    result: *result,
                    reason: reason.clone(),
                    expires_at: *expires_at,
                    at: now,
                });
            }
            Event::ApprovalRequested {
                evidence,
                binding,
                expires_at,
            } => {
                self.approval.times.started_at = Some(now);
                self.approval.request = Some(ApprovalRequest {
                    evidence: evidence.clone(),
                    binding: *binding,
                    expires_at: *expires_at,
                });
            }
            Event::RunApproved { by, binding, at } => {
                let (by, at, binding) = (*by, *at, *binding);
                self.decided(Decision::Approved { by, at, binding }, now);
            }
            Event::RunDiscarded { by, reason, at } => {
                let (by, at, reason) = (*by, *at, reason.clone());
                self.decided(Decision::Discarded { by, at, reason }, now);
            }
            Event::RunCanceled { by, reason, at } => {
                let (by, at, reason) = (*by, *at, reason.clone());
                self.decided(Decision::Canceled { by, at, reason }, now);
            }
            Event::RunSuperseded { by, at } => {
                self.decided(Decision::Superseded { by: *by, at: *at }, now);
            }
            Event::ApprovalExpired { at } | Event::PolicyOverrideExpired { at } => {
                self.decided(Decision::Expired { at: *at }, now);
            }
            Event::ApplyStarted { attempt, .. } => self.apply_started(attempt, now),
            Event::ApplyHandedBack { attempt } => self.apply_handed_back(*attempt, now),
            Event::ApplySucceeded { publication } => {
                self.apply_over(ApplyStatus::Finished, AttemptStatus::Finished, now);
                self.apply.published = Some(PublishedState {
                    publication: publication.clone(),
                    at: now,
                });
            }
            Event::ApplyFailed { emergency, .. } => {
                self.apply_over(ApplyStatus::Errored, AttemptStatus::Errored, now);
                self.apply.emergency = left_behind(emergency.as_ref(), None);
            }
            Event::RecoveryRequired { doubt } => self.recovery_required(doubt, now),
            Event::RecoveryResolved {
                by,
                resolution,
                reason,
                at,
            } => {
                if let Some(recovery) = &mut self.recovery {
                    recovery.resolved = Some(RecoveryDecision {
                        by: *by,
                        at: *at,
                        resolution: resolution.clone(),
                        reason: reason.clone(),
                    });
                }
            }
            Event::CancelRequested { by, reason, at } => {
                self.cancel_requested = Some(CancelRequest {
                    by: *by,
                    at: *at,
                    reason: reason.clone(),
                });
            }
        }
        if let Some(status) = status_after(&recorded.event) {
            self.status = status;
        }
        self.end(recorded);
        self.last_sequence = recorded.sequence;
        self.updated_at = now;
    }

    fn plan_started(&mut self, attempt: &Attempt, now: Timestamp) {
        self.plan.status = PlanStatus::Running;
        self.plan.times.started_at.get_or_insert(now);
        self.plan.attempts.push(started(attempt, now));
    }

    fn plan_attempt_lost(&mut self, id: AttemptId, reason: LossReason, now: Timestamp) {
        self.plan.status = PlanStatus::Pending;
        for attempt in self.plan.attempts.iter_mut().filter(|tried| tried.id == id) {
            attempt.status = AttemptStatus::Lost;
            attempt.loss = Some(reason);
            attempt.times.ended_at = Some(now);
        }
    }

    fn plan_recorded(&mut self, plan: &PlanRecord, now: Timestamp) {
        self.plan.record = Some(plan.clone());
        self.plan.times.ended_at = Some(now);
        close(&mut self.plan.attempts, AttemptStatus::Finished, now);
    }

    fn policy_evaluated(&mut self, result: &PolicyResult, decide_by: Timestamp, now: Timestamp) {
        let may_be_overridden =
            result.outcome == PolicyOutcome::SoftFailed && self.facts.kind == RunKind::PlanAndApply;
        self.policy.decide_by = may_be_overridden.then_some(decide_by);
        self.policy.result = Some(result.clone());
        self.policy.times.ended_at = Some(now);
        self.plan.status = PlanStatus::Finished;
    }

    /// The first answer stands: a cancel of an approved run does not undo its approval.
    fn decided(&mut self, decision: Decision, now: Timestamp) {
        let asked = self.approval.request.is_some() || self.policy.decide_by.is_some();
        if asked && self.approval.decision.is_none() {
            self.approval.decision = Some(decision);
            self.approval.times.ended_at = Some(now);
        }
    }

    fn apply_started(&mut self, attempt: &Attempt, now: Timestamp) {
        self.apply.status = ApplyStatus::Running;
        self.apply.times.started_at = Some(now);
        self.apply.attempts.push(started(attempt, now));
    }

    fn apply_handed_back(&mut self, id: AttemptId, now: Timestamp) {
        self.apply.status = ApplyStatus::Pending;
        self.apply.times = StageTimes::default();
        for attempt in self
            .apply
            .attempts
            .iter_mut()
            .filter(|tried| tried.id == id)
        {
            attempt.status = AttemptStatus::HandedBack;
            attempt.times.ended_at = Some(now);
        }
    }

    fn apply_over(&mut self, status: ApplyStatus, attempt: AttemptStatus, now: Timestamp) {
        self.apply.status = status;
        self.apply.times.ended_at = Some(now);
        close(&mut self.apply.attempts, attempt, now);
    }

    fn recovery_required(&mut self, doubt: &Doubt, now: Timestamp) {
        self.apply_over(ApplyStatus::Interrupted, AttemptStatus::Interrupted, now);
        self.apply.emergency = left_behind(doubt.emergency.as_ref(), doubt.errored_state_object);
        self.recovery = Some(RecoveryReview {
            doubt: doubt.clone(),
            since: now,
            resolved: None,
        });
    }
}

impl PolicyReview {
    fn take_override(&mut self, given: OverrideReview) {
        if self.overrides.len() < OVERRIDES_MAX {
            self.overrides.push(given);
        } else {
            self.overrides_truncated = true;
        }
    }
}

fn started(attempt: &Attempt, now: Timestamp) -> AttemptReview {
    AttemptReview {
        id: attempt.id,
        number: attempt.number,
        runner: attempt.runner,
        status: AttemptStatus::Running,
        loss: None,
        times: StageTimes {
            started_at: Some(now),
            ended_at: None,
        },
    }
}

/// Ends the try that is still running, if there is one.
pub(super) fn close(attempts: &mut [AttemptReview], status: AttemptStatus, now: Timestamp) {
    for attempt in attempts
        .iter_mut()
        .filter(|attempt| attempt.status == AttemptStatus::Running)
    {
        attempt.status = status;
        attempt.times.ended_at = Some(now);
    }
}

fn left_behind(
    staged: Option<&StagedState>,
    errored_state_object: Option<ObjectId>,
) -> Option<EmergencyState> {
    let anything = staged.is_some() || errored_state_object.is_some();
    anything.then(|| EmergencyState {
        staged: staged.cloned(),
        errored_state_object,
    })
}

/// Where an event leaves the run; `None` when it stays where it is.
const fn status_after(event: &Event) -> Option<Status> {
    Some(match event {
        Event::LockGranted { .. } => return None,
        Event::RunQueued { .. } | Event::PlanAttemptLost { .. } => Status::Queued,
        Event::PlanStarted { .. } => Status::Planning,
        Event::PlanRecorded { .. } => Status::Planned,
        Event::PolicyCheckStarted => Status::PolicyChecking,
        // Unless the event that follows in the same transaction says more; both are seen at once.
        Event::PolicyEvaluated { .. } | Event::PolicyOverridden { .. } => Status::OverrideRequired,
        Event::ApprovalRequested { .. } => Status::AwaitingApproval,
        Event::RunApproved { .. } | Event::ApplyHandedBack { .. } => Status::Approved,
        Event::ApplyStarted { .. } => Status::Applying,
        Event::CancelRequested { .. } => Status::Canceling,
        Event::RecoveryRequired { .. } => Status::RecoveryRequired,
        Event::ApplySucceeded { .. } => Status::Applied,
        Event::RunFinishedWithoutChanges => Status::NoChanges,
        Event::SpeculativeRunFinished => Status::SpeculativeFinished,
        Event::PlanFailed { .. } | Event::ApplyFailed { .. } | Event::RunFailed { .. } => {
            Status::Failed
        }
        Event::PlanCredentialsMissing { .. } => Status::PlanCredentialsRequired,
        Event::RunDiscarded { .. } => Status::Discarded,
        Event::ApprovalExpired { .. } | Event::PolicyOverrideExpired { .. } => Status::Expired,
        Event::RunCanceled { .. } | Event::RunSuperseded { .. } => Status::Canceled,
        Event::RecoveryResolved { .. } => Status::Recovered,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackship_domain::run::samples::{self, at};

    #[test]
    fn of_257_overrides_256_are_kept_and_the_cut_is_told() {
        let mut policy = PolicyReview::default();
        let mut give = |number| {
            policy.take_override(OverrideReview {
                by: samples::reviewer(),
                result: samples::policy(PolicyOutcome::SoftFailed).digest,
                reason: "Agreed in review.".to_owned(),
                expires_at: at(3600),
                at: at(number),
            });
            (policy.overrides.len(), policy.overrides_truncated)
        };
        let kept: Vec<_> = (1..=257).map(&mut give).collect();
        assert_eq!(kept[255..], [(256, false), (256, true)]);
        assert_eq!(policy.overrides[0].at, at(1));
    }
}
