//! What a browser gets to see: pages that say where to go. There is no data in them, and they are the
//! same whoever asks.

use axum::Router;
use axum::http::HeaderName;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::IntoResponse;
use axum::routing::get;

use crate::App;

/// The routes, which need no permission.
pub const ROUTES: &[(&str, &str)] = &[("GET", "/")];

const FRONT: &str = "\
StackShip runs OpenTofu for teams. There are no pages here yet.

/v1                people and scripts; described in /v1/openapi.json
/api/v2            the tofu CLI
/healthz, /readyz  whether the server lives, and whether it can work

README.md of your installation's release says how to begin.
";

pub(crate) fn router() -> Router<App> {
    Router::new().route("/", get(async || page(FRONT)))
}

/// A page of plain text.
pub(crate) fn page<T>(text: T) -> impl IntoResponse
where
    T: IntoResponse,
{
    let headers: [(HeaderName, &str); 3] = [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, text)
}
