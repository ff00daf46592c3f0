//! A sandbox's way to the control plane: a door for the few requests that OpenTofu makes in this
//! phase, and for nothing else.
//!
//! The run's token is added here and never lies in the sandbox. Requests are recognized by method and
//! path; URLs for transfers are the ones that the control plane itself named in an answer to this run.
//! Bodies stream both ways in constant memory; a state that passes is hashed on its way.

mod forward;
mod rules;

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use stackship_runner_protocol::{Lease, Secret, SeenState};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use crate::control_plane::{ControlPlane, Hold};
use rules::Rules;

/// Connections of one sandbox at the same time.
const CONNECTIONS_MAX: usize = 32;
/// From the beginning of a request to the end of its head.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The gateway of one sandbox.
pub(crate) struct Gateway {
    control_plane: Arc<ControlPlane>,
    hold: Hold,
    run_token: Secret,
    /// States on their way up.
    uploads: TaskTracker,
    rules: Mutex<Rules>,
    seen: Mutex<Option<SeenState>>,
}

impl Gateway {
    pub(crate) fn new(control_plane: Arc<ControlPlane>, lease: &Lease) -> Self {
        Self {
            control_plane,
            hold: Hold::of(lease),
            run_token: lease.run_token.clone(),
            uploads: TaskTracker::new(),
            rules: Mutex::new(Rules::of(lease)),
            seen: Mutex::default(),
        }
    }

    /// The newest state that the control plane took.
    pub(crate) fn seen(&self) -> Option<SeenState> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Waits for the states that had left the sandbox completely when it ended: what OpenTofu said
    /// that it made is brought home, whatever became of it.
    pub(crate) async fn finish(&self) {
        self.uploads.close();
        let finished = tokio::time::timeout(self.hold.lease_time(), self.uploads.wait());
        if finished.await.is_err() {
            tracing::warn!(attempt.id = %self.hold.attempt, "A state that was on its way did not arrive in time");
        }
    }

    /// Serves until the future is dropped, which also ends all connections.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        loop {
            let place = Arc::clone(&places)
                .acquire_owned()
                .await
                .expect("the semaphore is never closed");
            let accepted = loop {
                tokio::select! {
                    accepted = listener.accept() => break accepted,
                    Some(_ended) = connections.join_next() => {}
                }
            };
            match accepted {
                Ok((client, _)) => {
                    let gateway = Arc::clone(&self);
                    connections.spawn(async move {
                        gateway.connection(client).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "The listener of a gateway cannot accept");
                    return;
                }
            }
        }
    }

    async fn connection(self: Arc<Self>, client: TcpStream) {
        // Answers are written in parts; without this each would wait for the last one's acknowledgement.
        if let Err(error) = client.set_nodelay(true) {
            tracing::debug!(%error, "A connection to a gateway cannot be told to send at once");
        }
        let answer = service_fn(|request| {
            let gateway = Arc::clone(&self);
            async move { Ok::<_, Infallible>(gateway.answer(request).await) }
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME_MAX)
            .max_buf_size(HEAD_BYTES_MAX);
        if let Err(error) = builder.serve_connection(TokioIo::new(client), answer).await {
            tracing::debug!(%error, "A connection to a gateway broke");
        }
    }

    fn rules(&self) -> std::sync::MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
