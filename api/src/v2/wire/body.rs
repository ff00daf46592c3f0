//! Bodies in both directions.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::App;
use crate::v2::error::V2Error;

/// What documents of this edge are.
pub const MEDIA_TYPE: &str = "application/vnd.api+json";

/// A request's document. Its media type is not looked at: the client's own varies by call.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = V2Error;

    async fn from_request(request: Request, app: &App) -> Result<Self, V2Error> {
        let bytes = Bytes::from_request(request, app)
            .await
            .map_err(|rejection| {
                V2Error::new(rejection.status(), "unreadable body", rejection.body_text())
            })?;
        let parsed = serde_json::from_slice(&bytes).map_err(|error| {
            let detail = format!("The request is not the document this call takes: {error}.");
            V2Error::new(StatusCode::BAD_REQUEST, "invalid document", detail)
        })?;
        Ok(Self(parsed))
    }
}

/// An answer with a document.
pub fn respond<T: Serialize>(status: StatusCode, document: &T) -> Response {
    match serde_json::to_vec(document) {
        Ok(bytes) => (status, [(CONTENT_TYPE, MEDIA_TYPE)], bytes).into_response(),
        Err(error) => V2Error::internal(error).into_response(),
    }
}
