//! What the OpenTofu CLI speaks.

use axum::Router;

use crate::App;

/// The routes.
pub fn router() -> Router<App> {
    Router::new()
}
