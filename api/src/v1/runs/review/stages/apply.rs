//! The apply stage, and the state that came of it (S-REV-9).

use serde::Serialize;
use stackship_domain::ids::StateVersionId;
use stackship_domain::run::{Publication, RecoveryResolution};
use stackship_domain::{Sha256Digest, Timestamp};
use stackship_projections::RunReview;
use stackship_projections::run_review::ApplyStatus;
use utoipa::ToSchema;

use super::status::apply;
use super::{Stage, is_applied};
use crate::v1::runs::review::known::Known;
use crate::v1::runs::view::phases::apply_status;
use crate::v1::schema;

/// The apply stage.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::v1::runs::review) struct ApplyStage {
    /// Where it stands.
    pub(in crate::v1::runs::review) stage: Stage,
    /// Where the phase stands, in the words of its badge.
    #[schema(schema_with = apply_status)]
    phase: ApplyStatus,
    /// The successor state that was published.
    published: Known<Published>,
    /// Whether a failed or doubtful apply left a state behind that is kept.
    has_emergency_state: bool,
}

/// A published successor state.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(in crate::v1::runs::review) struct Published {
    /// Which state version.
    #[schema(value_type = String)]
    pub(in crate::v1::runs::review) version: StateVersionId,
    /// Its serial.
    serial: i64,
    /// SHA-256 of its exact bytes.
    #[schema(value_type = String)]
    pub(in crate::v1::runs::review) sha256: Sha256Digest,
    /// When.
    #[schema(schema_with = schema::time)]
    at: Timestamp,
    /// How it came to be published.
    by: PublishedBy,
}

/// How a state came to be published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::v1::runs::review) enum PublishedBy {
    /// The apply succeeded.
    Apply,
    /// An operator adopted what a doubtful apply had left.
    Adoption,
}

impl ApplyStage {
    pub(super) fn of(review: &RunReview, published: Known<Published>) -> Self {
        let stage = Stage::new(apply(review), review.apply.times);
        Self {
            stage: stage
                .with_log(review, "apply", &review.apply.attempts)
                .opened(is_applied(review)),
            phase: review.apply.status,
            published,
            has_emergency_state: review.apply.emergency.is_some(),
        }
    }
}

/// The successor that the log says was published; nothing when none was.
pub(in crate::v1::runs::review) fn published(review: &RunReview) -> Option<Published> {
    if let Some(published) = &review.apply.published {
        return Some(Published::of(
            &published.publication,
            published.at,
            PublishedBy::Apply,
        ));
    }
    let decided = review.recovery.as_ref()?.resolved.as_ref()?;
    match &decided.resolution {
        RecoveryResolution::AdoptEmergencyState { publication } => Some(Published::of(
            publication,
            decided.at,
            PublishedBy::Adoption,
        )),
        RecoveryResolution::DeclareNoChange => None,
    }
}

impl Published {
    const fn of(publication: &Publication, at: Timestamp, by: PublishedBy) -> Self {
        Self {
            version: publication.version,
            serial: publication.serial,
            sha256: publication.digest,
            at,
            by,
        }
    }
}
