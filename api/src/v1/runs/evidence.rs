//! What a decision rests on, as this edge shows it.

use serde::Serialize;
use stackship_domain::ids::{RunId, StateVersionId};
use stackship_domain::run::{Evidence, Predecessor};
use stackship_domain::{Actor, Sha256Digest, Timestamp, TofuVersion};
use stackship_projections::run_review::{ApprovalReview, Decision};
use utoipa::ToSchema;

use crate::v1::schema;

/// The question to a person and its answer.
#[derive(Serialize, ToSchema)]
pub(super) struct ApprovalView {
    /// What an approval presents: the digest of all the evidence.
    #[schema(value_type = String)]
    binding_digest: Sha256Digest,
    /// Every part that the decision rests on.
    evidence: EvidenceView,
    /// When the question lapses.
    #[schema(schema_with = schema::time)]
    expires_at: Timestamp,
    /// The answer.
    decision: Option<DecisionView>,
}

/// Every part that a decision rests on, as SHA-256 digests of exact bytes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EvidenceView {
    /// The plan file.
    #[schema(value_type = String)]
    plan: Sha256Digest,
    /// The plan as JSON.
    #[schema(value_type = String)]
    plan_json: Sha256Digest,
    /// The policy result.
    #[schema(value_type = String)]
    policy_result: Sha256Digest,
    /// The state it was planned against; null when there was none.
    predecessor_state: Option<PredecessorView>,
    /// The dependency bundle: lock file, provider packages, module tree.
    #[schema(value_type = String)]
    dependency_bundle: Sha256Digest,
    /// The uploaded configuration.
    #[schema(value_type = String)]
    configuration: Sha256Digest,
    /// The pinned inputs.
    #[schema(value_type = String)]
    input_snapshot: Sha256Digest,
    /// The OpenTofu release that planned and will apply.
    #[schema(value_type = String)]
    tofu_version: TofuVersion,
}

/// The state that a plan was made against.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PredecessorView {
    /// Which state version.
    #[schema(value_type = String)]
    version: StateVersionId,
    /// Its serial.
    serial: i64,
    /// SHA-256 of its exact bytes.
    #[schema(value_type = String)]
    sha256: Sha256Digest,
}

/// How the question was answered.
#[derive(Serialize, ToSchema)]
struct DecisionView {
    /// The answer.
    kind: DecisionKind,
    /// Who answered: a user, or the newer run that took this run's place; null when nobody did.
    by: Option<String>,
    /// When.
    #[schema(schema_with = schema::time)]
    at: Timestamp,
    /// Why, in the person's words.
    reason: Option<String>,
}

/// The answers there are.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum DecisionKind {
    /// Yes, to exactly this evidence.
    Approved,
    /// No.
    Discarded,
    /// The run was canceled while the question stood.
    Canceled,
    /// A newer run took this run's place.
    Superseded,
    /// Nobody answered in time.
    Expired,
}

impl From<Evidence> for EvidenceView {
    fn from(evidence: Evidence) -> Self {
        Self {
            plan: evidence.plan,
            plan_json: evidence.plan_json,
            policy_result: evidence.policy,
            predecessor_state: predecessor(&evidence.predecessor),
            dependency_bundle: evidence.dependencies,
            configuration: evidence.configuration,
            input_snapshot: evidence.inputs,
            tofu_version: evidence.tofu_version,
        }
    }
}

/// The state that a plan was made against; `None` when there was none.
pub(super) fn predecessor(predecessor: &Predecessor) -> Option<PredecessorView> {
    match predecessor {
        Predecessor::None => None,
        Predecessor::Version { id, serial, digest } => Some(PredecessorView {
            version: *id,
            serial: *serial,
            sha256: *digest,
        }),
    }
}

impl From<Decision> for DecisionView {
    fn from(decision: Decision) -> Self {
        let person = |by: Actor| Some(by.to_string());
        let newer = |by: RunId| Some(by.to_string());
        let (kind, by, at, reason) = match decision {
            Decision::Approved { by, at, .. } => (DecisionKind::Approved, person(by), at, None),
            Decision::Discarded { by, at, reason } => {
                (DecisionKind::Discarded, person(by), at, reason)
            }
            Decision::Canceled { by, at, reason } => {
                (DecisionKind::Canceled, person(by), at, reason)
            }
            Decision::Superseded { by, at } => (DecisionKind::Superseded, newer(by), at, None),
            Decision::Expired { at } => (DecisionKind::Expired, None, at, None),
        };
        Self {
            kind,
            by,
            at,
            reason,
        }
    }
}

/// The question, once it was asked.
pub(super) fn approval(review: ApprovalReview) -> Option<ApprovalView> {
    let request = review.request?;
    Some(ApprovalView {
        binding_digest: request.binding,
        evidence: request.evidence.into(),
        expires_at: request.expires_at,
        decision: review.decision.map(Into::into),
    })
}
