//! What policies say about a run, and the override that a person types.
//!
//! The client reads a check after the plan's log has ended, prints its text, and asks for `override` when
//! it has failed softly. It overrides without asking where it was told not to ask, so a run that was to be
//! applied without a question is refused when it is created.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use stackship_domain::Actor;
use stackship_projections::RunReview;
use stackship_store::phase_logs::{self, LOG_BYTES_MAX, LogPhase, READ_BYTES_MAX};
use stackship_workflow::decisions;

use super::actions::settle;
use super::review;
use crate::App;
use crate::auth::{InRun, PolicyOverrideSoft, Requires, RunRead};
use crate::v2::access::{self, May, OfPolicyCheck};
use crate::v2::error::V2Error;
use crate::v2::mapping::policy_check;
use crate::v2::wire::{Document, PolicyCheckResource, respond};

/// `GET runs/{run}/policy-checks`
pub async fn policy_checks(
    State(app): State<App>,
    May(may): May<InRun<RunRead>>,
) -> Result<Response, V2Error> {
    let check = check(&app, &may).await?;
    let checks = Document::list(check.into_iter().collect());
    Ok(respond(StatusCode::OK, &checks))
}

/// `GET policy-checks/{check}`
pub async fn read_policy_check(
    State(app): State<App>,
    OfPolicyCheck(may): OfPolicyCheck<RunRead>,
) -> Result<Response, V2Error> {
    let check = check(&app, &may).await?.ok_or_else(hidden)?;
    Ok(respond(StatusCode::OK, &Document::of(check)))
}

/// `GET policy-checks/{check}/output`: the phase's log, which is complete once there is a result.
pub async fn policy_output(
    State(app): State<App>,
    OfPolicyCheck(may): OfPolicyCheck<RunRead>,
) -> Result<Response, V2Error> {
    check(&app, &may).await?.ok_or_else(hidden)?;
    let (organization, run) = (may.run.organization, may.run.id);
    let mut text = Vec::new();
    while (text.len() as u64) < LOG_BYTES_MAX {
        let (offset, limit) = (text.len() as u64, READ_BYTES_MAX);
        let phase = LogPhase::Policy;
        let part = phase_logs::read(&app.store, organization, run, phase, offset, limit).await?;
        if part.bytes.is_empty() {
            break;
        }
        text.extend_from_slice(&part.bytes);
    }
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (CACHE_CONTROL, "private, no-store"),
    ];
    Ok((headers, text).into_response())
}

/// `POST policy-checks/{check}/actions/override`. The request names no result: the override is for what
/// the run asks about now, or refused.
pub async fn override_policy(
    State(app): State<App>,
    OfPolicyCheck(may): OfPolicyCheck<PolicyOverrideSoft>,
) -> Result<Response, V2Error> {
    let context = may.caller.command()?;
    let outcome = decisions::override_current_policy(&app.store, &context, may.run.id).await;
    settle(&app, &may, outcome, was_overridden_by).await?;
    let check = check(&app, &may).await?.ok_or_else(hidden)?;
    Ok(respond(StatusCode::OK, &Document::of(check)))
}

async fn check<P: Requires>(
    app: &App,
    may: &InRun<P>,
) -> Result<Option<PolicyCheckResource>, V2Error> {
    let review = review(app, may.run.organization, may.run.id).await?;
    let rights = access::rights(app, &may.caller, &may.workspace).await?;
    Ok(policy_check(&review, rights))
}

fn hidden() -> V2Error {
    V2Error::not_found("policy check")
}

fn was_overridden_by(review: &RunReview, actor: Actor) -> bool {
    review
        .policy
        .overrides
        .iter()
        .any(|given| given.by == actor)
}
