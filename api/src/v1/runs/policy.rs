//! What policies say about a plan, and a person's word that it may pass all the same.

use std::time::Duration;

use axum::body::Body as Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use stackship_domain::ids::PolicySetId;
use stackship_domain::run::{OVERRIDE_SECONDS_MAX, PinnedPolicySet, PolicyOutcome, PolicyPins};
use stackship_domain::{Actor, Sha256Digest, Timestamp};
use stackship_projections::run_review::{OverrideReview, PolicyReview};
use stackship_workflow::decisions;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::decisions::answer;
use super::view::RunView;
use crate::artifacts::{self, Recorded};
use crate::auth::{InRun, PolicyOverrideSoft, RunRead};
use crate::v1::answer::Data;
use crate::v1::body::Body;
use crate::v1::{reason, schema};
use crate::{ApiError, App};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(policy_result_read))
        .routes(routes!(policy_override))
}

/// The policy check.
#[derive(Serialize, ToSchema)]
pub(super) struct PolicyView {
    /// What it says.
    #[schema(schema_with = schema::policy_outcome)]
    outcome: PolicyOutcome,
    /// Why policies could not be evaluated; only with the outcome `error`.
    error_code: Option<String>,
    /// SHA-256 of the result document: what an override presents, and part of what is approved.
    #[schema(value_type = String)]
    sha256: Sha256Digest,
    /// SHA-256 over the bundles of the pinned policy sets.
    #[schema(value_type = String)]
    policies_sha256: Sha256Digest,
    /// Which engine evaluated it.
    engine: String,
    /// The engine's features.
    features: Vec<String>,
    /// How many policies were evaluated.
    policies: u32,
    /// How many denials they gave.
    denials: u64,
    /// How many warnings they gave.
    warnings: u64,
    /// Until when somebody may override it; null when nobody can.
    #[schema(value_type = Option<String>, format = DateTime)]
    override_by: Option<Timestamp>,
    /// The overrides that were given, oldest first, at most 256.
    overrides: Vec<OverrideView>,
    /// Whether there were more; the organization's history has them.
    overrides_truncated: bool,
}

/// A soft-mandatory failure that was let through.
#[derive(Serialize, ToSchema)]
struct OverrideView {
    /// By whom.
    #[schema(value_type = String)]
    by: Actor,
    /// SHA-256 of the exact result that was overridden.
    #[schema(value_type = String)]
    result_sha256: Sha256Digest,
    /// Why.
    reason: String,
    /// When.
    #[schema(schema_with = schema::time)]
    at: Timestamp,
    /// Until when it holds: the apply must have begun by then.
    #[schema(schema_with = schema::time)]
    expires_at: Timestamp,
}

/// The policies that a run is judged by, fixed when it was created.
#[derive(Serialize, ToSchema)]
pub(super) struct PolicyPinsView {
    /// SHA-256 over their bundles.
    #[schema(value_type = String)]
    sha256: Sha256Digest,
    /// The versions of policy sets.
    sets: Vec<PinnedSetView>,
}

/// One version of a policy set.
#[derive(Serialize, ToSchema)]
struct PinnedSetView {
    /// The set.
    #[schema(value_type = String)]
    set: PolicySetId,
    /// Its name when the run was created.
    name: String,
    /// The version.
    version: u32,
    /// SHA-256 of its bundle.
    #[schema(value_type = String)]
    bundle_sha256: Sha256Digest,
}

/// The policy check, once there is a result.
pub(super) fn view(review: PolicyReview) -> Option<PolicyView> {
    let result = review.result?;
    Some(PolicyView {
        outcome: result.outcome,
        error_code: result.error_code.map(|code| code.as_str().to_owned()),
        sha256: result.digest,
        policies_sha256: result.bundle,
        engine: result.engine,
        features: result.features,
        policies: result.policies,
        denials: result.denials,
        warnings: result.warnings,
        override_by: review.decide_by,
        overrides: review.overrides.into_iter().map(Into::into).collect(),
        overrides_truncated: review.overrides_truncated,
    })
}

impl From<OverrideReview> for OverrideView {
    fn from(given: OverrideReview) -> Self {
        Self {
            by: given.by,
            result_sha256: given.result,
            reason: given.reason,
            at: given.at,
            expires_at: given.expires_at,
        }
    }
}

impl From<&PolicyPins> for PolicyPinsView {
    fn from(pins: &PolicyPins) -> Self {
        Self {
            sha256: pins.digest(),
            sets: pins.sets().iter().map(Into::into).collect(),
        }
    }
}

impl From<&PinnedPolicySet> for PinnedSetView {
    fn from(pinned: &PinnedPolicySet) -> Self {
        Self {
            set: pinned.set,
            name: pinned.name.clone(),
            version: pinned.version,
            bundle_sha256: pinned.bundle,
        }
    }
}

/// Reads a run's policy result with its findings: a document `stackship.policy-result/v2`, exactly the
/// bytes whose SHA-256 is `policy.sha256` of the run. `404` with `POLICY_RESULT_NOT_RECORDED` as long as
/// there is none.
#[utoipa::path(get, path = "/v1/runs/{run}/policy-result", tag = "runs",
    params(("run" = String, Path)),
    responses((status = 200, description = "The document as it was made", body = Object,
        content_type = "application/json")))]
async fn policy_result_read(
    State(app): State<App>,
    may: InRun<RunRead>,
) -> Result<Response, ApiError> {
    let review = app.views.review(may.run.organization, may.run.id).await?;
    let review = review.ok_or(ApiError::Behind { run: may.run.id })?;
    let result = review.policy.result.ok_or(ApiError::NoPolicyResult)?;
    let recorded = Recorded::policy_result(&result);
    let (_, reader) = artifacts::open(&app, (&may).into(), recorded).await?;
    let headers = [
        (CONTENT_TYPE, "application/json".to_owned()),
        (CACHE_CONTROL, "private, no-store".to_owned()),
        (CONTENT_LENGTH, reader.bytes().to_string()),
    ];
    Ok((headers, Bytes::from_stream(reader)).into_response())
}

/// An override.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OverrideBody {
    /// The `policy.sha256` of the run that was reviewed.
    #[schema(value_type = String)]
    result_sha256: Sha256Digest,
    /// Why, for those who read the history.
    #[schema(min_length = 10, max_length = 1000)]
    reason: String,
    /// For how long it holds: 1 to 86400. The apply must have begun by then.
    #[schema(minimum = 1, maximum = 86400)]
    duration_seconds: u32,
}

/// Lets a plan pass that a soft-mandatory policy denied, for a limited time: the run then asks for an
/// approval. Refused with `POLICY_RESULT_STALE` when another result was reviewed. What a hard-mandatory
/// policy denied, and what could not be evaluated, passes for nobody.
#[utoipa::path(post, path = "/v1/runs/{run}/policy-override", tag = "runs",
    params(("run" = String, Path)), request_body = OverrideBody,
    responses((status = 200, body = Data<RunView>)))]
async fn policy_override(
    State(app): State<App>,
    may: InRun<PolicyOverrideSoft>,
    Body(body): Body<OverrideBody>,
) -> Result<Data<RunView>, ApiError> {
    let (organization, run) = (may.run.organization, may.run.id);
    if !(1..=OVERRIDE_SECONDS_MAX).contains(&i64::from(body.duration_seconds)) {
        let message = format!("`duration_seconds` is 1 to {OVERRIDE_SECONDS_MAX}");
        let (code, field) = ("POLICY_OVERRIDE_TIME", "duration_seconds");
        return Err(ApiError::refused(code, field, message));
    }
    let given = decisions::Override {
        result: body.result_sha256,
        reason: reason::full(&body.reason)?,
        lasts: Duration::from_secs(body.duration_seconds.into()),
    };
    let context = may.caller.command()?;
    let committed = decisions::override_policy(&app.store, &context, run, given).await?;
    answer(&app, organization, run, committed).await
}
