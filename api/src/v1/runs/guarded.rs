//! What only some may download, for a reason they give, and after they have proved again who they are
//! (S-ART-1): the raw plan, and what an apply in doubt left behind.
//!
//! The reason is in the log before the first byte leaves. Whatever is wrong with the artifact itself,
//! that it was never made, is gone, or is not what the run recorded, looks the same from outside.

use axum::body::Body as Bytes;
use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use stackship_domain::run::PlanRecord;
use stackship_projections::RunReview;
use stackship_runner_protocol::PLAN_BYTES_MAX;
use stackship_store::StoreError;
use stackship_store::objects::ObjectKind;
use stackship_store::records::releases::{Release, tell_release};
use stackship_store::states::{self, STATE_BYTES_MAX};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::artifacts::{self, Recorded};
use crate::auth::{ArtifactReadSensitive, Denied, InRun, NoQuery, Proven, Requires, StateRecover};
use crate::v1::body::Body;
use crate::v1::reason::FullReason;
use crate::{ApiError, App};

pub(in crate::v1) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(run_raw_plan))
        .routes(routes!(run_emergency_state))
}

/// Downloads the plan file as OpenTofu wrote it, secrets in clear. Needs a proof not older than 15
/// minutes (`/v1/user/step-up`).
#[utoipa::path(post, path = "/v1/runs/{run}/raw-plan", tag = "runs",
    params(("run" = String, Path)), request_body = FullReason,
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream")))]
async fn run_raw_plan(
    State(app): State<App>,
    may: InRun<ArtifactReadSensitive>,
    _no_query: NoQuery,
    _proven: Proven,
    Body(body): Body<FullReason>,
) -> Result<Response, ApiError> {
    let reason = body.checked()?;
    let review = review(&app, &may).await?;
    let plan = review.plan.record.ok_or_else(hidden)?;
    let artifact = Artifact {
        name: "raw_plan",
        file: "plan.bin",
        recorded: raw_plan(&plan),
    };
    release(&app, &may, artifact, &reason).await
}

/// Downloads the state that an apply left behind when it failed or its outcome is in doubt. Needs
/// `state:recover` besides, and a proof not older than 15 minutes (`/v1/user/step-up`).
#[utoipa::path(post, path = "/v1/runs/{run}/emergency-state", tag = "runs",
    params(("run" = String, Path)), request_body = FullReason,
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream")))]
async fn run_emergency_state(
    State(app): State<App>,
    may: InRun<ArtifactReadSensitive>,
    _also: InRun<StateRecover>,
    _no_query: NoQuery,
    _proven: Proven,
    Body(body): Body<FullReason>,
) -> Result<Response, ApiError> {
    let reason = body.checked()?;
    let review = review(&app, &may).await?;
    let artifact = Artifact {
        name: "emergency_state",
        file: "emergency.tfstate",
        recorded: emergency_state(&app, &review).await?.ok_or_else(hidden)?,
    };
    release(&app, &may, artifact, &reason).await
}

/// What a run left behind: OpenTofu's own last word where there is one, else the newest staged state.
/// `None` when it left nothing.
pub(super) async fn emergency_state(
    app: &App,
    review: &RunReview,
) -> Result<Option<Recorded>, StoreError> {
    let Some(emergency) = review.apply.emergency.as_ref() else {
        return Ok(None);
    };
    let of = |object, kind, sha256| Recorded {
        object,
        kind,
        sha256,
        bytes_max: STATE_BYTES_MAX,
    };
    if let Some(object) = emergency.errored_state_object {
        return Ok(Some(of(object, ObjectKind::ErroredState, None)));
    }
    let Some(staged) = emergency.staged.as_ref() else {
        return Ok(None);
    };
    let row = states::by_id(&app.store, review.facts.organization, staged.version).await?;
    let object = row.and_then(|row| row.object);
    Ok(object.map(|object| of(object, ObjectKind::State, Some(staged.digest))))
}

/// The plan file, as the run recorded it.
pub(super) const fn raw_plan(plan: &PlanRecord) -> Recorded {
    Recorded {
        object: plan.plan_object,
        kind: ObjectKind::Plan,
        sha256: Some(plan.plan),
        bytes_max: PLAN_BYTES_MAX,
    }
}

/// An artifact and what it is called.
struct Artifact {
    name: &'static str,
    file: &'static str,
    recorded: Recorded,
}

async fn release<P: Requires>(
    app: &App,
    may: &InRun<P>,
    artifact: Artifact,
    reason: &str,
) -> Result<Response, ApiError> {
    let opened = artifacts::open(app, &may.run, artifact.recorded).await?;
    let (found, reader) = opened.ok_or_else(hidden)?;
    let release = Release {
        run: may.run.id,
        workspace: may.run.workspace,
        artifact: artifact.name,
        object: found.id,
        sha256: found.sha256,
        bytes: found.bytes,
        reason,
    };
    tell_release(&app.store, &may.caller.command()?, &release).await?;
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_LENGTH, reader.bytes().to_string()),
        (
            CONTENT_DISPOSITION,
            format!("attachment; filename=\"{}-{}\"", may.run.id, artifact.file),
        ),
        (CACHE_CONTROL, "private, no-store".to_owned()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    Ok((headers, Bytes::from_stream(reader)).into_response())
}

async fn review<P: Requires>(app: &App, may: &InRun<P>) -> Result<RunReview, ApiError> {
    let found = app.views.review(may.run.organization, may.run.id).await?;
    found.ok_or_else(hidden)
}

fn hidden() -> ApiError {
    Denied::not_found("artifact").into()
}
