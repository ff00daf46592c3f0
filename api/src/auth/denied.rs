//! Why a caller does not get through.

use axum::response::{IntoResponse, Response};
use stackship_domain::Permission;
use stackship_store::StoreError;

use crate::ApiError;
use crate::serving::Crowded;

/// Why a caller does not get through. Every edge says it in its own words; `/v1` says it through
/// [`ApiError`].
#[derive(Debug, thiserror::Error)]
pub enum Denied {
    /// No credential, or none that is live.
    #[error("present a live token as `Authorization: Bearer …`")]
    Unauthenticated,
    /// A run's credential where only people and service accounts may go.
    #[error("a run's token opens only what its own phase needs")]
    RunToken,
    /// There is no such thing, or the caller may not know of it.
    #[error("there is no such {kind}, or it is not visible to you")]
    NotFound {
        /// What was looked for.
        kind: &'static str,
    },
    /// The caller may know of the thing, but not do this.
    #[error("this needs the permission `{permission}`; ask an owner of the organization for it")]
    Forbidden {
        /// What is missing.
        permission: Permission,
    },
    /// Whoever is behind the token has not shown lately who they are.
    #[error(
        "this needs your password again: `POST /v1/user/step-up`, then send the request once more"
    )]
    StepUp,
    /// The caller, or the organization, has as many requests at hand as one may have.
    #[error(
        "too many of your requests are at hand at once; wait for some of them to end, then send this one again"
    )]
    Crowded,
    /// A failure of ours.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Denied {
    /// There is no such artifact, or it may not be downloaded, or it is not what was recorded.
    pub const ARTIFACT: Self = Self::not_found("artifact");

    /// There is no such thing, or the caller may not know of it.
    pub const fn not_found(kind: &'static str) -> Self {
        Self::NotFound { kind }
    }
}

impl From<Crowded> for Denied {
    fn from(Crowded: Crowded) -> Self {
        Self::Crowded
    }
}

impl IntoResponse for Denied {
    fn into_response(self) -> Response {
        ApiError::from(self).into_response()
    }
}
