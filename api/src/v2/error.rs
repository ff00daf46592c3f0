//! Errors as the client prints them: `title`, a blank line, `detail`. It adds a paragraph of its own
//! about network problems, so a detail must read as an answer and not as a fault.
//!
//! What the client does with a status decides which one is used: the bodies of 401, 404 and a 409 of a
//! lock are never shown, and anything from 500 on is tried again for minutes.

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::wire::MEDIA_TYPE;
use crate::ApiError;
use crate::auth::Denied;

/// Why a request of the client was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct V2Error {
    /// The HTTP status.
    pub status: StatusCode,
    /// A stable word for programs.
    pub code: String,
    /// A few words.
    pub title: String,
    /// What to do.
    pub detail: String,
    /// After how many seconds to try again; the client does so by itself.
    pub retry_after: Option<u64>,
}

impl V2Error {
    /// An answer in a few words and a sentence. The code is the title with underscores.
    pub fn new(status: StatusCode, title: &str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code: title.replace(' ', "_"),
            title: title.to_owned(),
            detail: detail.into(),
            retry_after: None,
        }
    }

    /// There is no such thing, or the caller may not know of it.
    pub fn not_found(kind: &'static str) -> Self {
        Denied::not_found(kind).into()
    }

    /// A request that is understood and refused.
    pub fn refused(title: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, title, detail)
    }

    /// A caller who may know of the thing, but not do this.
    pub fn forbidden(title: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, title, detail)
    }

    /// A request that does not fit how things stand.
    pub fn conflict(title: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, title, detail)
    }

    /// A failure of ours.
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        ApiError::Internal(cause.into()).into()
    }
}

impl From<ApiError> for V2Error {
    fn from(error: ApiError) -> Self {
        let answer = error.answer();
        let code = answer.code.to_lowercase();
        Self {
            status: answer.status,
            title: code.replace('_', " "),
            code,
            detail: sentence(&answer.message),
            retry_after: answer.retry_after,
        }
    }
}

impl From<Denied> for V2Error {
    fn from(denied: Denied) -> Self {
        // A run's token where only people go: it learns no more than a stranger would.
        match denied {
            Denied::RunToken => Self::not_found("resource"),
            other => ApiError::from(other).into(),
        }
    }
}

macro_rules! through_api_error {
    ($($source:ty),+ $(,)?) => { $(
        impl From<$source> for V2Error {
            fn from(error: $source) -> Self {
                ApiError::from(error).into()
            }
        }
    )+ };
}

through_api_error!(
    stackship_store::StoreError,
    stackship_projections::ProjectionError,
    stackship_projections::PageError,
    stackship_workflow::StepError,
    stackship_workflow::create::CreateError,
    stackship_store::log::CommandError<stackship_domain::run::Refusal>,
);

/// A message as a sentence: it stands alone on the terminal.
fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let Some(first) = letters.next() else {
        return String::new();
    };
    let end = if message.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    format!("{}{}{end}", first.to_uppercase(), letters.as_str())
}

impl IntoResponse for V2Error {
    fn into_response(self) -> Response {
        let error = json!({
            "status": self.status.as_str(),
            "code": self.code,
            "title": self.title,
            "detail": self.detail,
        });
        let body = json!({"errors": [error]}).to_string();
        let retry_after = self.retry_after;
        let retry_after = retry_after.map(|seconds| [(RETRY_AFTER, seconds.to_string())]);
        let content_type = [(CONTENT_TYPE, MEDIA_TYPE)];
        (self.status, content_type, retry_after, body).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_becomes_a_sentence() {
        assert_eq!(sentence("the run moved on"), "The run moved on.");
        assert_eq!(sentence("`a` is taken."), "`a` is taken.");
        assert_eq!(sentence(""), "");
    }

    #[test]
    fn a_runs_token_learns_no_more_than_a_stranger() {
        let stranger = V2Error::from(Denied::not_found("resource"));
        assert_eq!(V2Error::from(Denied::RunToken), stranger);
        assert_eq!(stranger.status, StatusCode::NOT_FOUND);
    }
}
