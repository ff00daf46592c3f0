//! The approval stage: who decided what and when, and only then what it was bound to (S-REV-8).

use serde::Serialize;
use stackship_domain::ids::RunId;
use stackship_domain::{Sha256Digest, Timestamp};
use stackship_projections::RunReview;
use stackship_projections::run_review::Decision;
use utoipa::ToSchema;

use super::status::approval;
use super::{Stage, plan_digest};
use crate::v1::runs::evidence::EvidenceView;
use crate::v1::runs::review::people::{Names, Person, decided_by};
use crate::v1::schema;

/// The approval stage.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::v1::runs::review) struct ApprovalStage {
    /// Where it stands.
    pub(in crate::v1::runs::review) stage: Stage,
    /// What became of the question.
    pub(in crate::v1::runs::review) state: ApprovalState,
    /// The answer; null while there is none.
    decided: Option<Decided>,
    /// When the question lapses, or would have.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// What an approval presents: the digest of all the evidence; null while nothing is asked.
    #[schema(value_type = Option<String>)]
    binding_digest: Option<Sha256Digest>,
    /// Every part that the decision rests on; null while nothing is asked.
    evidence: Option<EvidenceView>,
    /// SHA-256 of the plan file that is approved; null while there is none.
    #[schema(value_type = Option<String>)]
    plan_sha256: Option<Sha256Digest>,
}

/// What became of the question to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::v1::runs::review) enum ApprovalState {
    /// It was not asked.
    NotAsked,
    /// It is asked now.
    Awaiting,
    /// Yes, to exactly this evidence.
    Approved,
    /// No.
    Discarded,
    /// The run was canceled while the question stood.
    Canceled,
    /// A newer run took this run's place while the question stood.
    Superseded,
    /// Nobody answered in time.
    Expired,
}

/// The answer to the question.
#[derive(Debug, Serialize, ToSchema)]
struct Decided {
    /// Who answered; null when a newer run or the clock did.
    by: Option<Person>,
    /// The newer run that took this run's place.
    #[schema(value_type = Option<String>)]
    newer_run: Option<RunId>,
    /// When.
    #[schema(schema_with = schema::time)]
    at: Timestamp,
    /// Why, in the person's words.
    reason: Option<String>,
}

impl ApprovalStage {
    pub(super) fn of(review: &RunReview, names: &Names) -> Self {
        let request = review.approval.request.as_ref();
        Self {
            stage: Stage::new(approval(review), review.approval.times),
            state: state(review),
            decided: review
                .approval
                .decision
                .as_ref()
                .map(|decision| Decided::of(decision, names)),
            expires_at: request.map(|request| request.expires_at),
            binding_digest: request.map(|request| request.binding),
            evidence: request.map(|request| request.evidence.clone().into()),
            plan_sha256: plan_digest(review),
        }
    }
}

const fn state(review: &RunReview) -> ApprovalState {
    match &review.approval.decision {
        Some(Decision::Approved { .. }) => ApprovalState::Approved,
        Some(Decision::Discarded { .. }) => ApprovalState::Discarded,
        Some(Decision::Canceled { .. }) => ApprovalState::Canceled,
        Some(Decision::Superseded { .. }) => ApprovalState::Superseded,
        Some(Decision::Expired { .. }) => ApprovalState::Expired,
        None if review.approval.request.is_some() => ApprovalState::Awaiting,
        None => ApprovalState::NotAsked,
    }
}

impl Decided {
    fn of(decision: &Decision, names: &Names) -> Self {
        let (newer_run, at, reason) = match decision {
            Decision::Approved { at, .. } | Decision::Expired { at } => (None, *at, None),
            Decision::Discarded { at, reason, .. } | Decision::Canceled { at, reason, .. } => {
                (None, *at, reason.clone())
            }
            Decision::Superseded { by, at } => (Some(*by), *at, None),
        };
        Self {
            by: decided_by(decision).map(|actor| names.person(actor)),
            newer_run,
            at,
            reason,
        }
    }
}
