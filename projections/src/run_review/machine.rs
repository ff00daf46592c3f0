//! A review as the run that its rules know, so that whoever shows one can ask the rules themselves what
//! could follow, as of the very event the review shows.
//!
//! Both are folds over the same events; that they never differ is tried at each step of many walks.

use stackship_domain::run::{
    Approval, Attempt, Ending, Hold, PlanRecord, Run, RunKind, Standing, Status,
};

use super::{ApplyStatus, AttemptReview, AttemptStatus, Decision, RunReview};

impl RunReview {
    /// The run as of this review; `None` when the review lacks what its status stands on, which no
    /// fold of real events makes.
    pub fn run_state(&self) -> Option<Run> {
        Some(Run::Born {
            facts: Box::new(self.facts.clone()),
            hold: self.hold(),
            standing: Box::new(self.standing()?),
        })
    }

    const fn hold(&self) -> Hold {
        match (self.facts.kind, self.fence) {
            (RunKind::Speculative, _) => Hold::NotNeeded,
            (RunKind::PlanAndApply, None) => Hold::Waiting,
            (RunKind::PlanAndApply, Some(fence)) => Hold::Held(fence),
        }
    }

    fn standing(&self) -> Option<Standing> {
        Some(match self.status {
            Status::Queued => Standing::Queued {
                attempts_lost: self.attempts_lost(),
            },
            Status::Planning => Standing::Planning {
                attempt: newest(&self.plan.attempts)?,
                attempts_lost: self.attempts_lost(),
            },
            Status::Planned => Standing::Planned { plan: self.plan()? },
            Status::PolicyChecking => Standing::PolicyChecking { plan: self.plan()? },
            Status::OverrideRequired => Standing::OverrideRequired {
                plan: self.plan()?,
                policy: self.policy.result.clone()?,
                expires_at: self.policy.decide_by?,
                override_expires_at: self.override_expires_at(),
            },
            Status::AwaitingApproval => Standing::AwaitingApproval {
                plan: self.plan()?,
                evidence: self.approval.request.as_ref()?.evidence.clone(),
                expires_at: self.approval.request.as_ref()?.expires_at,
                override_expires_at: self.override_expires_at(),
            },
            Status::Approved => Standing::Approved {
                plan: self.plan()?,
                evidence: self.approval.request.as_ref()?.evidence.clone(),
                approval: self.approval()?,
                override_expires_at: self.override_expires_at(),
            },
            Status::Applying => Standing::Applying {
                plan: self.plan()?,
                evidence: self.approval.request.as_ref()?.evidence.clone(),
                approval: self.approval()?,
                attempt: newest(&self.apply.attempts)?,
                override_expires_at: self.override_expires_at(),
            },
            Status::Canceling => self.canceling()?,
            Status::RecoveryRequired => Standing::RecoveryRequired {
                evidence: self.approval.request.as_ref()?.evidence.clone(),
                doubt: self.recovery.as_ref()?.doubt.clone(),
            },
            Status::Applied
            | Status::NoChanges
            | Status::SpeculativeFinished
            | Status::Failed
            | Status::Discarded
            | Status::Expired
            | Status::Canceled
            | Status::PlanCredentialsRequired
            | Status::Recovered => Standing::Ended(self.ending()?),
        })
    }

    fn canceling(&self) -> Option<Standing> {
        let asked = self.cancel_requested.as_ref()?;
        let (by, reason, requested_at) = (asked.by, asked.reason.clone(), asked.at);
        if self.apply.status == ApplyStatus::Running {
            return Some(Standing::ApplyCanceling {
                plan: self.plan()?,
                evidence: self.approval.request.as_ref()?.evidence.clone(),
                approval: self.approval()?,
                attempt: newest(&self.apply.attempts)?,
                by,
                reason,
                requested_at,
            });
        }
        Some(Standing::PlanCanceling {
            attempt: newest(&self.plan.attempts)?,
            by,
            reason,
            requested_at,
        })
    }

    /// The status names the ending; the rest of the review has what it carries.
    fn ending(&self) -> Option<Ending> {
        let end = self.ended.as_ref()?;
        Some(match self.status {
            Status::Applied => Ending::Applied {
                publication: self.apply.published.as_ref()?.publication.clone(),
                approval: self.approval()?,
            },
            Status::NoChanges => Ending::NoChanges,
            Status::SpeculativeFinished => Ending::SpeculativeFinished,
            Status::Failed => Ending::Failed {
                reason: end.reason,
                emergency: self
                    .apply
                    .emergency
                    .as_ref()
                    .and_then(|left| left.staged.clone()),
            },
            Status::Discarded => Ending::Discarded { by: end.by },
            Status::Expired => Ending::Expired,
            Status::Canceled => Ending::Canceled {
                by: end.superseded_by.is_none().then_some(end.by),
            },
            Status::PlanCredentialsRequired => Ending::PlanCredentialsRequired,
            Status::Recovered => {
                let decided = self.recovery.as_ref()?.resolved.as_ref()?;
                Ending::Recovered {
                    resolution: decided.resolution.clone(),
                    by: decided.by,
                }
            }
            Status::Queued
            | Status::Planning
            | Status::Planned
            | Status::PolicyChecking
            | Status::OverrideRequired
            | Status::AwaitingApproval
            | Status::Approved
            | Status::Applying
            | Status::Canceling
            | Status::RecoveryRequired => return None,
        })
    }

    fn plan(&self) -> Option<PlanRecord> {
        self.plan.record.clone()
    }

    fn attempts_lost(&self) -> u32 {
        let lost = self
            .plan
            .attempts
            .iter()
            .filter(|attempt| attempt.status == AttemptStatus::Lost);
        u32::try_from(lost.count()).unwrap_or(u32::MAX)
    }

    fn override_expires_at(&self) -> Option<stackship_domain::Timestamp> {
        self.policy.overrides.last().map(|given| given.expires_at)
    }

    const fn approval(&self) -> Option<Approval> {
        match &self.approval.decision {
            Some(Decision::Approved { by, at, binding }) => Some(Approval {
                binding: *binding,
                by: *by,
                at: *at,
            }),
            Some(
                Decision::Discarded { .. }
                | Decision::Canceled { .. }
                | Decision::Superseded { .. }
                | Decision::Expired { .. },
            )
            | None => None,
        }
    }
}

fn newest(attempts: &[AttemptReview]) -> Option<Attempt> {
    attempts.last().map(|attempt| Attempt {
        id: attempt.id,
        number: attempt.number,
        runner: attempt.runner,
    })
}
