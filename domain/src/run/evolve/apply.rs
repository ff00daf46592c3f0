//! From the approval to the doubt, and a cancel on the way. Each function names the standings its
//! event fits.

use crate::run::{Attempt, Doubt, Standing};
use crate::{Actor, Timestamp};

impl Standing {
    pub(super) fn apply_started(&self, attempt: &Attempt) -> Option<Self> {
        let Self::Approved {
            plan,
            evidence,
            approval,
            override_expires_at,
        } = self
        else {
            return None;
        };
        Some(Self::Applying {
            plan: plan.clone(),
            evidence: evidence.clone(),
            approval: approval.clone(),
            attempt: attempt.clone(),
            override_expires_at: *override_expires_at,
        })
    }

    pub(super) fn apply_handed_back(&self) -> Option<Self> {
        let Self::Applying {
            plan,
            evidence,
            approval,
            override_expires_at,
            ..
        } = self
        else {
            return None;
        };
        Some(Self::Approved {
            plan: plan.clone(),
            evidence: evidence.clone(),
            approval: approval.clone(),
            override_expires_at: *override_expires_at,
        })
    }

    pub(super) fn recovery_required(&self, doubt: &Doubt) -> Option<Self> {
        let (Self::Applying { evidence, .. } | Self::ApplyCanceling { evidence, .. }) = self else {
            return None;
        };
        Some(Self::RecoveryRequired {
            evidence: evidence.clone(),
            doubt: doubt.clone(),
        })
    }

    pub(super) fn cancel_requested(
        &self,
        by: Actor,
        reason: Option<&str>,
        requested_at: Timestamp,
    ) -> Option<Self> {
        let reason = reason.map(str::to_owned);
        match self {
            Self::Planning { attempt, .. } => Some(Self::PlanCanceling {
                attempt: attempt.clone(),
                by,
                reason,
                requested_at,
            }),
            Self::Applying {
                plan,
                evidence,
                approval,
                attempt,
                ..
            } => Some(Self::ApplyCanceling {
                plan: plan.clone(),
                evidence: evidence.clone(),
                approval: approval.clone(),
                attempt: attempt.clone(),
                by,
                reason,
                requested_at,
            }),
            _ => None,
        }
    }
}
