//! From the queue to the approval. Each function names the standings its event fits.

use crate::run::{
    Approval, Attempt, Evidence, PlanRecord, PolicyOutcome, PolicyResult, RunKind, Standing,
};
use crate::{Actor, Sha256Digest, Timestamp};

impl Standing {
    pub(super) fn plan_started(&self, attempt: &Attempt) -> Option<Self> {
        let Self::Queued { attempts_lost } = self else {
            return None;
        };
        Some(Self::Planning {
            attempt: attempt.clone(),
            attempts_lost: *attempts_lost,
        })
    }

    pub(super) const fn plan_attempt_lost(&self) -> Option<Self> {
        let Self::Planning { attempts_lost, .. } = self else {
            return None;
        };
        Some(Self::Queued {
            attempts_lost: attempts_lost.saturating_add(1),
        })
    }

    pub(super) fn plan_recorded(&self, plan: &PlanRecord) -> Option<Self> {
        let Self::Planning { .. } = self else {
            return None;
        };
        Some(Self::Planned { plan: plan.clone() })
    }

    pub(super) fn policy_check_started(&self) -> Option<Self> {
        let Self::Planned { plan } = self else {
            return None;
        };
        Some(Self::PolicyChecking { plan: plan.clone() })
    }

    /// Only a failure that somebody may override is a place to stand. After every other result the
    /// next event of the same decision says where the run goes.
    pub(super) fn policy_evaluated(
        &self,
        kind: RunKind,
        policy: &PolicyResult,
        expires_at: Timestamp,
    ) -> Option<Self> {
        let Self::PolicyChecking { plan } = self else {
            return None;
        };
        match (policy.outcome, kind) {
            (PolicyOutcome::SoftFailed, RunKind::PlanAndApply) => Some(Self::OverrideRequired {
                plan: plan.clone(),
                policy: policy.clone(),
                expires_at,
                override_expires_at: None,
            }),
            (PolicyOutcome::SoftFailed, RunKind::Speculative)
            | (PolicyOutcome::Pass | PolicyOutcome::HardFailed | PolicyOutcome::Error, _) => None,
        }
    }

    pub(super) fn policy_overridden(&self, until: Timestamp) -> Option<Self> {
        let Self::OverrideRequired {
            plan,
            policy,
            expires_at,
            ..
        } = self
        else {
            return None;
        };
        Some(Self::OverrideRequired {
            plan: plan.clone(),
            policy: policy.clone(),
            expires_at: *expires_at,
            override_expires_at: Some(until),
        })
    }

    pub(super) fn approval_requested(
        &self,
        evidence: &Evidence,
        expires_at: Timestamp,
    ) -> Option<Self> {
        let (plan, override_expires_at) = match self {
            Self::PolicyChecking { plan } => (plan, None),
            Self::OverrideRequired {
                plan,
                override_expires_at,
                ..
            } => (plan, *override_expires_at),
            _ => return None,
        };
        Some(Self::AwaitingApproval {
            plan: plan.clone(),
            evidence: evidence.clone(),
            expires_at,
            override_expires_at,
        })
    }

    pub(super) fn approved(&self, by: Actor, binding: Sha256Digest, at: Timestamp) -> Option<Self> {
        let Self::AwaitingApproval {
            plan,
            evidence,
            override_expires_at,
            ..
        } = self
        else {
            return None;
        };
        Some(Self::Approved {
            plan: plan.clone(),
            evidence: evidence.clone(),
            approval: Approval { binding, by, at },
            override_expires_at: *override_expires_at,
        })
    }
}
