//! What an attempt brings out: streamed, bounded by its kind, and what its digest says.

use axum::Json;
use axum::body::{Body, HttpBody as _};
use axum::extract::State;
use axum::http::HeaderMap;
use futures::TryStreamExt as _;
use stackship_domain::Sha256Digest;
use stackship_domain::ids::AttemptId;
use stackship_domain::run::Phase;
use stackship_runner_protocol::{ArtifactKind, SHA256_HEADER, StoredArtifact};
use stackship_store::StoreError;
use stackship_store::objects::{NewObject, ObjectError, ObjectKind};
use tokio_util::io::StreamReader;

use super::attempt::LiveHolder;
use super::errored_state;
use super::extract::Path;
use super::failure::Failure;
use crate::App;

pub(super) async fn store(
    State(app): State<App>,
    LiveHolder(row): LiveHolder,
    Path((_, kind)): Path<(AttemptId, ArtifactKind)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<StoredArtifact>, Failure> {
    if phase_of(kind) != row.offer.phase {
        return Err(Failure::NotFound);
    }
    let claimed = claimed_digest(&headers)?;
    let new = NewObject {
        organization: row.offer.organization,
        workspace: Some(row.offer.workspace),
        kind: object_kind(kind),
        bytes_max: kind.bytes_max(),
    };
    if body.size_hint().lower() > new.bytes_max {
        return Err(Failure::TooLarge(new.bytes_max));
    }
    let source = StreamReader::new(body.into_data_stream().map_err(std::io::Error::other));
    let stored = app
        .store
        .objects
        .put(new, source)
        .await
        .map_err(|error| match error {
            StoreError::Object(ObjectError::TooLarge { bytes_max }) => Failure::TooLarge(bytes_max),
            other => other.into(),
        })?;
    // The bytes of a body that was changed on its way stay behind unused; nothing refers to them.
    if stored.sha256 != claimed {
        return Err(Failure::Invalid("the body is not what its SHA-256 says"));
    }
    if kind == ArtifactKind::ErroredState {
        errored_state::stage(&app, &row, stored.id).await?;
    }
    Ok(Json(StoredArtifact {
        object: stored.id,
        sha256: stored.sha256,
        bytes: stored.bytes,
    }))
}

fn claimed_digest(headers: &HeaderMap) -> Result<Sha256Digest, Failure> {
    let text = headers
        .get(SHA256_HEADER)
        .and_then(|value| value.to_str().ok());
    text.and_then(|text| text.parse().ok())
        .ok_or(Failure::Invalid(
            "the header with the SHA-256 of the body is missing or malformed",
        ))
}

const fn phase_of(kind: ArtifactKind) -> Phase {
    match kind {
        ArtifactKind::Plan
        | ArtifactKind::PlanJson
        | ArtifactKind::PlanDiff
        | ArtifactKind::PolicyInput
        | ArtifactKind::LockFile => Phase::Plan,
        ArtifactKind::ErroredState => Phase::Apply,
    }
}

pub(super) const fn object_kind(kind: ArtifactKind) -> ObjectKind {
    match kind {
        ArtifactKind::Plan => ObjectKind::Plan,
        ArtifactKind::PlanJson => ObjectKind::PlanJson,
        ArtifactKind::PlanDiff => ObjectKind::PlanDiff,
        ArtifactKind::PolicyInput => ObjectKind::PolicyInput,
        ArtifactKind::LockFile => ObjectKind::LockFile,
        ArtifactKind::ErroredState => ObjectKind::ErroredState,
    }
}
