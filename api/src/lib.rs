//! The edges: parse, authenticate, authorize, hand on, answer.
//!
//! `/v1` is StackShip's own API, `/api/v2` what the OpenTofu CLI speaks, `/runner/v1` what runners
//! speak. Each edge has its own wire types and none knows another's. No SQL and no rules enter here:
//! records are asked of the `store` room, decisions of `workflow`, reads of `projections`.

pub mod app;
mod artifacts;
pub mod auth;
pub mod error;
mod framing;
pub mod front;
mod head;
pub mod health;
mod reading;
pub mod request_id;
pub mod runner_v1;
pub mod serving;
pub mod signed_path;
pub mod v1;
pub mod v2;

pub use app::{APPROVAL_SECONDS_DEFAULT, ApiSettings, App, AppInner, Platform};
pub use error::ApiError;
pub use head::BELIEVED_FOR;
pub use v1::openapi_json;

use axum::http::Uri;
use axum::response::{IntoResponse as _, Response};
use axum::{Router, middleware};
use tower_http::catch_panic::CatchPanicLayer;

use v2::V2Error;

/// The most bytes of a JSON request body. Routes that take more say so themselves.
pub const JSON_BYTES_MAX: usize = 1024 * 1024;

/// Every edge behind one router. A panic in a handler costs only its own request.
pub fn router(app: App) -> Router {
    Router::new()
        .merge(front::router())
        .merge(health::router())
        .merge(v1::router(app.clone()))
        .merge(v2::router())
        .merge(runner_v1::router())
        .fallback(no_such_route)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn(head::judged_again))
        .layer(CatchPanicLayer::custom(|_| error::internal()))
        .layer(middleware::from_fn(framing::check))
        .layer(middleware::from_fn(request_id::assign))
        .with_state(app)
}

async fn no_such_route(uri: Uri) -> Response {
    let path = uri.path().to_owned();
    said_by_its_edge(&uri, ApiError::NoSuchRoute { path })
}

async fn no_such_method(uri: Uri) -> Response {
    said_by_its_edge(&uri, ApiError::NoSuchMethod)
}

/// An error that no route has said, in the shape of the edge whose path it was.
fn said_by_its_edge(uri: &Uri, error: ApiError) -> Response {
    let path = uri.path();
    if path.starts_with("/runner/") {
        runner_v1::said(error)
    } else if ["/api/", "/app/", "/.well-known/"]
        .iter()
        .any(|beginning| path.starts_with(beginning))
    {
        V2Error::from(error).into_response()
    } else {
        error.into_response()
    }
}
