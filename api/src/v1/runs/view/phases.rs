//! The phases of a run: plan and apply.

use serde::Serialize;
use stackship_domain::ids::{AttemptId, RunnerId, StateVersionId};
use stackship_domain::run::{Counts, PlanChanges};
use stackship_domain::{Sha256Digest, Timestamp};
use stackship_projections::run_review::{
    ApplyReview, ApplyStatus, AttemptReview, AttemptStatus, PlanReview, PlanStatus,
};
use utoipa::ToSchema;

use crate::v1::runs::evidence::{PredecessorView, predecessor};
use crate::v1::schema;

/// The plan phase.
#[derive(Serialize, ToSchema)]
pub(super) struct PlanView {
    /// Where it stands.
    #[schema(schema_with = plan_status)]
    status: PlanStatus,
    /// When the first try began.
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Timestamp>,
    /// When it was recorded or failed.
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Timestamp>,
    /// Every try.
    attempts: Vec<AttemptView>,
    /// What was planned, once it is recorded.
    result: Option<PlanResult>,
}

/// What was planned.
#[derive(Serialize, ToSchema)]
struct PlanResult {
    /// Whether it changes anything.
    #[schema(schema_with = schema::plan_changes)]
    changes: PlanChanges,
    /// How much.
    counts: CountsView,
    /// SHA-256 of the exact plan file.
    #[schema(value_type = String)]
    sha256: Sha256Digest,
    /// The state it was planned against; null when there was none.
    predecessor_state: Option<PredecessorView>,
}

/// How many resources a plan touches, by action.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(in crate::v1::runs) struct CountsView {
    /// Created.
    create: u32,
    /// Updated in place.
    change: u32,
    /// Destroyed.
    destroy: u32,
    /// Created and destroyed; counted in `create` and `destroy` too.
    replace: u32,
    /// Imported.
    import: u32,
    /// Dropped from the state without being destroyed.
    forget: u32,
    /// Moved to another address.
    #[serde(rename = "move")]
    moved: u32,
    /// Outputs that change.
    output: u32,
}

/// One numbered try at a phase.
#[derive(Serialize, ToSchema)]
pub(in crate::v1::runs) struct AttemptView {
    /// Its id.
    #[schema(value_type = String)]
    id: AttemptId,
    /// Counts from 1 within its phase.
    number: u32,
    /// Who leased it.
    #[schema(value_type = String)]
    runner: RunnerId,
    /// Where it stands.
    #[schema(schema_with = attempt_status)]
    status: AttemptStatus,
    /// When it began.
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Timestamp>,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Timestamp>,
}

/// The apply phase.
#[derive(Serialize, ToSchema)]
pub(super) struct ApplyView {
    /// Where it stands.
    #[schema(schema_with = apply_status)]
    status: ApplyStatus,
    /// When it began.
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Timestamp>,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Timestamp>,
    /// Every try.
    attempts: Vec<AttemptView>,
    /// The published successor state.
    published: Option<PublishedView>,
    /// Whether a failed or doubtful apply left a state behind that is kept.
    has_emergency_state: bool,
}

/// The state that a successful apply published.
#[derive(Serialize, ToSchema)]
struct PublishedView {
    /// Which state version.
    #[schema(value_type = String)]
    version: StateVersionId,
    /// Its serial.
    serial: i64,
    /// SHA-256 of its exact bytes.
    #[schema(value_type = String)]
    sha256: Sha256Digest,
    /// When.
    #[schema(schema_with = schema::time)]
    at: Timestamp,
}

pub(in crate::v1::runs) fn plan_status() -> utoipa::openapi::ObjectBuilder {
    schema::one_of(["pending", "running", "finished", "errored", "canceled"])
}

pub(in crate::v1::runs) fn apply_status() -> utoipa::openapi::ObjectBuilder {
    schema::one_of([
        "pending",
        "running",
        "finished",
        "errored",
        "canceled",
        "interrupted",
    ])
}

pub(in crate::v1::runs) fn attempt_status() -> utoipa::openapi::ObjectBuilder {
    schema::one_of([
        "running",
        "finished",
        "errored",
        "canceled",
        "lost",
        "handed_back",
        "interrupted",
    ])
}

impl From<PlanReview> for PlanView {
    fn from(plan: PlanReview) -> Self {
        let result = plan.record.map(|record| PlanResult {
            changes: record.changes,
            counts: record.counts.into(),
            sha256: record.plan,
            predecessor_state: predecessor(&record.predecessor),
        });
        Self {
            status: plan.status,
            started_at: plan.times.started_at,
            ended_at: plan.times.ended_at,
            attempts: plan.attempts.into_iter().map(Into::into).collect(),
            result,
        }
    }
}

impl From<Counts> for CountsView {
    fn from(counts: Counts) -> Self {
        Self {
            create: counts.create,
            change: counts.change,
            destroy: counts.destroy,
            replace: counts.replace,
            import: counts.import,
            forget: counts.forget,
            moved: counts.moved,
            output: counts.output,
        }
    }
}

impl From<AttemptReview> for AttemptView {
    fn from(attempt: AttemptReview) -> Self {
        Self {
            id: attempt.id,
            number: attempt.number,
            runner: attempt.runner,
            status: attempt.status,
            started_at: attempt.times.started_at,
            ended_at: attempt.times.ended_at,
        }
    }
}

impl From<ApplyReview> for ApplyView {
    fn from(apply: ApplyReview) -> Self {
        let published = apply.published.map(|published| PublishedView {
            version: published.publication.version,
            serial: published.publication.serial,
            sha256: published.publication.digest,
            at: published.at,
        });
        Self {
            status: apply.status,
            started_at: apply.times.started_at,
            ended_at: apply.times.ended_at,
            attempts: apply.attempts.into_iter().map(Into::into).collect(),
            published,
            has_emergency_state: apply.emergency.is_some(),
        }
    }
}
