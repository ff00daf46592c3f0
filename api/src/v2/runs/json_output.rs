//! `GET plans/{plan}/json-output`: the plan as JSON, for authenticated automation (S-ART-5). It is no
//! redacted document: whoever may read runs may read it, inside the exact workspace.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use crate::App;
use crate::artifacts::{self, Recorded};
use crate::v2::access::OfPlan;
use crate::v2::error::V2Error;

/// Whatever keeps somebody with a credential from the document, the answer has the same bytes.
pub async fn json_output(
    State(app): State<App>,
    of_plan: Result<OfPlan, V2Error>,
) -> Result<Response, V2Error> {
    let OfPlan(may) = of_plan.map_err(|refusal| match refusal.status {
        StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => unavailable(),
        _ => refusal,
    })?;
    let review = app.views.review(may.run.organization, may.run.id).await;
    let review = review.map_err(crate::ApiError::from)?;
    let plan = review
        .and_then(|review| review.plan.record)
        .ok_or_else(unavailable)?;
    let recorded = Recorded::plan_json(&plan);
    let (_, reader) = artifacts::open(&app, (&may).into(), recorded)
        .await
        .map_err(|error| artifacts::unless_it_passes(error, unavailable()))?;
    let headers = [
        (CONTENT_TYPE, "application/json".to_owned()),
        (CONTENT_LENGTH, reader.bytes().to_string()),
        (CACHE_CONTROL, "private, no-store".to_owned()),
    ];
    Ok((headers, Body::from_stream(reader)).into_response())
}

fn unavailable() -> V2Error {
    V2Error::not_found("plan output")
}
