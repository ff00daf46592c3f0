//! What of a run only some may download: the raw plan, and what an apply in doubt left behind.

use axum::extract::State;
use axum::response::Response;
use stackship_projections::RunReview;
use stackship_store::{StoreError, states};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::artifacts::Recorded;
use crate::auth::{ArtifactReadSensitive, InRun, NoQuery, Proven, Quietly, StateRecover};
use crate::v1::body::Body;
use crate::v1::guarded::{Download, hidden, release};
use crate::v1::reason::FullReason;
use crate::v1::repeats::Unnamed;
use crate::{ApiError, App};

type May = InRun<ArtifactReadSensitive>;

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
    Quietly(may): Quietly<May>,
    _no_query: NoQuery,
    _proven: Proven,
    _unnamed: Unnamed,
    Body(body): Body<FullReason>,
) -> Result<Response, ApiError> {
    let reason = body.checked()?;
    let plan = review(&app, &may).await?.plan.record.ok_or_else(hidden)?;
    let download = Download {
        artifact: "raw_plan",
        file: format!("{}-plan.bin", may.run.id),
        ..of(&may, Recorded::plan(&plan), reason)
    };
    release(&app, download).await
}

/// Downloads the state that an apply left behind when it failed or its outcome is in doubt. Needs
/// `state:recover` besides, and a proof not older than 15 minutes (`/v1/user/step-up`).
#[utoipa::path(post, path = "/v1/runs/{run}/emergency-state", tag = "runs",
    params(("run" = String, Path)), request_body = FullReason,
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream")))]
async fn run_emergency_state(
    State(app): State<App>,
    Quietly(may): Quietly<May>,
    _also: Quietly<InRun<StateRecover>>,
    _no_query: NoQuery,
    _proven: Proven,
    _unnamed: Unnamed,
    Body(body): Body<FullReason>,
) -> Result<Response, ApiError> {
    let reason = body.checked()?;
    let review = review(&app, &may).await?;
    let recorded = emergency_state(&app, &review).await?.ok_or_else(hidden)?;
    release(&app, of(&may, recorded, reason)).await
}

/// What a run left behind: OpenTofu's own last word where there is one, else the newest staged state.
pub(super) async fn emergency_state(
    app: &App,
    review: &RunReview,
) -> Result<Option<Recorded>, StoreError> {
    let Some(emergency) = &review.apply.emergency else {
        return Ok(None);
    };
    if let Some(object) = emergency.errored_state_object {
        return Ok(Some(Recorded::errored_state(object)));
    }
    let Some(staged) = &emergency.staged else {
        return Ok(None);
    };
    let row = states::by_id(&app.store, review.facts.organization, staged.version).await?;
    // The row says where the bytes are; what they are is what the log says.
    let row = row.filter(|row| row.sha256 == Some(staged.digest));
    Ok(row.as_ref().and_then(Recorded::state))
}

/// The download of what an apply left behind.
fn of(may: &May, recorded: Recorded, reason: String) -> Download<'_> {
    Download {
        caller: &may.caller,
        place: may.into(),
        run: Some(may.run.id),
        artifact: "emergency_state",
        file: format!("{}-emergency.tfstate", may.run.id),
        recorded,
        reason,
    }
}

async fn review(app: &App, may: &May) -> Result<RunReview, ApiError> {
    let found = app.views.review(may.run.organization, may.run.id).await?;
    found.ok_or_else(hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What asks for a proof, for no query and for a reason; and for the state permission besides.
    type RawPlan<A> = fn(State<App>, Quietly<May>, NoQuery, Proven, Unnamed, Body<FullReason>) -> A;
    type Emergency<A> = fn(
        State<App>,
        Quietly<May>,
        Quietly<InRun<StateRecover>>,
        NoQuery,
        Proven,
        Unnamed,
        Body<FullReason>,
    ) -> A;

    /// No role has one of the permissions without the other, so no request could show that one is not
    /// asked for. What a handler takes is what it asks for, and one without it is none of these.
    #[test]
    fn an_emergency_state_asks_for_the_state_permission_too() {
        fn raw_plan<A>(_: RawPlan<A>) {}
        fn emergency<A>(_: Emergency<A>) {}
        raw_plan(run_raw_plan);
        emergency(run_emergency_state);
    }
}
