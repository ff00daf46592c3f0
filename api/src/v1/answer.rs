//! The shapes that every answer has.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// One thing.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Data<T> {
    /// The thing.
    pub(super) data: T,
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct List<T> {
    /// The entries.
    pub(super) data: Vec<T>,
    /// About the list itself.
    pub(super) meta: Meta,
}

/// About a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Meta {
    /// Where in the list this page stands.
    page: PageMeta,
}

/// Where in a list a page stands.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PageMeta {
    /// What to pass as `cursor` for the next page; null on the last one.
    next_cursor: Option<String>,
}

/// What an error looks like. Only the documentation needs it as a type.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what the error room writes")]
pub(super) struct ErrorBody {
    /// The error.
    error: ErrorDetail,
}

/// One error.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what the error room writes")]
pub(super) struct ErrorDetail {
    /// Stable, upper snake case.
    code: String,
    /// For people: what is wrong and what to do.
    message: String,
    /// For programs: what the message is about.
    #[schema(value_type = Object)]
    details: serde_json::Value,
}

impl<T> List<T> {
    pub(super) fn new(data: Vec<T>, next_cursor: Option<String>) -> Self {
        let page = PageMeta { next_cursor };
        Self {
            data,
            meta: Meta { page },
        }
    }
}

impl<T> From<T> for Data<T> {
    fn from(data: T) -> Self {
        Self { data }
    }
}

impl<T: Serialize> IntoResponse for Data<T> {
    fn into_response(self) -> Response {
        Json(self).into_response()
    }
}

impl<T: Serialize> IntoResponse for List<T> {
    fn into_response(self) -> Response {
        Json(self).into_response()
    }
}

/// A thing that was just created.
pub(super) fn created<T>(thing: T) -> (StatusCode, Data<T>) {
    (StatusCode::CREATED, Data::from(thing))
}
