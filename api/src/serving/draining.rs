//! A server that is going away answers what it could hold for long.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio_util::sync::CancellationToken;

/// Ends when the server is going away: held requests are answered then.
#[derive(Debug, Clone, Default)]
pub struct Draining(pub CancellationToken);

impl<S: Sync> FromRequestParts<S> for Draining {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}
