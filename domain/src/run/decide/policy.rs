//! Policy: what its outcome leads to, and who may let a soft-mandatory failure pass.

use super::{Born, Decision, reason_given};
use crate::run::{
    Event, Evidence, OVERRIDE_SECONDS_MAX, PlanChanges, PlanRecord, PolicyOutcome, PolicyResult,
    Refusal, RunKind, Standing, TerminalReason,
};
use crate::{Actor, Sha256Digest, Timestamp};

/// The times of an override.
#[derive(Clone, Copy)]
pub(super) struct OverrideWindow {
    pub(super) at: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) approval_expires_at: Timestamp,
}

impl OverrideWindow {
    /// In the future, and not further than an override may reach (S-REV-18).
    fn check(&self) -> Result<(), Refusal> {
        let lasts = self.expires_at.duration_since(self.at);
        let longest = jiff::SignedDuration::from_secs(OVERRIDE_SECONDS_MAX);
        if lasts > jiff::SignedDuration::ZERO && lasts <= longest {
            Ok(())
        } else {
            Err(Refusal::OverrideTime)
        }
    }
}

impl Born<'_> {
    pub(super) fn start_policy_check(&self) -> Decision {
        match self.standing {
            Standing::Planned { .. } => Ok(vec![Event::PolicyCheckStarted]),
            Standing::PolicyChecking { .. } => Ok(vec![]),
            _ => Err(self.wrong_status()),
        }
    }

    pub(super) fn record_policy(
        &self,
        result: PolicyResult,
        approval_expires_at: Timestamp,
    ) -> Decision {
        let Standing::PolicyChecking { plan } = self.standing else {
            return Err(self.wrong_status());
        };
        if result.bundle != self.facts.pins.policies.digest() {
            return Err(Refusal::OtherPolicies);
        }
        let next = self.after_policy(plan, &result, approval_expires_at);
        let evaluated = Event::PolicyEvaluated {
            result,
            approval_expires_at,
        };
        Ok(std::iter::once(evaluated).chain(next).collect())
    }

    /// What follows an evaluation at once; nothing where a person may override.
    fn after_policy(
        &self,
        plan: &PlanRecord,
        result: &PolicyResult,
        approval_expires_at: Timestamp,
    ) -> Option<Event> {
        let failed =
            |reason: TerminalReason, detail: String| Some(Event::RunFailed { reason, detail });
        match (result.outcome, self.facts.kind) {
            (PolicyOutcome::HardFailed, _) => {
                let reason = TerminalReason::PolicyDenied;
                failed(reason, reason.sentence().to_owned())
            }
            (PolicyOutcome::Error, _) => failed(TerminalReason::PolicyError, not_evaluated(result)),
            (PolicyOutcome::Pass | PolicyOutcome::SoftFailed, RunKind::Speculative) => {
                Some(Event::SpeculativeRunFinished)
            }
            (PolicyOutcome::SoftFailed, RunKind::PlanAndApply) => None,
            (PolicyOutcome::Pass, RunKind::PlanAndApply) => {
                Some(self.let_through(plan, result, approval_expires_at))
            }
        }
    }

    /// Nothing stands in the way: a person decides, unless there is nothing to decide (S-RUN-8).
    fn let_through(
        &self,
        plan: &PlanRecord,
        policy: &PolicyResult,
        expires_at: Timestamp,
    ) -> Event {
        match plan.changes {
            PlanChanges::None => Event::RunFinishedWithoutChanges,
            PlanChanges::Some => {
                let evidence = self.evidence(plan, policy);
                Event::ApprovalRequested {
                    binding: evidence.binding(),
                    evidence,
                    expires_at,
                }
            }
        }
    }

    /// The override that the run waits under still holds; also where it needed none.
    pub(super) fn override_holds(&self, at: Timestamp) -> Result<(), Refusal> {
        let until = self.standing.override_expires_at();
        if until.is_some_and(|until| at >= until) {
            Err(Refusal::OverrideExpired)
        } else {
            Ok(())
        }
    }

    fn evidence(&self, plan: &PlanRecord, policy: &PolicyResult) -> Evidence {
        Evidence {
            plan: plan.plan,
            plan_json: plan.plan_json,
            policy: policy.digest,
            predecessor: plan.predecessor.clone(),
            dependencies: plan.dependencies,
            configuration: self.facts.pins.configuration,
            inputs: self.facts.pins.inputs,
            tofu_version: self.facts.pins.tofu_version,
        }
    }

    pub(super) fn override_policy(
        &self,
        by: Actor,
        result: Sha256Digest,
        reason: String,
        window: OverrideWindow,
    ) -> Decision {
        let Standing::OverrideRequired {
            plan,
            policy,
            expires_at,
            ..
        } = self.standing
        else {
            return Err(self.wrong_status());
        };
        self.person(by)?;
        reason_given(&reason)?;
        window.check()?;
        if policy.digest != result {
            return Err(Refusal::StalePolicyResult);
        }
        if window.at >= *expires_at {
            return Err(Refusal::ApprovalExpired);
        }
        let overridden = Event::PolicyOverridden {
            by,
            result,
            reason,
            expires_at: window.expires_at,
        };
        // An approval that outlived its override could never be carried out.
        let lapses_at = window.approval_expires_at.min(window.expires_at);
        Ok(vec![overridden, self.let_through(plan, policy, lapses_at)])
    }
}

/// Why a plan that could not be judged was not let through.
fn not_evaluated(result: &PolicyResult) -> String {
    let sentence = TerminalReason::PolicyError.sentence();
    match result.error_code {
        Some(code) => format!("{sentence} ({code})"),
        None => sentence.to_owned(),
    }
}
