//! How this edge says no. A runner acts on the status alone; the text is for whoever reads its log.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use stackship_projections::ProjectionError;
use stackship_store::StoreError;
use stackship_store::objects::ObjectError;
use stackship_workflow::StepError;

use crate::ApiError;
use crate::serving::Stalled;

/// Why a runner's request was not done.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// No credential, or one that opens nothing.
    #[error("the credential opens nothing here")]
    Unauthenticated,
    /// There is no such thing for this attempt.
    #[error("there is nothing of this name for this attempt")]
    NotFound,
    /// The lease is over: whatever the runner does now counts for nothing.
    #[error("the lease is over")]
    Lost,
    /// The request does not fit the attempt.
    #[error("{0}")]
    Invalid(&'static str),
    /// The body is larger than its kind may be.
    #[error("the body is larger than {0} bytes")]
    TooLarge(u64),
    /// A log chunk is not the next one.
    #[error("the next sequence is {0}")]
    Gap(u64),
    /// The attempt can no longer be handed back.
    #[error("the attempt can no longer be handed back")]
    Started,
    /// The request cannot be read, or no route takes it.
    #[error(transparent)]
    Unfit(#[from] ApiError),
    /// A failure of ours.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A failure of ours.
    #[error(transparent)]
    Step(#[from] StepError),
    /// A failure of ours.
    #[error(transparent)]
    Projection(#[from] ProjectionError),
    /// What is on record does not fit together.
    #[error("attempt {attempt} cannot be leased: {what} is not on record")]
    Incomplete {
        /// Which attempt.
        attempt: stackship_domain::ids::AttemptId,
        /// What is missing.
        what: &'static str,
    },
}

impl Failure {
    fn status(&self) -> StatusCode {
        match self {
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Lost => StatusCode::GONE,
            Self::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Gap(_) | Self::Started => StatusCode::CONFLICT,
            Self::Unfit(error) => error.answer().status,
            Self::Store(StoreError::Unavailable(_)) => StatusCode::SERVICE_UNAVAILABLE,
            // The runner's own connection broke, or stood still, while it sent a body.
            Self::Store(StoreError::Object(ObjectError::Source(source))) => {
                if Stalled::is_behind(source) {
                    StatusCode::REQUEST_TIMEOUT
                } else {
                    StatusCode::BAD_REQUEST
                }
            }
            Self::Store(_) | Self::Step(_) | Self::Projection(_) | Self::Incomplete { .. } => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = self.status();
        let message = if status.is_server_error() {
            tracing::error!(error = %self, cause = ?std::error::Error::source(&self).map(ToString::to_string),
                "A request of a runner failed");
            "the control plane failed; try again".to_owned()
        } else {
            self.to_string()
        };
        (status, Json(serde_json::json!({ "message": message }))).into_response()
    }
}
