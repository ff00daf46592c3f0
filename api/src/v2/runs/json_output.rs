//! `GET plans/{plan}/json-output`: the plan as JSON, for authenticated automation (S-ART-5). It is no
//! redacted document: whoever may read runs may read it, inside the exact workspace.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use stackship_store::objects::ObjectKind;

use crate::App;
use crate::artifacts::{self, Recorded};
use crate::v2::access::OfPlan;
use crate::v2::error::V2Error;

/// The largest plan that is given out, in bytes (S-ART-5).
const JSON_OUTPUT_BYTES_MAX: u64 = 100 * 1024 * 1024;

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
    let recorded = Recorded {
        object: plan.plan_json_object,
        kind: ObjectKind::PlanJson,
        sha256: Some(plan.plan_json),
        bytes_max: JSON_OUTPUT_BYTES_MAX,
    };
    let opened = artifacts::open(&app, &may.run, recorded).await?;
    let (_, reader) = opened.ok_or_else(unavailable)?;
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
