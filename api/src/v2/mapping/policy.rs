//! Policy checks.

use stackship_domain::run::{PolicyOutcome, PolicyResult, Status};
use stackship_projections::RunReview;
use stackship_projections::run_review::StageTimes;

use super::Rights;
use crate::v2::ids::policy_check_id;
use crate::v2::wire::{
    Kind, PolicyCheckActions, PolicyCheckAttributes, PolicyCheckPermissions,
    PolicyCheckRelationships, PolicyCheckResource, PolicyCheckResult, ToOne,
};

/// The client's heading says "Organization Policy Check"; its other word is for policies of a workspace
/// alone, and a run's may come from anywhere above it.
const SCOPE: &str = "organization";

/// The id of the check that a run points at. The client prints every check it is pointed at, so a run
/// that no policy judged points at none, unless there is something to say.
pub(super) fn shown_policy_check(review: &RunReview) -> Option<String> {
    let result = review.policy.result.as_ref()?;
    let silent = review.facts.pins.policies.sets().is_empty();
    let passed = result.outcome == PolicyOutcome::Pass;
    (!silent || !passed).then(|| policy_check_id(review.run))
}

/// What policies say about a run; nothing before they have spoken.
pub fn policy_check(review: &RunReview, rights: Rights) -> Option<PolicyCheckResource> {
    let result = review.policy.result.as_ref()?;
    Some(PolicyCheckResource {
        id: policy_check_id(review.run),
        kind: Kind::PolicyChecks,
        attributes: PolicyCheckAttributes {
            scope: SCOPE,
            status: status(review, result),
            actions: PolicyCheckActions {
                is_overridable: review.status == Status::OverrideRequired,
            },
            permissions: PolicyCheckPermissions {
                can_override: rights.override_policy,
            },
            result: counts(result, &review.policy.times),
        },
        relationships: PolicyCheckRelationships {
            run: ToOne::to(Kind::Runs, review.run),
        },
    })
}

fn status(review: &RunReview, result: &PolicyResult) -> &'static str {
    match result.outcome {
        PolicyOutcome::Pass => "passed",
        PolicyOutcome::SoftFailed if review.policy.overrides.is_empty() => "soft_failed",
        PolicyOutcome::SoftFailed => "overridden",
        PolicyOutcome::HardFailed => "hard_failed",
        PolicyOutcome::Error => "errored",
    }
}

fn counts(result: &PolicyResult, times: &StageTimes) -> PolicyCheckResult {
    let denying = result.denying;
    let total = denying.advisory + denying.soft_mandatory + denying.hard_mandatory;
    let took = match (times.started_at, times.ended_at) {
        (Some(began), Some(ended)) => ended.as_millisecond() - began.as_millisecond(),
        _ => 0,
    };
    PolicyCheckResult {
        result: result.outcome == PolicyOutcome::Pass,
        passed: match result.outcome {
            PolicyOutcome::Error => 0,
            _ => result.policies.saturating_sub(total),
        },
        total_failed: total,
        advisory_failed: denying.advisory,
        soft_failed: denying.soft_mandatory,
        hard_failed: denying.hard_mandatory,
        duration_ms: u64::try_from(took).unwrap_or_default(),
    }
}
