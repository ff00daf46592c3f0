//! What people decide at the prompt. The client repeats a decision whose answer was lost, and takes a
//! refusal of the second one for a failure while the apply runs: the same person saying the same again
//! gets the same answer.

use axum::extract::State;
use axum::http::StatusCode;
use stackship_domain::{Actor, run};
use stackship_projections::run_review::Decision;
use stackship_projections::{READ_YOUR_WRITES_LIMIT, RunReview};
use stackship_store::log::{CommandError, Committed};
use stackship_workflow::decisions;

use super::review;
use crate::App;
use crate::auth::{InRun, Requires, RunApprove, RunCancel};
use crate::v2::access::May;
use crate::v2::error::V2Error;

type Outcome = Result<Committed, CommandError<run::Refusal>>;

/// `POST runs/{run}/actions/apply`. The request names no plan: the approval is bound to what the run
/// asks about now, or refused (S-RUN-7).
pub async fn apply(
    State(app): State<App>,
    May(may): May<InRun<RunApprove>>,
) -> Result<StatusCode, V2Error> {
    let outcome = decisions::approve_current(&app.store, &may.caller.command()?, may.run.id).await;
    settle(&app, &may, outcome, was_approved_by).await
}

/// `POST runs/{run}/actions/discard`
pub async fn discard(
    State(app): State<App>,
    May(may): May<InRun<RunApprove>>,
) -> Result<StatusCode, V2Error> {
    let outcome = decisions::discard(&app.store, &may.caller.command()?, may.run.id, None).await;
    settle(&app, &may, outcome, was_discarded_by).await
}

/// `POST runs/{run}/actions/cancel`
pub async fn cancel(
    State(app): State<App>,
    May(may): May<InRun<RunCancel>>,
) -> Result<StatusCode, V2Error> {
    let outcome = decisions::cancel(&app.store, &may.caller.command()?, may.run.id, None).await;
    settle(&app, &may, outcome, was_canceled_by).await
}

pub(super) async fn settle<P: Requires>(
    app: &App,
    may: &InRun<P>,
    outcome: Outcome,
    was_done_by: fn(&RunReview, Actor) -> bool,
) -> Result<StatusCode, V2Error> {
    match outcome {
        Ok(committed) => {
            app.waiter
                .wait_run(may.run.id, committed.sequence, READ_YOUR_WRITES_LIMIT)
                .await?;
            Ok(StatusCode::ACCEPTED)
        }
        Err(CommandError::Refused(refusal)) => {
            let review = review(app, may.run.organization, may.run.id).await?;
            if was_done_by(&review, may.caller.actor()) {
                Ok(StatusCode::ACCEPTED)
            } else {
                Err(CommandError::Refused(refusal).into())
            }
        }
        Err(error) => Err(error.into()),
    }
}

fn was_approved_by(review: &RunReview, actor: Actor) -> bool {
    matches!(review.approval.decision, Some(Decision::Approved { by, .. }) if by == actor)
}

fn was_discarded_by(review: &RunReview, actor: Actor) -> bool {
    matches!(review.approval.decision, Some(Decision::Discarded { by, .. }) if by == actor)
}

fn was_canceled_by(review: &RunReview, actor: Actor) -> bool {
    let asked = review.cancel_requested.as_ref();
    asked.is_some_and(|cancel| cancel.by == actor)
        || (review.status == run::Status::Canceled
            && review.ended.as_ref().is_some_and(|end| end.by == actor))
}
