//! What only some may download, for a reason they give, and after they have proved again who they are
//! (S-ART-1).
//!
//! The reason is in the log before the first byte leaves. Whoever may not download, and whoever asks for
//! what was never made, is gone, or is not what was recorded, gets the same bytes. Those who may are told
//! what their request lacks: a proof, a reason, an address without a query.

use axum::body::Body as Bytes;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use stackship_domain::ids::RunId;
use stackship_store::records::releases::{Release, tell_release};

use crate::artifacts::{self, Place, Recorded};
use crate::auth::{Caller, Denied};
use crate::{ApiError, App};

/// What is downloaded, and by whom.
pub(super) struct Download<'a> {
    pub(super) caller: &'a Caller,
    pub(super) place: Place,
    /// The run that made it.
    pub(super) run: Option<RunId>,
    /// What it is, for the history.
    pub(super) artifact: &'static str,
    /// What the file is called.
    pub(super) file: String,
    pub(super) recorded: Recorded,
    pub(super) reason: String,
}

/// Opens it, tells the history, and only then lets it go.
pub(super) async fn release(app: &App, download: Download<'_>) -> Result<Response, ApiError> {
    let (found, reader) = artifacts::open(app, download.place, download.recorded)
        .await
        .map_err(|error| artifacts::unless_it_passes(error, hidden()))?;
    let release = Release {
        run: download.run,
        workspace: download.place.workspace,
        artifact: download.artifact,
        object: found.id,
        sha256: found.sha256,
        bytes: found.bytes,
        reason: &download.reason,
    };
    tell_release(&app.store, &download.caller.command()?, &release).await?;
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_LENGTH, reader.bytes().to_string()),
        (
            CONTENT_DISPOSITION,
            format!("attachment; filename=\"{}\"", download.file),
        ),
        (CACHE_CONTROL, "private, no-store".to_owned()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    Ok((headers, Bytes::from_stream(reader)).into_response())
}

pub(super) fn hidden() -> ApiError {
    Denied::ARTIFACT.into()
}
