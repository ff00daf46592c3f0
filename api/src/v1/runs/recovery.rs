//! A doubtful apply: what is known of it, and what an operator says became of it.

pub(super) mod evidence;

use axum::extract::State;
use stackship_workflow::recovery;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::decisions::answer;
use super::view::RunView;
use crate::auth::{InRun, RunRead, RunRecover, StateRecover};
use crate::v1::answer::Data;
use crate::v1::body::Body;
use crate::v1::reason::FullReason;
use crate::{ApiError, App};
use evidence::RecoveryEvidence;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(run_recovery))
        .routes(routes!(run_recovery_adopt))
        .routes(routes!(run_recovery_no_change))
}

/// Shows why an apply is in doubt, what it left, and what each choice would do. What was never
/// recorded is null.
#[utoipa::path(get, path = "/v1/runs/{run}/recovery", tag = "runs",
    params(("run" = String, Path)),
    responses((status = 200, body = Data<RecoveryEvidence>)))]
async fn run_recovery(
    State(app): State<App>,
    may: InRun<RunRead>,
) -> Result<Data<RecoveryEvidence>, ApiError> {
    Ok(evidence::read(&app, &may).await?.into())
}

/// Makes the state that the apply left the workspace's state, and ends the run. Needs `run:recover`
/// and `state:recover`.
#[utoipa::path(post, path = "/v1/runs/{run}/recovery/adopt", tag = "runs",
    params(("run" = String, Path)), request_body = FullReason,
    responses((status = 200, body = Data<RunView>)))]
async fn run_recovery_adopt(
    State(app): State<App>,
    may: InRun<RunRecover>,
    _state: InRun<StateRecover>,
    Body(body): Body<FullReason>,
) -> Result<Data<RunView>, ApiError> {
    let (organization, run) = (may.run.organization, may.run.id);
    let (context, reason) = (may.caller.command()?, body.checked()?);
    let committed = recovery::adopt(&app.store, &context, run, reason).await?;
    answer(&app, organization, run, committed).await
}

/// Declares that the apply changed nothing, and ends the run: the workspace keeps its state. Needs
/// `run:recover`.
#[utoipa::path(post, path = "/v1/runs/{run}/recovery/no-change", tag = "runs",
    params(("run" = String, Path)), request_body = FullReason,
    responses((status = 200, body = Data<RunView>)))]
async fn run_recovery_no_change(
    State(app): State<App>,
    may: InRun<RunRecover>,
    Body(body): Body<FullReason>,
) -> Result<Data<RunView>, ApiError> {
    let (organization, run) = (may.run.organization, may.run.id);
    let (context, reason) = (may.caller.command()?, body.checked()?);
    let committed = recovery::declare_no_change(&app.store, &context, run, reason).await?;
    answer(&app, organization, run, committed).await
}

#[cfg(test)]
mod tests {
    use super::*;

    type Adoption<A> =
        fn(State<App>, InRun<RunRecover>, InRun<StateRecover>, Body<FullReason>) -> A;

    /// No role has one of the permissions without the other, so no request could show that one is not
    /// asked for. What a handler takes is what it asks for.
    #[test]
    fn an_adoption_asks_for_the_state_permission_too() {
        fn adoption<A>(_: Adoption<A>) {}
        adoption(run_recovery_adopt);
    }
}
