//! A doubtful apply, as an operator has to judge it (S-REV-3).

use serde::Serialize;
use stackship_domain::Timestamp;
use stackship_domain::run::DoubtReason;
use stackship_projections::RunReview;
use stackship_projections::run_review::RecoveryDecision;
use stackship_store::states::StateVersionRow;
use utoipa::ToSchema;

use super::actions::Ends;
use super::people::{Names, Person};
use super::stored::Stored;
use crate::v1::runs::evidence::PredecessorView;
use crate::v1::runs::recovery::evidence::{
    Choices, StateVersionView, planned_against, resolution, resolution_name,
};
use crate::v1::schema;

/// A doubtful apply.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RecoveryFacts {
    /// Whether an operator still has to decide.
    unresolved: bool,
    /// Why nobody can say what the apply did.
    #[schema(schema_with = schema::doubt_reason)]
    reason: DoubtReason,
    /// The same in one sentence.
    detail: String,
    /// Since when.
    #[schema(schema_with = schema::time)]
    since: Timestamp,
    /// When `tofu apply` was about to start: before this nothing can have happened.
    #[schema(value_type = Option<String>, format = DateTime)]
    tofu_started_at: Option<Timestamp>,
    /// The newest state that the apply left; it can be adopted.
    staged_state: Option<StateVersionView>,
    /// Whether an `errored.tfstate` was kept.
    has_errored_state: bool,
    /// The state that the plan was made against; null when there was none.
    predecessor_state: Option<PredecessorView>,
    /// The workspace's state now; null when there is none.
    workspace_state: Option<StateVersionView>,
    /// What can be decided, and what each decision would do; null once it is decided.
    choices: Option<Choices>,
    /// What an operator decided; null before.
    resolved: Option<Resolved>,
}

/// What an operator decided.
#[derive(Debug, Serialize, ToSchema)]
struct Resolved {
    /// How.
    #[schema(schema_with = resolution)]
    resolution: &'static str,
    /// Who.
    by: Person,
    /// When.
    #[schema(schema_with = schema::time)]
    at: Timestamp,
    /// Why, in the person's words.
    reason: String,
}

/// What was looked up about a doubt that is not resolved.
#[derive(Debug)]
pub(super) struct Doubted {
    pub(super) choices: Choices,
    pub(super) head: Option<StateVersionRow>,
}

impl Doubted {
    pub(super) const fn ends(&self) -> Ends {
        Ends {
            adopt: self.choices.adopt.possible,
            no_change: self.choices.no_change.possible,
        }
    }
}

impl RecoveryFacts {
    pub(super) fn of(
        review: &RunReview,
        stored: &Stored,
        doubted: Option<Doubted>,
        names: &Names,
    ) -> Option<Self> {
        let recovery = review.recovery.as_ref()?;
        let kept = review.apply.emergency.as_ref();
        let applied = review.apply.attempts.last();
        let row = applied.and_then(|tried| stored.attempts.iter().find(|row| row.id == tried.id));
        let (choices, head) = doubted.map(|found| (found.choices, found.head)).unzip();
        Some(Self {
            unresolved: recovery.resolved.is_none(),
            reason: recovery.doubt.reason,
            detail: recovery.doubt.detail.clone(),
            since: recovery.since,
            tofu_started_at: row.and_then(|row| row.tofu_started_at),
            staged_state: kept.and_then(|kept| kept.staged.clone()).map(Into::into),
            has_errored_state: kept.is_some_and(|kept| kept.errored_state_object.is_some()),
            predecessor_state: planned_against(review),
            workspace_state: head.flatten().map(Into::into),
            choices,
            resolved: recovery
                .resolved
                .as_ref()
                .map(|decision| Resolved::of(decision, names)),
        })
    }
}

impl Resolved {
    fn of(decision: &RecoveryDecision, names: &Names) -> Self {
        Self {
            resolution: resolution_name(&decision.resolution),
            by: names.person(decision.by),
            at: decision.at,
            reason: decision.reason.clone(),
        }
    }
}
