//! Logs of phases, as the client follows them.
//!
//! The client never repeats a read that fails, so a log that exists is always answered with 200. It
//! asks again at once after an answer with text and sleeps after one without, so a read is held until
//! there is something to say, and small pieces are gathered.

mod frame;
mod links;

pub use links::log_url;

use std::time::Duration;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use stackship_domain::run::Phase;
use stackship_projections::RunReview;
use stackship_store::notify::{Nudge, Topic};
use stackship_store::phase_logs::{self, LogPhase};
use stackship_store::{StoreError, clock};
use tokio::sync::broadcast;
use tokio::time::Instant;

use self::frame::{Frame, Window};
use self::links::LogLink;
use super::access::Signature;
use super::error::V2Error;
use super::mapping::is_over;
use super::wire::Query;
use crate::App;
use crate::auth::Denied;
use crate::serving::{AtHand, Draining};

/// How long a read without anything to say is held. The client sleeps half a second and more after an
/// empty answer, so every held read saves one.
const HOLD_MAX: Duration = Duration::from_secs(2);
/// How long small pieces are gathered after the first of them.
const GATHER_MAX: Duration = Duration::from_millis(80);
/// So many bytes are enough for an answer at once.
const GATHERED_BYTES: usize = 4 * 1024;
/// The most bytes of one answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How long a lost nudge can delay an answer.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// After so many seconds the log of a run that has ended counts as complete, even if whoever should
/// have closed it died first.
const CLOSED_AFTER_END_SECONDS: i64 = 10;

/// Which part of a log is read. The client replaces every other parameter by these two.
#[derive(Debug, Deserialize)]
pub struct LogQuery {
    #[serde(default)]
    offset: u64,
    limit: Option<usize>,
}

/// `GET logs/{token}`: for whoever was given the address, while the credential that it was given to
/// is live and may read the run.
pub async fn read(
    State(app): State<App>,
    Signature(token): Signature,
    query: Result<Query<LogQuery>, V2Error>,
    at_hand: AtHand,
    Draining(draining): Draining,
) -> Result<Response, V2Error> {
    let link = LogLink::open(&app, &token).ok_or_else(|| V2Error::not_found("log"))?;
    match link.is_open(&app, &at_hand).await {
        Ok(true) => {}
        Ok(false) => return Err(V2Error::not_found("log")),
        // It asks again after a pause, which is what a crowd needs.
        Err(Denied::Crowded) => return Ok(answer(Vec::new())),
        Err(error) => {
            tracing::warn!(error = %error, run.id = %link.run, "Who reads a log could not be told; the client will ask again");
            return Ok(answer(Vec::new()));
        }
    }
    let Query(query) = query?;
    let limit = query
        .limit
        .unwrap_or(ANSWER_BYTES_MAX)
        .min(ANSWER_BYTES_MAX);
    let reading = Reading {
        app: &app,
        window: Frame::of(link.phase).window(query.offset, limit),
        link,
    };
    let bytes = tokio::select! {
        () = draining.cancelled() => Vec::new(),
        bytes = reading.held() => bytes.unwrap_or_else(|error| {
            tracing::warn!(error = %error, run.id = %link.run, "A log could not be read; the client will ask again");
            Vec::new()
        }),
    };
    Ok(answer(bytes))
}

fn answer(bytes: Vec<u8>) -> Response {
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (CACHE_CONTROL, "private, no-store"),
    ];
    (headers, bytes).into_response()
}

/// One read of one window of a log.
struct Reading<'a> {
    app: &'a App,
    link: LogLink,
    window: Window,
}

/// What a look at the log found.
struct Look {
    answer: Vec<u8>,
    /// Nothing better will come by waiting.
    is_done: bool,
    /// There is text in it, not only the mark at the beginning.
    has_text: bool,
    /// Only the run's own end is missing.
    is_closed: bool,
}

impl Reading<'_> {
    /// Looks until there is something to say.
    async fn held(&self) -> Result<Vec<u8>, StoreError> {
        // Before the first look, so that nothing between a look and the wait is missed.
        let mut nudges = self.app.nudges.subscribe();
        let mut deadline = Instant::now() + HOLD_MAX;
        let mut gathering = false;
        loop {
            let look = self.look().await?;
            if look.is_done || Instant::now() >= deadline {
                return Ok(look.answer);
            }
            if look.has_text && !gathering {
                gathering = true;
                deadline = deadline.min(Instant::now() + GATHER_MAX);
            }
            let until = deadline.min(Instant::now() + LOOK_AGAIN_AFTER);
            moved(
                &mut nudges,
                &self.link.run.to_string(),
                look.is_closed,
                until,
            )
            .await;
        }
    }

    async fn look(&self) -> Result<Look, StoreError> {
        let LogLink {
            organization,
            run,
            phase,
            ..
        } = self.link;
        let log_phase = match phase {
            Phase::Plan => LogPhase::Plan,
            Phase::Apply => LogPhase::Apply,
        };
        let (offset, limit) = (self.window.log_offset, self.window.log_bytes_max);
        let slice =
            phase_logs::read(&self.app.store, organization, run, log_phase, offset, limit).await?;
        let is_at_end = offset + slice.bytes.len() as u64 >= slice.total;
        let is_complete = is_at_end && self.is_complete(slice.closed).await;
        let end = is_complete.then_some(slice.total);
        let answer = Frame::of(phase).answer(&self.window, &slice.bytes, end);
        Ok(Look {
            is_done: is_complete || !is_at_end || slice.bytes.len() >= GATHERED_BYTES,
            has_text: !slice.bytes.is_empty(),
            is_closed: slice.closed,
            answer,
        })
    }

    /// Whether nothing will follow. The log's end is told only when the phase is over for whoever asks
    /// next: the client asks at once, and sleeps when it is not.
    async fn is_complete(&self, is_closed: bool) -> bool {
        let review = self
            .app
            .views
            .review(self.link.organization, self.link.run)
            .await;
        match review {
            Ok(Some(review)) => {
                is_over(&review, self.link.phase) && (is_closed || ended_long_ago(&review))
            }
            Ok(None) => false,
            Err(error) => {
                tracing::warn!(error = %error, run.id = %self.link.run, "The end of a log could not be told");
                false
            }
        }
    }
}

fn ended_long_ago(review: &RunReview) -> bool {
    let ended = review.ended.as_ref().map(|end| end.at.as_second());
    ended.is_some_and(|at| clock::now().as_second() - at > CLOSED_AFTER_END_SECONDS)
}

/// Waits until the log of `run` may have grown or, once that is closed, until the read models moved.
async fn moved(
    nudges: &mut broadcast::Receiver<Nudge>,
    run: &str,
    is_closed: bool,
    until: Instant,
) {
    let matching = async {
        loop {
            match nudges.recv().await {
                Ok(nudge) if nudge.topic == Topic::Projected && is_closed => return,
                // An empty subject says that nudges may have been missed.
                Ok(nudge) if nudge.topic == Topic::Logs && [run, ""].contains(&&*nudge.subject) => {
                    return;
                }
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(_)) => return,
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    };
    // Running out of time is as good a reason to look again as a nudge.
    drop(tokio::time::timeout_at(until, matching).await);
}
