//! One connection: its requests, its end, and what is left on the line after an early answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tower::ServiceExt as _;

use super::Limits;
use super::pace::Paced;
use super::patient::Patient;
use super::places::{Busy, Place};

/// How much of a refused request is taken in at a time, in bytes.
const LINGER_BUFFER_BYTES: usize = 16 * 1024;

/// Serves one connection to its end.
pub(super) async fn attend(stream: TcpStream, place: Place, router: Router, limits: Arc<Limits>) {
    let seat = Arc::clone(&place.seat);
    let io = TokioIo::new(Patient::new(stream, &limits, Arc::clone(&seat)));
    let paces = Arc::clone(&limits);
    let service = service_fn(move |request: Request<Incoming>| {
        let (router, busy) = (router.clone(), place.busy());
        let mut request = request.map(|body| Paced::new(body, &paces));
        request.extensions_mut().insert(place.at_hand());
        Box::pin(async move { Ok::<_, Infallible>(answer(router, request, busy).await) })
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time_max)
        .serve_connection(io, service);
    let mut is_leaving = false;
    let ended = loop {
        tokio::select! {
            ended = &mut connection => break ended,
            () = seat.leave.cancelled(), if !is_leaving => {
                if seat.is_idle() {
                    return;
                }
                is_leaving = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    match ended {
        Ok(()) => {
            let parts = connection.into_parts();
            let linger = linger(parts.io.into_inner().into_inner());
            // The service holds the place, and this connection still is one.
            tokio::select! {
                _ = tokio::time::timeout(limits.linger_time_max, linger) => {}
                () = seat.leave.cancelled() => {}
            }
            drop(parts.service);
        }
        Err(error) => tracing::debug!(%error, "A connection broke"),
    }
}

async fn answer(router: Router, request: Request<Paced<Incoming>>, busy: Busy) -> Response<Held> {
    let response = match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    response.map(|body| Held { body, _busy: busy })
}

/// Takes in what still comes after the last answer, which is out. To close the line on a peer that is
/// sending would reset it, and the answer would be lost with it.
pub(super) async fn linger(mut stream: TcpStream) {
    let mut rest = vec![0; LINGER_BUFFER_BYTES];
    while matches!(stream.read(&mut rest).await, Ok(1..)) {}
}

/// An answer's body; while it lasts, its request is at hand.
struct Held {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
