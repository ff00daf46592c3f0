//! Guarded artifacts on their way to a person: told in the log before the first byte (S-ART-1).

use serde_json::json;
use stackship_domain::Sha256Digest;
use stackship_domain::ids::{ObjectId, RunId, WorkspaceId};

use super::{commit, tell};
use crate::log::Context;
use crate::{Store, StoreError};

/// What is released, to whom the context names.
#[derive(Debug, Clone)]
pub struct Release<'a> {
    /// The run that made it; none made a state that a person rolled back to.
    pub run: Option<RunId>,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// What it is: `raw_plan`, `emergency_state`, `state_version`.
    pub artifact: &'static str,
    /// The stored bytes.
    pub object: ObjectId,
    /// SHA-256 of them.
    pub sha256: Sha256Digest,
    /// How many.
    pub bytes: u64,
    /// Why, in the person's words.
    pub reason: &'a str,
}

/// Tells of a release. Only when this has returned may a byte leave.
pub async fn tell_release(
    store: &Store,
    context: &Context,
    release: &Release<'_>,
) -> Result<(), StoreError> {
    let mut transaction = store.pool.begin().await?;
    let detail = json!({
        "run": release.run,
        "workspace": release.workspace,
        "artifact": release.artifact,
        "object": release.object,
        "sha256": release.sha256,
        "bytes": release.bytes,
        "reason": release.reason,
    });
    tell(
        &mut transaction,
        context,
        "guarded_artifact_released",
        detail,
    )
    .await?;
    commit(store, transaction).await
}
