//! The plan stage: counts once the plan has ended, and never zeros before (S-REV-4).

use serde::Serialize;
use stackship_domain::Sha256Digest;
use stackship_domain::run::PlanChanges;
use stackship_projections::RunReview;
use stackship_projections::run_review::PlanStatus;
use utoipa::ToSchema;

use super::status::{plan, plan_phase};
use super::{Stage, plan_digest};
use crate::v1::runs::view::phases::{CountsView, plan_status};
use crate::v1::schema;

/// The plan stage.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::v1::runs::review) struct PlanStage {
    /// Where it stands.
    pub(in crate::v1::runs::review) stage: Stage,
    /// Where the phase stands, in the words of its badge.
    #[schema(schema_with = plan_status)]
    phase: PlanStatus,
    /// How much the plan changes.
    pub(in crate::v1::runs::review) summary: PlanSummary,
    /// SHA-256 of the exact plan file, once there is one.
    #[schema(value_type = Option<String>)]
    sha256: Option<Sha256Digest>,
    /// Where the redacted changes are read, resource by resource; null until they are recorded.
    changes_href: Option<String>,
}

/// How much a plan changes.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(in crate::v1::runs::review) enum PlanSummary {
    /// The plan has not ended yet.
    NotFinished,
    /// There is no plan: it failed, or was stopped.
    NoPlan,
    /// The plan finished.
    Recorded {
        /// Whether it changes anything.
        #[schema(schema_with = schema::plan_changes)]
        changes: PlanChanges,
        /// How much.
        counts: CountsView,
    },
    /// The plan finished, and what it changes could not be recorded: this needs attention.
    NotRecorded,
}

impl PlanStage {
    pub(super) fn of(review: &RunReview) -> Self {
        let recorded = review.plan.record.is_some();
        let stage = Stage::new(plan(review), review.plan.times);
        Self {
            stage: stage.with_log(review, "plan", &review.plan.attempts),
            phase: plan_phase(review),
            summary: summary(review),
            sha256: plan_digest(review),
            changes_href: recorded.then(|| format!("/v1/runs/{}/plan-changes", review.run)),
        }
    }
}

fn summary(review: &RunReview) -> PlanSummary {
    match (plan_phase(review), &review.plan.record) {
        (PlanStatus::Finished, Some(plan)) => PlanSummary::Recorded {
            changes: plan.changes,
            counts: plan.counts.into(),
        },
        (PlanStatus::Finished, None) => PlanSummary::NotRecorded,
        (PlanStatus::Errored | PlanStatus::Canceled, _) => PlanSummary::NoPlan,
        (PlanStatus::Pending | PlanStatus::Running, _) => PlanSummary::NotFinished,
    }
}
