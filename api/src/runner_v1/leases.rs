//! Handing out work: a runner waits here until an attempt is offered.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use stackship_domain::ids::{AttemptId, RunnerId};
use stackship_runner_protocol::{LEASE_WAIT_MS_MAX, Lease, LeaseRequest};
use stackship_store::attempts;
use stackship_store::notify::{Nudges, Topic};
use stackship_store::records::runners;
use stackship_workflow::leasing;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::attempt::RunnerCaller;
use super::extract::Body;
use super::failure::Failure;
use super::lease;
use crate::App;
use crate::serving::Draining;

/// A nudge may be lost: the longest a waiting runner goes without looking by itself.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The longest region, platform, release or isolation that a runner may tell.
const WORD_BYTES_MAX: usize = 64;

pub(super) async fn lease(
    State(app): State<App>,
    RunnerCaller(runner): RunnerCaller,
    Draining(draining): Draining,
    Body(request): Body<LeaseRequest>,
) -> Result<Response, Failure> {
    let words = [
        &request.region,
        &request.platform,
        &request.release,
        &request.isolation,
    ];
    if words
        .iter()
        .any(|word| word.is_empty() || word.len() > WORD_BYTES_MAX)
    {
        return Err(Failure::Invalid(
            "a text of the request is empty or longer than 64 bytes",
        ));
    }
    runners::asked(&app.store, runner, &request.region, &request.platform).await?;
    let until = Instant::now() + Duration::from_millis(request.wait_ms.min(LEASE_WAIT_MS_MAX));
    // Before the first look, so that an offer between a look and the wait is not missed.
    let mut nudges = app.nudges.subscribe();
    loop {
        if let Some(lease) = next(&app, runner, &request).await? {
            return Ok(Json(lease).into_response());
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || draining.is_cancelled() {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        let pause = left.min(LOOK_AGAIN_AFTER);
        tokio::select! {
            () = draining.cancelled() => {}
            () = Nudges::wait(&mut nudges, Topic::Attempts, None, pause) => {}
        }
    }
}

/// Leases on a task of its own: when the runner goes away in the middle, the lease is given back at
/// once and does not have to run out first.
async fn next(
    app: &App,
    runner: RunnerId,
    request: &LeaseRequest,
) -> Result<Option<Lease>, Failure> {
    let (sender, receiver) = oneshot::channel();
    let (app, region, platform) = (
        app.clone(),
        request.region.clone(),
        request.platform.clone(),
    );
    tokio::spawn(async move {
        let result = lease_once(&app, runner, &region, &platform).await;
        if let Err(Ok(Some(lease))) = sender.send(result) {
            give_back(&app, lease.attempt).await;
        }
    });
    receiver.await.unwrap_or(Ok(None))
}

async fn lease_once(
    app: &App,
    runner: RunnerId,
    region: &str,
    platform: &str,
) -> Result<Option<Lease>, Failure> {
    let lease_seconds = app.settings.lease_seconds;
    let Some(leased) = leasing::lease(&app.store, runner, region, platform, lease_seconds).await?
    else {
        return Ok(None);
    };
    let attempt = leased.attempt.id;
    match lease::build(app, runner, leased).await {
        Ok(lease) => Ok(Some(lease)),
        Err(failure) => {
            give_back(app, attempt).await;
            Err(failure)
        }
    }
}

async fn give_back(app: &App, attempt: AttemptId) {
    if let Err(error) = attempts::hand_back(&app.store, attempt).await {
        tracing::warn!(error = %error, attempt.id = %attempt, "A lease that nobody took could not be given back");
    }
}
