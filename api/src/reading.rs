//! Reading what a request carries: body, query and path. Each edge has extractors of its own made of
//! these, so that whatever cannot be read is refused in that edge's own shape, with the field's name
//! and what to do, and never in the words of the libraries behind it.

mod wording;

use std::error::Error;

use axum::body::{Bytes, HttpBody as _};
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts as _, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode, Uri};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::serving::{Stalled, has_cause};
use crate::{ApiError, JSON_BYTES_MAX};

/// Makes `Body`, `Query` and `Path` for an edge whose errors are made from [`ApiError`].
macro_rules! extractors {
    ($visibility:vis, $error:ty) => {
        /// A JSON body. What does not fit is refused with the field's name; no body at all counts as
        /// `{}`.
        $visibility struct Body<T>(pub T);

        impl<T: serde::de::DeserializeOwned> axum::extract::FromRequest<crate::App> for Body<T> {
            type Rejection = $error;

            async fn from_request(
                request: axum::extract::Request,
                _: &crate::App,
            ) -> Result<Self, $error> {
                crate::reading::says_json(&request)?;
                let bytes = crate::reading::bytes(request).await?;
                Ok(Self(crate::reading::document(&bytes)?))
            }
        }

        /// Query parameters.
        $visibility struct Query<T>(pub T);

        impl<T: serde::de::DeserializeOwned> axum::extract::FromRequestParts<crate::App> for Query<T> {
            type Rejection = $error;

            async fn from_request_parts(
                parts: &mut axum::http::request::Parts,
                _: &crate::App,
            ) -> Result<Self, $error> {
                Ok(Self(crate::reading::query(&parts.uri)?))
            }
        }

        /// Path parameters.
        $visibility struct Path<T>(pub T);

        impl<T: serde::de::DeserializeOwned + Send> axum::extract::FromRequestParts<crate::App> for Path<T> {
            type Rejection = $error;

            async fn from_request_parts(
                parts: &mut axum::http::request::Parts,
                _: &crate::App,
            ) -> Result<Self, $error> {
                Ok(Self(crate::reading::path(parts).await?))
            }
        }
    };
}

pub(crate) use extractors;

/// What a body that is JSON may be called, besides `…+json`.
const JSON_KINDS: &[&str] = &["application/json", "application/x-www-form-urlencoded"];

/// The most bytes that a body of its route may have; [`JSON_BYTES_MAX`] where a route says nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BytesMax(pub(crate) usize);

/// Whether a body may be a document of ours by what its head says of it. Who says nothing means JSON,
/// and so does `curl -d`, which says that it sends a form unless it is told otherwise.
pub(crate) fn says_json(request: &Request) -> Result<(), ApiError> {
    let said = |name| {
        let value = request.headers().get(name);
        value.map(|value| String::from_utf8_lossy(value.as_bytes()).to_lowercase())
    };
    let has_body = request.body().size_hint().exact() != Some(0);
    let is_json = said(CONTENT_TYPE).is_none_or(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.is_empty() || JSON_KINDS.contains(&kind) || kind.ends_with("+json")
    });
    if has_body && !is_json {
        let message = "the body is JSON: send it with `Content-Type: application/json`";
        return Err(unsupported(&CONTENT_TYPE, message));
    }
    if has_body && said(CONTENT_ENCODING).is_some_and(|coding| coding.trim() != "identity") {
        let message = "the body is taken as it is, neither packed nor encoded: send it without `Content-Encoding`";
        return Err(unsupported(&CONTENT_ENCODING, message));
    }
    Ok(())
}

fn unsupported(header: &HeaderName, message: &str) -> ApiError {
    ApiError::Invalid {
        status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
        code: "BODY_TYPE_UNSUPPORTED",
        field: header.to_string(),
        message: message.to_owned(),
    }
}

/// A whole body, as long as its route lets one be. One that announces more is refused unread.
pub(crate) async fn bytes(request: Request) -> Result<Bytes, ApiError> {
    let route = request.extensions().get::<BytesMax>();
    let bytes_max = route.map_or(JSON_BYTES_MAX, |most| most.0);
    let body = request.into_body();
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large(bytes_max as u64));
    }
    match Limited::new(body, bytes_max).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(bytes_max as u64)),
        Err(error) => Err(unread(&*error)),
    }
}

/// A body with more bytes than it may have.
pub(crate) fn too_large(bytes_max: u64) -> ApiError {
    ApiError::Invalid {
        status: StatusCode::PAYLOAD_TOO_LARGE,
        code: "BODY_TOO_LARGE",
        field: String::new(),
        message: format!("the body may have at most {bytes_max} bytes"),
    }
}

/// A body that is only read once the head has been looked at.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the body is withheld")]
pub(crate) struct Withheld;

/// A body that could not be read to its end, for this reason.
pub(crate) fn unread(cause: &(dyn Error + 'static)) -> ApiError {
    if has_cause::<Withheld>(cause) {
        return ApiError::Repeated;
    }
    if Stalled::is_behind(cause) {
        return ApiError::Invalid {
            status: StatusCode::REQUEST_TIMEOUT,
            code: "BODY_TOO_SLOW",
            field: String::new(),
            message: "the body stood still or came too slowly; send the request again".to_owned(),
        };
    }
    ApiError::unreadable(
        "BODY_INCOMPLETE",
        "",
        "the body ended before it was complete; send it again",
    )
}

/// A body as the document it must be.
pub(crate) fn document<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
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
        let cause = error.inner().to_string();
        let field = match error.path().to_string() {
            // The whole, or a place where the text is no JSON.
            root if root == "." || root == "?" => wording::named_field(&cause).to_owned(),
            path => path,
        };
        ApiError::unreadable("BODY_INVALID", &field, wording::about(&field, &cause))
    })?;
    json.end()
        .map_err(|error| ApiError::unreadable("BODY_INVALID", "", error.to_string()))?;
    Ok(value)
}

/// The query of a request.
pub(crate) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, ApiError> {
    let read = axum::extract::Query::try_from_uri(uri);
    read.map(|query| query.0).map_err(|rejection| {
        let cause = rejection
            .source()
            .map_or_else(|| rejection.to_string(), ToString::to_string);
        let (field, why) = cause.split_once(": ").unwrap_or(("", &cause));
        let field = match wording::named_field(why) {
            "" => field,
            named => named,
        };
        let message = format!("query parameters: {}", wording::plain(&cause));
        ApiError::unreadable("QUERY_INVALID", field, message)
    })
}

/// The parameters of a request's path.
pub(crate) async fn path<T: DeserializeOwned + Send>(parts: &mut Parts) -> Result<T, ApiError> {
    let read = axum::extract::Path::<T>::from_request_parts(parts, &()).await;
    read.map(|path| path.0).map_err(|rejection| {
        let (field, why) = match rejection {
            PathRejection::FailedToDeserializePathParams(error) => match error.into_kind() {
                ErrorKind::InvalidUtf8InPathParam { key } => (key, "is not UTF-8".to_owned()),
                ErrorKind::DeserializeError { key, message, .. } => (key, wording::plain(&message)),
                ErrorKind::ParseErrorAtKey { key, .. } => (key, "cannot be read".to_owned()),
                _ => (String::new(), "a parameter cannot be read".to_owned()),
            },
            _ => (String::new(), "a parameter cannot be read".to_owned()),
        };
        let message = format!("path: `{field}` {why}; take ids and names as an answer gave them");
        ApiError::unreadable("PATH_INVALID", &field, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

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

    #[test]
    fn a_body_that_says_it_is_something_else_is_refused_by_its_head() {
        let says = |headers: &[(HeaderName, &str)], body: &'static str| {
            let mut request = Request::builder();
            for (name, value) in headers {
                request = request.header(name, *value);
            }
            let request = request.body(axum::body::Body::from(body)).unwrap();
            says_json(&request).map_err(|error| error.answer().status)
        };
        let json = "{}";
        for kind in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.api+json",
            "application/x-www-form-urlencoded",
            "",
        ] {
            assert_eq!(says(&[(CONTENT_TYPE, kind)], json), Ok(()), "{kind}");
        }
        assert_eq!(says(&[], json), Ok(()));
        let refused = Err(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        for kind in [
            "text/plain",
            "application/gzip",
            "multipart/form-data; boundary=x",
        ] {
            assert_eq!(says(&[(CONTENT_TYPE, kind)], json), refused, "{kind}");
            assert_eq!(says(&[(CONTENT_TYPE, kind)], ""), Ok(()), "no body is none");
        }
        assert_eq!(says(&[(CONTENT_ENCODING, "gzip")], json), refused);
        assert_eq!(says(&[(CONTENT_ENCODING, "identity")], json), Ok(()));
    }

    fn refused(json: &str) -> (String, String) {
        match document::<Sample>(json.as_bytes()) {
            Err(ApiError::Invalid {
                status,
                field,
                message,
                ..
            }) => {
                assert_eq!(status, StatusCode::BAD_REQUEST);
                (field, message)
            }
            other => panic!("{json} gave {other:?}"),
        }
    }

    #[test]
    fn an_error_names_the_field() {
        let field = |json| refused(json).0;
        assert_eq!(field("{}"), "name");
        assert_eq!(field(""), "name");
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

    #[test]
    fn an_error_does_not_name_our_types() {
        let (field, message) = refused(r#"{"name":"a","inner":3}"#);
        assert_eq!(field, "inner");
        assert!(message.contains("expected an object"), "{message}");
        assert!(!message.contains("Inner"), "{message}");
    }
}
