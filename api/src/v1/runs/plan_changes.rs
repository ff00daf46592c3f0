//! The plan-diff of a run, exactly as it came out of the sandbox that made it.

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use stackship_domain::ids::WorkspaceId;
use stackship_domain::run::PlanRecord;
use stackship_store::StoreError;
use stackship_store::objects::{Descriptor, ObjectKind};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::{InRun, RunRead};
use crate::{ApiError, App};

/// Where a stored plan-diff is described.
const TABLE: &str = "record.objects";

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
    let organization = may.run.organization;
    let review = app.views.review(organization, may.run.id).await?;
    let review = review.ok_or(ApiError::Behind { run: may.run.id })?;
    let plan = review.plan.record.ok_or(ApiError::NoPlanChanges)?;
    let (object, objects) = (plan.plan_diff_object, &app.store.objects);
    let described = objects.describe(organization, object).await?;
    if let Some(column) = difference(&plan, review.facts.workspace, described.as_ref()) {
        return Err(StoreError::inconsistent(TABLE, column, object).into());
    }
    let reader = objects
        .reader(organization, object, ObjectKind::PlanDiff)
        .await?;
    let headers = [
        (CONTENT_TYPE, "application/json".to_owned()),
        (CACHE_CONTROL, "private, no-store".to_owned()),
        (CONTENT_LENGTH, reader.bytes().to_string()),
    ];
    Ok((headers, Body::from_stream(reader)).into_response())
}

/// In what the object is not the one that was recorded. The log cannot be changed; a row can.
fn difference(
    plan: &PlanRecord,
    workspace: WorkspaceId,
    described: Option<&Descriptor>,
) -> Option<&'static str> {
    let Some(described) = described else {
        return Some("object_id");
    };
    [
        ("workspace_id", described.workspace == Some(workspace)),
        ("kind", described.kind == ObjectKind::PlanDiff),
        ("sha256", described.sha256 == plan.plan_diff),
    ]
    .into_iter()
    .find_map(|(column, is_same)| (!is_same).then_some(column))
}
