//! Watching a run.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use stackship_domain::run::Phase;
use stackship_projections::RunReview;
use stackship_store::records::tokens;

use super::review;
use crate::App;
use crate::auth::{Caller, Denied, InRun, RunRead};
use crate::v2::access::{self, May, OfApply, OfPlan};
use crate::v2::error::V2Error;
use crate::v2::ids::phase_id;
use crate::v2::logs::log_url;
use crate::v2::mapping::{
    RunView, apply_status, has_changes, plan_status, run_resource, workspace_resource,
};
use crate::v2::wire::{
    ApplyAttributes, ApplyResource, Document, Included, Kind, PlanAttributes, PlanResource, Query,
    respond,
};

/// What is to come along with a run.
#[derive(Debug, Deserialize)]
pub struct Include {
    /// Names in any order. Those that are not known bring nothing: `task_stages` is always asked for.
    include: Option<String>,
}

/// `GET runs/{run}`
pub async fn read(
    State(app): State<App>,
    May(may): May<InRun<RunRead>>,
    Query(query): Query<Include>,
) -> Result<Response, V2Error> {
    let review = review(&app, may.run.organization, may.run.id).await?;
    let rights = access::rights(&app, &may.caller, &may.workspace).await?;
    let view = RunView {
        review: &review,
        rights,
    };
    let mut document = Document::of(run_resource(view));
    for name in query.include.iter().flat_map(|names| names.split(',')) {
        match name {
            "plan" => {
                let plan = plan(&app, &may.caller, &review)?;
                document.included.push(Included::Plan(plan));
            }
            "workspace" => {
                let organization = access::organization_of(&app, &may.caller).await?;
                let name = &organization.name;
                let status = app
                    .views
                    .workspace_status(organization.id, may.workspace.id)
                    .await?;
                let workspace = workspace_resource(name, &may.workspace, status.as_ref(), rights);
                document
                    .included
                    .push(Included::Workspace(Box::new(workspace)));
            }
            _ => {}
        }
    }
    Ok(respond(StatusCode::OK, &document))
}

/// `GET plans/{plan}`
pub async fn read_plan(State(app): State<App>, OfPlan(may): OfPlan) -> Result<Response, V2Error> {
    let review = review(&app, may.run.organization, may.run.id).await?;
    let plan = plan(&app, &may.caller, &review)?;
    Ok(respond(StatusCode::OK, &Document::of(plan)))
}

/// `GET applies/{apply}`
pub async fn read_apply(
    State(app): State<App>,
    OfApply(may): OfApply,
) -> Result<Response, V2Error> {
    let review = review(&app, may.run.organization, may.run.id).await?;
    let attributes = ApplyAttributes {
        status: apply_status(&review),
        log_read_url: log_url(&app, reader(&may.caller)?, may.run.id, Phase::Apply),
    };
    let id = phase_id(Phase::Apply, review.run);
    let resource = ApplyResource::plain(Kind::Applies, id, attributes);
    Ok(respond(StatusCode::OK, &Document::of(resource)))
}

/// Whom the address of a log is given to. No run's token gets this far.
fn reader(caller: &Caller) -> Result<&tokens::Principal, Denied> {
    caller.user().ok_or(Denied::RunToken)
}

fn plan(app: &App, caller: &Caller, review: &RunReview) -> Result<PlanResource, Denied> {
    let counts = review.plan.record.as_ref().map(|plan| plan.counts);
    let attributes = PlanAttributes {
        status: plan_status(review),
        has_changes: has_changes(review),
        generated_configuration: false,
        log_read_url: log_url(app, reader(caller)?, review.run, Phase::Plan),
        resource_additions: counts.map(|counts| counts.create),
        resource_changes: counts.map(|counts| counts.change),
        resource_destructions: counts.map(|counts| counts.destroy),
        resource_imports: counts.map(|counts| counts.import),
    };
    let id = phase_id(Phase::Plan, review.run);
    Ok(PlanResource::plain(Kind::Plans, id, attributes))
}
