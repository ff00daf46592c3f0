//! Where each stage stands, by what was recorded of it.

use serde::Serialize;
use stackship_domain::run::{PolicyOutcome, RunKind, TerminalReason};
use stackship_projections::RunReview;
use stackship_projections::run_review::{ApplyStatus, Decision, PlanStatus, StageTimes};
use utoipa::ToSchema;

/// Where a stage stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::v1::runs::review) enum StageStatus {
    /// Its turn has not come.
    Pending,
    /// It is at work.
    Running,
    /// It did what it was there for.
    Succeeded,
    /// It did not.
    Failed,
    /// Its turn will never come.
    Skipped,
    /// It waits for a person.
    Waiting,
}

use StageStatus::{Failed, Pending, Running, Skipped, Succeeded, Waiting};

/// A plan that was recorded is finished. The read model keeps it running until policy has spoken,
/// because the tofu CLI takes a finished plan for one that can be decided on; here policy is a stage
/// of its own.
pub(super) const fn plan_phase(review: &RunReview) -> PlanStatus {
    match (review.plan.status, &review.plan.record) {
        (PlanStatus::Running, Some(_)) => PlanStatus::Finished,
        (status, _) => status,
    }
}

pub(super) const fn plan(review: &RunReview) -> StageStatus {
    match plan_phase(review) {
        PlanStatus::Pending => Pending,
        PlanStatus::Running => Running,
        PlanStatus::Finished => Succeeded,
        PlanStatus::Errored => Failed,
        PlanStatus::Canceled => stopped(review.plan.times),
    }
}

pub(super) const fn policy(review: &RunReview) -> StageStatus {
    let Some(result) = &review.policy.result else {
        return unjudged(review);
    };
    match result.outcome {
        PolicyOutcome::Pass => Succeeded,
        PolicyOutcome::SoftFailed if !review.policy.overrides.is_empty() => Succeeded,
        PolicyOutcome::SoftFailed if is_open(review) && review.policy.decide_by.is_some() => {
            Waiting
        }
        PolicyOutcome::SoftFailed | PolicyOutcome::HardFailed | PolicyOutcome::Error => Failed,
    }
}

/// A check without a result: not begun, at work, or cut off by the run's end.
const fn unjudged(review: &RunReview) -> StageStatus {
    match (&review.ended, review.policy.times.started_at) {
        (None, None) => Pending,
        (None, Some(_)) => Running,
        (Some(end), _) => match end.reason {
            TerminalReason::PolicyError | TerminalReason::PolicyDenied => Failed,
            _ => Skipped,
        },
    }
}

pub(super) const fn approval(review: &RunReview) -> StageStatus {
    if is_speculative(review) {
        return Skipped;
    }
    match (&review.approval.decision, &review.approval.request) {
        (Some(Decision::Approved { .. }), _) => Succeeded,
        (
            Some(
                Decision::Discarded { .. }
                | Decision::Canceled { .. }
                | Decision::Superseded { .. }
                | Decision::Expired { .. },
            ),
            _,
        ) => Failed,
        (None, Some(_)) if is_open(review) => Waiting,
        (None, None) if is_open(review) => Pending,
        (None, _) => Skipped,
    }
}

pub(super) const fn apply(review: &RunReview) -> StageStatus {
    match review.apply.status {
        ApplyStatus::Pending if is_speculative(review) || !is_open(review) => Skipped,
        ApplyStatus::Pending => Pending,
        ApplyStatus::Running => Running,
        ApplyStatus::Finished => Succeeded,
        ApplyStatus::Canceled => stopped(review.apply.times),
        // Neither success nor failure may be guessed (S-STA-3): it waits for an operator's word.
        ApplyStatus::Interrupted if is_open(review) => Waiting,
        ApplyStatus::Errored | ApplyStatus::Interrupted => Failed,
    }
}

/// What was canceled has failed where it had begun, and was skipped where it had not.
const fn stopped(times: StageTimes) -> StageStatus {
    if times.started_at.is_some() {
        Failed
    } else {
        Skipped
    }
}

const fn is_open(review: &RunReview) -> bool {
    review.ended.is_none()
}

const fn is_speculative(review: &RunReview) -> bool {
    matches!(review.facts.kind, RunKind::Speculative)
}
