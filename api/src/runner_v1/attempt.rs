//! Who speaks, and the small words about one attempt: alive, and given back.

use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use stackship_domain::ids::{AttemptId, RunnerId};
use stackship_runner_protocol::{HEARTBEAT_WAIT_MS_MAX, Heartbeat, HeartbeatAnswer};
use stackship_store::attempts::{self, AttemptRow, HeartbeatOutcome};
use stackship_store::notify::{Nudges, Topic};
use stackship_store::{clock, records};
use tokio::time::Instant;

use super::extract::{Body, Path};
use super::failure::Failure;
use crate::App;
use crate::serving::Draining;

/// A registered runner.
pub(super) struct RunnerCaller(pub(super) RunnerId);

impl FromRequestParts<App> for RunnerCaller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let presented = bearer(parts).ok_or(Failure::Unauthenticated)?;
        let runner = records::runners::authenticate(&app.store, presented).await?;
        runner.map(Self).ok_or(Failure::Unauthenticated)
    }
}

/// The attempt of the path, opened by its own lease token. It may be over: saying a result again is
/// harmless, so the holder of the token still gets an answer.
pub(super) struct Holder(pub(super) AttemptRow);

/// The attempt of the path, while its lease lasts.
pub(super) struct LiveHolder(pub(super) AttemptRow);

impl FromRequestParts<App> for Holder {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let path = Path::<AttemptPath>::from_request_parts(parts, app).await;
        let Path(AttemptPath { attempt }) = path.map_err(|_| Failure::Unauthenticated)?;
        let presented = bearer(parts).ok_or(Failure::Unauthenticated)?;
        // Looked up by its digest: the time a look-up takes tells nothing about the token.
        let row = attempts::by_lease_token(&app.store, attempt, presented).await?;
        row.map(Self).ok_or(Failure::Unauthenticated)
    }
}

impl FromRequestParts<App> for LiveHolder {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let Holder(row) = Holder::from_request_parts(parts, app).await?;
        let is_live =
            row.closed_at.is_none() && row.lease_expires_at.is_some_and(|at| at > clock::now());
        if is_live {
            Ok(Self(row))
        } else {
            Err(Failure::Lost)
        }
    }
}

/// The attempt among a path's parameters; the others are a handler's own.
#[derive(serde::Deserialize)]
struct AttemptPath {
    attempt: AttemptId,
}

fn bearer(parts: &Parts) -> Option<&str> {
    let (scheme, token) = parts
        .headers
        .get(AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

pub(super) async fn heartbeat(
    State(app): State<App>,
    Holder(row): Holder,
    Draining(draining): Draining,
    Body(beat): Body<Heartbeat>,
) -> Result<Json<HeartbeatAnswer>, Failure> {
    let lease_seconds = app.settings.lease_seconds;
    let until = Instant::now() + wait_of(&beat, lease_seconds);
    // Before the first look, so that an order between a look and the wait is not missed.
    let mut nudges = app.nudges.subscribe();
    let run = row.offer.run.to_string();
    let mut found =
        attempts::heartbeat(&app.store, row.id, beat.tofu_started, lease_seconds).await?;
    loop {
        let HeartbeatOutcome::Alive { expires_at, cancel } = found else {
            return Err(Failure::Lost);
        };
        let left = until.saturating_duration_since(Instant::now());
        if cancel || left.is_zero() || draining.is_cancelled() {
            return Ok(Json(HeartbeatAnswer {
                lease_expires_at: expires_at,
                cancel,
            }));
        }
        tokio::select! {
            () = draining.cancelled() => {}
            () = Nudges::wait(&mut nudges, Topic::Attempts, Some(&run), left) => {}
        }
        // Looks without renewing: only a request tells that its runner lives.
        found = attempts::look(&app.store, row.id).await?;
    }
}

/// How long the answer may wait: never so long that the next heartbeat could come too late.
fn wait_of(beat: &Heartbeat, lease_seconds: u32) -> Duration {
    let asked = Duration::from_millis(beat.wait_ms.min(HEARTBEAT_WAIT_MS_MAX));
    asked.min(Duration::from_secs(lease_seconds.into()) / 3)
}

pub(super) async fn hand_back(
    State(app): State<App>,
    Holder(row): Holder,
) -> Result<StatusCode, Failure> {
    if attempts::hand_back(&app.store, row.id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else if row.tofu_started_at.is_some() {
        Err(Failure::Started)
    } else {
        Err(Failure::Lost)
    }
}
