//! What a request carries: JSON bodies and query parameters, read strictly.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use stackship_store::records::{PAGE_MAX, Page};
use utoipa::IntoParams;

use crate::{ApiError, App, JSON_BYTES_MAX};

/// A JSON body. Unknown fields, wrong types and missing fields are refused with the field's name;
/// no body at all counts as `{}`.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, app)
            .await
            .map_err(|rejection| unreadable_body(rejection.status()))?;
        let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        parse(bytes).map(Self)
    }
}

fn unreadable_body(status: StatusCode) -> ApiError {
    if status == StatusCode::PAYLOAD_TOO_LARGE {
        return ApiError::Invalid {
            status,
            code: "BODY_TOO_LARGE",
            field: String::new(),
            message: format!("a JSON body may have at most {JSON_BYTES_MAX} bytes"),
        };
    }
    ApiError::unreadable(
        "BODY_INCOMPLETE",
        "",
        "the body ended before it was complete",
    )
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    // An array would be taken for the fields in their order.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(ApiError::unreadable(
            "BODY_INVALID",
            "",
            "the body is a JSON object",
        ));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = match error.path().to_string() {
            // The whole, or a place where the text is no JSON.
            root if root == "." || root == "?" => named_field(&error.inner().to_string()),
            path => path,
        };
        ApiError::unreadable("BODY_INVALID", &field, message(&field, error.inner()))
    })?;
    json.end()
        .map_err(|error| ApiError::unreadable("BODY_INVALID", "", error.to_string()))?;
    Ok(value)
}

fn message(field: &str, error: &serde_json::Error) -> String {
    let text = error.to_string();
    if field.is_empty() || text.contains(&format!("`{field}`")) {
        text
    } else {
        format!("`{field}`: {text}")
    }
}

/// The field that a missing-field or unknown-field error names; those have no path of their own.
fn named_field(text: &str) -> String {
    let names_field = text.starts_with("missing field") || text.starts_with("unknown field");
    let name = names_field.then(|| text.split('`').nth(1)).flatten();
    name.unwrap_or_default().to_owned()
}

/// Query parameters; unknown ones are refused.
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|query| Self(query.0))
            .map_err(|rejection| {
                let cause = std::error::Error::source(&rejection)
                    .map_or_else(|| rejection.to_string(), ToString::to_string);
                let (field, why) = cause.split_once(": ").unwrap_or(("", &cause));
                let field = match named_field(why) {
                    named if named.is_empty() => field.to_owned(),
                    named => named,
                };
                ApiError::unreadable(
                    "QUERY_INVALID",
                    &field,
                    format!("query parameters: {cause}"),
                )
            })
    }
}

/// Which part of a list is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PageQuery {
    /// The `next_cursor` of the page before.
    pub(super) cursor: Option<String>,
    /// How many entries at most: 1 to 100, 100 when absent.
    #[param(minimum = 1, maximum = 100)]
    pub(super) limit: Option<u16>,
}

impl PageQuery {
    /// The page after a cursor that `is_own` recognizes.
    pub(super) fn page(&self, is_own: impl Fn(&str) -> bool) -> Result<Page, ApiError> {
        if self.cursor.as_deref().is_some_and(|cursor| !is_own(cursor)) {
            return Err(ApiError::unreadable(
                "LIST_CURSOR_INVALID",
                "cursor",
                "`cursor` does not belong to this list; begin again without one",
            ));
        }
        Ok(Page::new(self.cursor.clone(), limit(self.limit)?))
    }

    /// The cursor of the next page, when this one is full.
    pub(super) fn next<T>(&self, rows: &[T], key: impl Fn(&T) -> String) -> Option<String> {
        let wanted = usize::from(self.limit.unwrap_or(PAGE_MAX));
        rows.last().filter(|_| rows.len() >= wanted).map(key)
    }
}

/// A page's size.
pub(super) fn limit(asked: Option<u16>) -> Result<u16, ApiError> {
    match asked {
        None => Ok(PAGE_MAX),
        Some(limit) if (1..=PAGE_MAX).contains(&limit) => Ok(limit),
        Some(_) => Err(ApiError::unreadable(
            "LIST_LIMIT_INVALID",
            "limit",
            "`limit` is 1 to 100",
        )),
    }
}

/// A text of `min` to `max` characters without control characters.
pub(super) fn plain_text(
    code: &'static str,
    field: &str,
    text: &str,
    bounds: std::ops::RangeInclusive<usize>,
) -> Result<(), ApiError> {
    if bounds.contains(&text.chars().count()) && !text.chars().any(char::is_control) {
        return Ok(());
    }
    let (min, max) = bounds.into_inner();
    let message = format!("`{field}` has {min} to {max} characters and no control characters");
    Err(ApiError::refused(code, field, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[serde(rename = "name")]
        _name: String,
        #[serde(rename = "inner", default)]
        _inner: Inner,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[serde(rename = "count", default)]
        _count: u8,
    }

    fn field(json: &str) -> String {
        match parse::<Sample>(json.as_bytes()) {
            Err(ApiError::Invalid { status, field, .. }) => {
                assert_eq!(status, StatusCode::BAD_REQUEST);
                field
            }
            other => panic!("{json} gave {other:?}"),
        }
    }

    #[test]
    fn an_error_names_the_field() {
        assert_eq!(field("{}"), "name");
        assert_eq!(field(r#"{"name":1}"#), "name");
        assert_eq!(field(r#"{"name":"a","nmae":"b"}"#), "nmae");
        assert_eq!(
            field(r#"{"name":"a","inner":{"count":300}}"#),
            "inner.count"
        );
        assert_eq!(field(r#"{"name":"a"} {}"#), "");
        assert_eq!(field("{"), "");
        assert_eq!(field(r#"["a"]"#), "", "the fields without their names");
    }
}
