//! What people decide about a run.

use axum::extract::State;
use serde::Deserialize;
use stackship_domain::Sha256Digest;
use stackship_domain::ids::{OrganizationId, RunId};
use stackship_projections::READ_YOUR_WRITES_LIMIT;
use stackship_store::log::Committed;
use stackship_workflow::decisions;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::view::{self, RunView};
use crate::auth::{InRun, RunApprove, RunCancel};
use crate::v1::answer::Data;
use crate::v1::body::Body;
use crate::v1::reason::ReasonBody;
use crate::{ApiError, App};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(run_approve))
        .routes(routes!(run_discard))
        .routes(routes!(run_cancel))
}

/// An approval.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Approval {
    /// The `approval.binding_digest` of the run that was reviewed.
    #[schema(value_type = String)]
    binding_digest: Sha256Digest,
}

/// Approves exactly the evidence that was reviewed; refused when anything of it has changed.
#[utoipa::path(post, path = "/v1/runs/{run}/approve", tag = "runs",
    params(("run" = String, Path)), request_body = Approval,
    responses((status = 200, body = Data<RunView>)))]
async fn run_approve(
    State(app): State<App>,
    may: InRun<RunApprove>,
    Body(body): Body<Approval>,
) -> Result<Data<RunView>, ApiError> {
    let (organization, run) = (may.run.organization, may.run.id);
    let context = may.caller.command()?;
    let committed = decisions::approve(&app.store, &context, run, body.binding_digest).await?;
    answer(&app, organization, run, committed).await
}

/// Turns a plan down.
#[utoipa::path(post, path = "/v1/runs/{run}/discard", tag = "runs",
    params(("run" = String, Path)), request_body = ReasonBody,
    responses((status = 200, body = Data<RunView>)))]
async fn run_discard(
    State(app): State<App>,
    may: InRun<RunApprove>,
    Body(body): Body<ReasonBody>,
) -> Result<Data<RunView>, ApiError> {
    let (organization, run) = (may.run.organization, may.run.id);
    let (context, reason) = (may.caller.command()?, body.checked()?);
    let committed = decisions::discard(&app.store, &context, run, reason).await?;
    answer(&app, organization, run, committed).await
}

/// Stops a run: at once where it waits, else as soon as its runner has stopped.
#[utoipa::path(post, path = "/v1/runs/{run}/cancel", tag = "runs",
    params(("run" = String, Path)), request_body = ReasonBody,
    responses((status = 200, body = Data<RunView>)))]
async fn run_cancel(
    State(app): State<App>,
    may: InRun<RunCancel>,
    Body(body): Body<ReasonBody>,
) -> Result<Data<RunView>, ApiError> {
    let (organization, run) = (may.run.organization, may.run.id);
    let (context, reason) = (may.caller.command()?, body.checked()?);
    let committed = decisions::cancel(&app.store, &context, run, reason).await?;
    answer(&app, organization, run, committed).await
}

/// The run after a decision about it.
pub(super) async fn answer(
    app: &App,
    organization: OrganizationId,
    run: RunId,
    committed: Committed,
) -> Result<Data<RunView>, ApiError> {
    let limit = READ_YOUR_WRITES_LIMIT;
    app.waiter.wait_run(run, committed.sequence, limit).await?;
    Ok(view::read(app, organization, run).await?.into())
}
