//! What a runner's request carries. A handler takes these after its credential, so that nobody
//! without one is told anything.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};

use super::failure::Failure;
use crate::{App, reading};

reading::extractors!(pub(super), Failure);

/// A body that is no document.
pub(super) struct Raw(pub(super) Bytes);

impl FromRequest<App> for Raw {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &App) -> Result<Self, Failure> {
        Ok(Self(reading::bytes(request).await?))
    }
}
