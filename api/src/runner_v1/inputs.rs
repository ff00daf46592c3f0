//! The bytes an attempt starts from. Which object that is follows from the attempt's own run; a
//! runner names only the role.

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use stackship_domain::ids::{AttemptId, ObjectId, OrganizationId, RunId};
use stackship_domain::run::{Phase, PlanRecord, Run, Standing};
use stackship_runner_protocol::InputName;
use stackship_store::attempts::Offer;
use stackship_store::records::{configuration_versions, runs_record, snapshots};

use super::attempt::LiveHolder;
use super::extract::Path;
use super::failure::Failure;
use super::lease::kind_of;
use crate::App;

pub(super) async fn input(
    State(app): State<App>,
    LiveHolder(row): LiveHolder,
    Path((_, name)): Path<(AttemptId, InputName)>,
) -> Result<Response, Failure> {
    let organization = row.offer.organization;
    let object = object_of(&app, &row.offer, name)
        .await?
        .ok_or(Failure::NotFound)?;
    let reader = app
        .store
        .objects
        .reader(organization, object, kind_of(name))
        .await?;
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_LENGTH, reader.bytes().to_string()),
    ];
    Ok((headers, Body::from_stream(reader)).into_response())
}

async fn object_of(app: &App, offer: &Offer, name: InputName) -> Result<Option<ObjectId>, Failure> {
    let (organization, pool) = (offer.organization, &app.store.pool);
    match name {
        InputName::Configuration | InputName::Snapshot => {
            let Some(run) = runs_record::by_id(pool, organization, offer.run).await? else {
                return Ok(None);
            };
            if name == InputName::Snapshot {
                let row = snapshots::by_id(pool, organization, run.input_snapshot).await?;
                return Ok(row.map(|row| row.object));
            }
            let version =
                configuration_versions::by_id(pool, organization, run.configuration_version)
                    .await?;
            Ok(version
                .and_then(|version| version.upload)
                .map(|upload| upload.object))
        }
        InputName::PolicyResult if offer.phase == Phase::Apply => {
            policy_result_object(app, organization, offer.run).await
        }
        InputName::Plan | InputName::PlanJson | InputName::LockFile
            if offer.phase == Phase::Apply =>
        {
            let (run, _) = app.store.runs.load(offer.run).await?;
            Ok(approved_plan(&run).and_then(|plan| match name {
                InputName::Plan => Some(plan.plan_object),
                InputName::PlanJson => Some(plan.plan_json_object),
                _ => plan.lock_file_object,
            }))
        }
        // A plan starts from nothing that was approved.
        InputName::Plan | InputName::PlanJson | InputName::LockFile | InputName::PolicyResult => {
            Ok(None)
        }
    }
}

/// The plan of a run that applies; no other run has one to hand out.
fn approved_plan(run: &Run) -> Option<&PlanRecord> {
    let Run::Born { standing, .. } = run else {
        return None;
    };
    match &**standing {
        Standing::Applying { plan, .. } | Standing::ApplyCanceling { plan, .. } => Some(plan),
        _ => None,
    }
}

/// The stored policy result. It is in the review, which holds the newest result since before the
/// question was put to anybody.
pub(super) async fn policy_result_object(
    app: &App,
    organization: OrganizationId,
    run: RunId,
) -> Result<Option<ObjectId>, Failure> {
    let review = app.views.review(organization, run).await?;
    Ok(review
        .and_then(|review| review.policy.result)
        .map(|result| result.object))
}
