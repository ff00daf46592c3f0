//! A bundle on its way in: received within its bound, read, and tried in the limited process before
//! anything is stored.

use axum::body::{Body, HttpBody as _};
use axum::http::StatusCode;
use futures::StreamExt as _;
use stackship_policy::bundle::ARCHIVE_BYTES_MAX;
use stackship_policy::{Bundle, BundleError, Evaluator};

use crate::v1::body::drain;
use crate::{ApiError, JSON_BYTES_MAX};

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
    let announced = body.size_hint().lower();
    let mut chunks = body.into_data_stream();
    let mut archive = Vec::new();
    let mut fits = usize::try_from(announced).is_ok_and(|bytes| bytes <= ARCHIVE_BYTES_MAX);
    while fits {
        let Some(chunk) = chunks.next().await else {
            return Ok(archive);
        };
        let chunk = chunk.map_err(|_| incomplete())?;
        fits = archive.len() + chunk.len() <= ARCHIVE_BYTES_MAX;
        archive.extend_from_slice(&chunk);
    }
    drain(chunks).await;
    Err(refusal(BundleError::TooLarge {
        what: "the upload".to_owned(),
        limit: ARCHIVE_BYTES_MAX,
    }))
}

fn incomplete() -> ApiError {
    let message = "the body ended before it was complete; send it again";
    ApiError::unreadable("BODY_INCOMPLETE", "", message)
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
