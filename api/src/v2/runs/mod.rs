//! Runs: created, watched, decided.

mod actions;
mod create;
mod json_output;
mod policy;
mod read;
mod waiting;

pub use actions::{apply, cancel, discard};
pub use create::create;
pub use json_output::json_output;
pub use policy::{override_policy, policy_checks, policy_output, read_policy_check};
pub use read::{read, read_apply, read_plan};
pub use waiting::run_events;

use stackship_domain::ids::{OrganizationId, RunId};
use stackship_projections::{READ_YOUR_WRITES_LIMIT, RunReview};

use super::error::V2Error;
use crate::App;

/// The review of a run, once it holds what its caller has just written.
async fn review_after(
    app: &App,
    organization: OrganizationId,
    run: RunId,
    sequence: i64,
) -> Result<RunReview, V2Error> {
    app.waiter
        .wait_run(run, sequence, READ_YOUR_WRITES_LIMIT)
        .await?;
    review(app, organization, run).await
}

async fn review(app: &App, organization: OrganizationId, run: RunId) -> Result<RunReview, V2Error> {
    if let Some(review) = app.views.review(organization, run).await? {
        return Ok(review);
    }
    // The run exists, or its caller would not be here; the read models are behind. The client repeats
    // an answer from 500 on.
    Err(crate::ApiError::Unavailable("the review of a run is behind".into()).into())
}
