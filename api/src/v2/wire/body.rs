//! Bodies in both directions.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::reading;
use crate::v2::error::V2Error;

/// What documents of this edge are.
pub const MEDIA_TYPE: &str = "application/vnd.api+json";

reading::extractors!(pub, V2Error);

/// An answer with a document.
pub fn respond<T: Serialize>(status: StatusCode, document: &T) -> Response {
    match serde_json::to_vec(document) {
        Ok(bytes) => (status, [(CONTENT_TYPE, MEDIA_TYPE)], bytes).into_response(),
        Err(error) => V2Error::internal(error).into_response(),
    }
}
