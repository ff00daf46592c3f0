//! Connections: how many, and how long one may be held by a peer that does not go on.
//!
//! Every wait for a peer has a bound here: for a request's head, for the next part of its body, and
//! for the peer to take the next part of an answer. What waits for us instead (a handler that thinks,
//! a long poll) is none of this room's business. HTTP/1.1 only: a connection is one request at a time.

mod connection;
mod draining;
mod pace;
mod patient;
mod places;
mod shares;
mod turning_away;

pub use draining::Draining;
pub(crate) use pace::has_cause;
pub use pace::{Paced, Stalled};
pub use places::AtHand;
pub use shares::{Account, Crowded};

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use places::Places;
use turning_away::TurningAway;

/// Open connections, unless the installation says otherwise.
pub const CONNECTIONS_MAX: usize = 512;
/// How long a connection may wait for a request, and for the rest of its head. Longer than common
/// proxies keep an idle connection (60 s), so that it is they who close it.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(75);
/// How long a body, or an answer that the peer has to take, may stand still.
pub const SILENCE_MAX: Duration = Duration::from_secs(30);
/// By how much a body, or what a peer takes of an answer, may be later than [`BODY_RATE_MIN`] has it.
pub const BODY_HEAD_START: Duration = Duration::from_mins(1);
/// The slowest that a body may come, and that an answer may be taken, in bytes a second.
pub const BODY_RATE_MIN: u64 = 1024;
/// How long the rest of a refused request is taken in, so that its sender gets to read the answer.
pub const LINGER_TIME_MAX: Duration = Duration::from_secs(30);
/// After the machine could not accept a connection, mostly for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// How much a peer may ask of this process before it has said anything.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Open connections. When all are taken, a newcomer gets the place of the one that has waited
    /// longest for a request; where none waits, it waits itself. No address and no credential gets all
    /// of them: their shares are parts of this number.
    pub connections_max: usize,
    /// See [`HEAD_TIME_MAX`].
    pub head_time_max: Duration,
    /// See [`SILENCE_MAX`].
    pub silence_max: Duration,
    /// See [`BODY_HEAD_START`].
    pub body_head_start: Duration,
    /// See [`BODY_RATE_MIN`].
    pub body_rate_min: u64,
    /// See [`LINGER_TIME_MAX`].
    pub linger_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: CONNECTIONS_MAX,
            head_time_max: HEAD_TIME_MAX,
            silence_max: SILENCE_MAX,
            body_head_start: BODY_HEAD_START,
            body_rate_min: BODY_RATE_MIN,
            linger_time_max: LINGER_TIME_MAX,
        }
    }
}

/// Serves until `stop`, then lets the requests that have begun come to their end. Those that wait for
/// something to happen are told ([`Draining`]) and answer at once.
pub async fn serve(listener: TcpListener, router: Router, limits: Limits, stop: CancellationToken) {
    let router = router.layer(Extension(Draining(stop.clone())));
    let places = Places::new(limits.connections_max, stop.clone());
    let (limits, tasks) = (Arc::new(limits), TaskTracker::new());
    let turning_away = TurningAway::default();
    loop {
        let (stream, peer) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    pause_after(&error).await;
                    continue;
                }
            },
        };
        let place = tokio::select! {
            () = stop.cancelled() => break,
            place = places.take(peer.ip()) => place,
        };
        let Some(place) = place else {
            turning_away.turn_away(stream, &tasks, &stop);
            continue;
        };
        send_at_once(&stream);
        tasks.spawn(connection::attend(
            stream,
            place,
            router.clone(),
            Arc::clone(&limits),
        ));
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
}

/// Answers are written in parts; without this each would wait for the last one's acknowledgement.
fn send_at_once(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "A connection cannot be told to send at once");
    }
}

async fn pause_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    // The peer was gone before it was accepted.
    if matches!(
        error.kind(),
        ConnectionRefused | ConnectionAborted | ConnectionReset
    ) {
        return;
    }
    tracing::error!(%error, "No connection can be accepted");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
