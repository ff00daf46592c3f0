//! The plan-diff of a run, exactly as it came out of the sandbox that made it.

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::artifacts::{self, Recorded};
use crate::auth::{InRun, RunRead};
use crate::{ApiError, App};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(plan_changes_read))
}

/// Reads what a run's plan would change: a document `stackship.plan-diff/v1`, free of sensitive values.
/// `404` with `PLAN_CHANGES_NOT_RECORDED` as long as there is none.
#[utoipa::path(get, path = "/v1/runs/{run}/plan-changes", tag = "runs",
    params(("run" = String, Path)),
    responses((status = 200, description = "The document as it was made", body = Object,
        content_type = "application/json")))]
async fn plan_changes_read(
    State(app): State<App>,
    may: InRun<RunRead>,
) -> Result<Response, ApiError> {
    let review = app.views.review(may.run.organization, may.run.id).await?;
    let review = review.ok_or(ApiError::Behind { run: may.run.id })?;
    let plan = review.plan.record.ok_or(ApiError::NoPlanChanges)?;
    let recorded = Recorded::plan_diff(&plan);
    let (_, reader) = artifacts::open(&app, (&may).into(), recorded).await?;
    let headers = [
        (CONTENT_TYPE, "application/json".to_owned()),
        (CACHE_CONTROL, "private, no-store".to_owned()),
        (CONTENT_LENGTH, reader.bytes().to_string()),
    ];
    Ok((headers, Body::from_stream(reader)).into_response())
}
