//! `/runner/v1`: what runners speak. The words are the `runner-protocol` room's; here they are
//! authenticated, resolved against what is on record, and handed on.
//!
//! A runner names no object, run or tenant: everything is taken from the attempt that its lease
//! token opens. What a report means is decided by the workflow, never here.

mod artifacts;
mod attempt;
mod errored_state;
mod extract;
mod failure;
mod inputs;
mod lease;
mod leases;
mod logs;
mod result;

use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post, put};
use axum::{Extension, Router};
use stackship_runner_protocol::LOG_APPEND_BYTES_MAX;
use tower_http::catch_panic::CatchPanicLayer;

use crate::reading::BytesMax;
use crate::{ApiError, App};
use failure::Failure;

/// Every route of this edge: method and path.
pub const ROUTES: &[(&str, &str)] = &[
    ("POST", "/runner/v1/leases"),
    ("POST", "/runner/v1/attempts/{attempt}/heartbeat"),
    ("GET", "/runner/v1/attempts/{attempt}/inputs/{name}"),
    ("PUT", "/runner/v1/attempts/{attempt}/artifacts/{kind}"),
    ("POST", "/runner/v1/attempts/{attempt}/logs"),
    ("POST", "/runner/v1/attempts/{attempt}/result"),
    ("POST", "/runner/v1/attempts/{attempt}/hand-back"),
];

/// The routes of this edge.
pub fn router() -> Router<App> {
    Router::new()
        .route("/runner/v1/leases", post(leases::lease))
        .route(
            "/runner/v1/attempts/{attempt}/heartbeat",
            post(attempt::heartbeat),
        )
        .route(
            "/runner/v1/attempts/{attempt}/inputs/{name}",
            get(inputs::input),
        )
        .route(
            "/runner/v1/attempts/{attempt}/artifacts/{kind}",
            put(artifacts::store),
        )
        .route(
            "/runner/v1/attempts/{attempt}/logs",
            post(logs::append).layer(Extension(BytesMax(LOG_APPEND_BYTES_MAX))),
        )
        .route("/runner/v1/attempts/{attempt}/result", post(result::report))
        .route(
            "/runner/v1/attempts/{attempt}/hand-back",
            post(attempt::hand_back),
        )
        .layer(CatchPanicLayer::custom(|_| {
            said(ApiError::Internal("a handler panicked".into()))
        }))
}

/// An error that came from elsewhere, in this edge's shape.
pub(crate) fn said(error: ApiError) -> Response {
    Failure::from(error).into_response()
}
