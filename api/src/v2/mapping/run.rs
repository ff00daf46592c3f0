//! Runs, plans and applies.

use stackship_domain::run::{Phase, PlanChanges, RunKind, Status};
use stackship_projections::RunReview;
use stackship_projections::run_review::{ApplyStatus, Decision, PlanStatus};

use super::Rights;
use super::policy::shown_policy_check;
use crate::v2::ids::phase_id;
use crate::v2::wire::{
    ActionFlags, Kind, RunAttributes, RunPermissions, RunRelationships, RunResource, StatusTimes,
    ToMany, ToNobody, ToOne,
};

/// The client's word for "not from version control".
pub const SOURCE: &str = "tfe-api";

/// Whether somebody was asked to decide on the run's plan and did not say yes. Only such a run may be
/// reported as `discarded`: before its plan ended that word makes `tofu apply` exit 0, and after an
/// approval too. While the client asks its own person, every word but that one means "approved".
fn turned_down(review: &RunReview) -> bool {
    match review.approval.decision {
        Some(Decision::Approved { .. }) | None => false,
        Some(
            Decision::Discarded { .. }
            | Decision::Canceled { .. }
            | Decision::Superseded { .. }
            | Decision::Expired { .. },
        ) => true,
    }
}

/// Where a run stands, in the client's words.
pub fn run_status(review: &RunReview) -> &'static str {
    match review.status {
        // The client prints what it waits for only while it reads `pending`.
        Status::Queued if waits_for_its_workspace(review) => "pending",
        Status::Queued => "plan_queued",
        Status::Canceling if review.apply.times.started_at.is_some() => "applying",
        Status::Planning | Status::Canceling => "planning",
        Status::Planned | Status::PolicyChecking => "policy_checking",
        Status::OverrideRequired => "policy_override",
        Status::AwaitingApproval => "policy_checked",
        // `confirmed` would keep the client out of the apply log for seconds.
        Status::Approved => "apply_queued",
        Status::Applying => "applying",
        Status::Applied => "applied",
        Status::NoChanges | Status::SpeculativeFinished => "planned_and_finished",
        Status::Discarded | Status::Expired | Status::Canceled if turned_down(review) => {
            "discarded"
        }
        Status::Discarded | Status::Expired | Status::Canceled => "canceled",
        Status::Failed
        | Status::PlanCredentialsRequired
        | Status::RecoveryRequired
        | Status::Recovered => "errored",
    }
}

/// Where an unfinished run of a list stands: without its review it cannot be told whether a queued run
/// has its workspace already, and the list is only read by runs that wait.
pub const fn listed_status(status: Status) -> &'static str {
    match status {
        Status::Queued => "pending",
        Status::Planning | Status::Canceling => "planning",
        Status::Planned | Status::PolicyChecking => "policy_checking",
        Status::OverrideRequired => "policy_override",
        Status::AwaitingApproval => "policy_checked",
        Status::Approved => "apply_queued",
        Status::Applying => "applying",
        Status::Applied => "applied",
        Status::NoChanges | Status::SpeculativeFinished => "planned_and_finished",
        Status::Discarded | Status::Expired | Status::Canceled => "canceled",
        Status::Failed
        | Status::PlanCredentialsRequired
        | Status::RecoveryRequired
        | Status::Recovered => "errored",
    }
}

fn waits_for_its_workspace(review: &RunReview) -> bool {
    review.facts.kind == RunKind::PlanAndApply && review.fence.is_none()
}

/// Where a run's plan stands. It is over only when policy has spoken (the review sees to that): the
/// client reads once, right after it, whether there is something to approve.
pub fn plan_status(review: &RunReview) -> &'static str {
    match review.plan.status {
        PlanStatus::Pending if waits_for_its_workspace(review) => "pending",
        PlanStatus::Pending => "queued",
        PlanStatus::Running => "running",
        PlanStatus::Finished => "finished",
        PlanStatus::Errored => "errored",
        PlanStatus::Canceled => "canceled",
    }
}

/// Where a run's apply stands. One that will never be is over as well: a client that believes its
/// question was answered elsewhere would otherwise wait for it for ever.
pub fn apply_status(review: &RunReview) -> &'static str {
    match review.apply.status {
        ApplyStatus::Pending if review.ended.is_some() => "unreachable",
        ApplyStatus::Pending if review.status == Status::Approved => "queued",
        ApplyStatus::Pending => "pending",
        ApplyStatus::Running => "running",
        ApplyStatus::Finished => "finished",
        ApplyStatus::Errored | ApplyStatus::Interrupted => "errored",
        ApplyStatus::Canceled => "canceled",
    }
}

/// Whether a phase is over, so that its log will not grow.
pub fn is_over(review: &RunReview, phase: Phase) -> bool {
    let status = match phase {
        Phase::Plan => plan_status(review),
        Phase::Apply => apply_status(review),
    };
    matches!(status, "finished" | "errored" | "canceled" | "unreachable")
}

/// Whether the plan found changes; false until it is over.
pub fn has_changes(review: &RunReview) -> bool {
    let found = review.plan.record.as_ref().map(|plan| plan.changes);
    review.plan.status == PlanStatus::Finished && found == Some(PlanChanges::Some)
}

/// What may be done to a run now.
pub const fn actions(status: Status) -> ActionFlags {
    let (is_cancelable, is_confirmable, is_discardable) = match status {
        Status::Queued
        | Status::Planning
        | Status::Planned
        | Status::PolicyChecking
        | Status::Approved
        | Status::Applying => (true, false, false),
        Status::OverrideRequired => (true, false, true),
        Status::AwaitingApproval => (true, true, true),
        Status::Canceling
        | Status::RecoveryRequired
        | Status::Applied
        | Status::NoChanges
        | Status::SpeculativeFinished
        | Status::Failed
        | Status::Discarded
        | Status::Expired
        | Status::Canceled
        | Status::PlanCredentialsRequired
        | Status::Recovered => (false, false, false),
    };
    ActionFlags {
        is_cancelable,
        is_confirmable,
        is_discardable,
        is_force_cancelable: false,
    }
}

/// A run and who looks at it.
#[derive(Debug, Clone, Copy)]
pub struct RunView<'a> {
    /// The run.
    pub review: &'a RunReview,
    /// What the caller may do in its workspace.
    pub rights: Rights,
}

/// A run as a resource.
pub fn run_resource(view: RunView<'_>) -> RunResource {
    let RunView { review, rights } = view;
    RunResource {
        id: review.run.to_string(),
        kind: Kind::Runs,
        attributes: RunAttributes {
            status: run_status(review),
            has_changes: has_changes(review),
            auto_apply: false,
            is_destroy: false,
            save_plan: false,
            plan_only: review.facts.kind == RunKind::Speculative,
            message: review.facts.message.clone(),
            source: SOURCE,
            created_at: review.facts.created_at,
            canceled_at: (review.status == Status::Canceled)
                .then(|| review.ended.as_ref().map(|end| end.at))
                .flatten(),
            terraform_version: review.facts.pins.tofu_version.to_string(),
            actions: actions(review.status),
            permissions: permissions(rights),
            status_timestamps: times(review),
        },
        relationships: RunRelationships {
            workspace: ToOne::to(Kind::Workspaces, review.facts.workspace),
            plan: ToOne::to(Kind::Plans, phase_id(Phase::Plan, review.run)),
            apply: ToOne::to(Kind::Applies, phase_id(Phase::Apply, review.run)),
            configuration_version: ToOne::to(
                Kind::ConfigurationVersions,
                review.facts.configuration_version,
            ),
            policy_checks: ToMany::of(Kind::PolicyChecks, shown_policy_check(review)),
            cost_estimate: ToOne::NONE,
            task_stages: ToNobody::EMPTY,
        },
    }
}

const fn permissions(rights: Rights) -> RunPermissions {
    RunPermissions {
        can_apply: rights.approve,
        can_cancel: rights.cancel,
        can_discard: rights.approve,
        can_force_cancel: false,
        can_force_execute: false,
    }
}

fn times(review: &RunReview) -> StatusTimes {
    let confirmed_at = match review.approval.decision {
        Some(Decision::Approved { at, .. }) => Some(at),
        _ => None,
    };
    StatusTimes {
        plan_queued_at: Some(review.facts.created_at),
        planning_at: review.plan.times.started_at,
        planned_at: (review.plan.status == PlanStatus::Finished)
            .then_some(review.plan.times.ended_at)
            .flatten(),
        confirmed_at,
        applying_at: review.apply.times.started_at,
        applied_at: review.apply.published.as_ref().map(|state| state.at),
    }
}

#[cfg(test)]
mod tests;
