//! A bundle on its way in: received within its bound, read, and tried in the limited process before
//! anything is stored.

use axum::body::{Body, HttpBody as _};
use axum::http::StatusCode;
use futures::StreamExt as _;
use stackship_policy::bundle::ARCHIVE_BYTES_MAX;
use stackship_policy::{Bundle, BundleError, Evaluator};

use crate::{ApiError, JSON_BYTES_MAX, reading};

// A named request is taken in whole before it gets here.
const _: () = assert!(ARCHIVE_BYTES_MAX <= JSON_BYTES_MAX);

/// A bundle that can be evaluated.
pub(super) async fn bundle(evaluator: &Evaluator, body: Body) -> Result<Bundle, ApiError> {
    let archive = receive(body).await?;
    let read = move || Bundle::from_archive(&archive);
    let bundle = super::content::unhurried(read).await?.map_err(refusal)?;
    evaluator.validate(&bundle).await.map_err(refusal)?;
    Ok(bundle)
}

async fn receive(body: Body) -> Result<Vec<u8>, ApiError> {
    let fits = |bytes: usize| {
        let too_large = || BundleError::TooLarge {
            what: "the upload".to_owned(),
            limit: ARCHIVE_BYTES_MAX,
        };
        let fits = bytes <= ARCHIVE_BYTES_MAX;
        fits.then_some(()).ok_or_else(|| refusal(too_large()))
    };
    fits(usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX))?;
    let mut chunks = body.into_data_stream();
    let mut archive = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| reading::unread(&error))?;
        fits(archive.len() + chunk.len())?;
        archive.extend_from_slice(&chunk);
    }
    Ok(archive)
}

/// Says why a bundle is refused. The message names the file or field and the remedy; `details.field`
/// names the file or field alone.
fn refusal(error: BundleError) -> ApiError {
    let status = match &error {
        BundleError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        BundleError::NotStarted(_) => StatusCode::SERVICE_UNAVAILABLE,
        BundleError::Archive { .. }
        | BundleError::TooManyFiles { .. }
        | BundleError::File { .. }
        | BundleError::Manifest { .. }
        | BundleError::Stored { .. }
        | BundleError::Policy { .. }
        | BundleError::TooCostly { .. } => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let (code, message) = (error.code(), error.to_string());
    let field = match error {
        BundleError::File { path: field, .. }
        | BundleError::Manifest { field, .. }
        | BundleError::Policy { file: field, .. }
        | BundleError::TooCostly { file: field, .. } => field,
        BundleError::Archive { .. }
        | BundleError::TooLarge { .. }
        | BundleError::TooManyFiles { .. }
        | BundleError::Stored { .. }
        | BundleError::NotStarted(_) => String::new(),
    };
    ApiError::Invalid {
        status,
        code,
        field,
        message,
    }
}
