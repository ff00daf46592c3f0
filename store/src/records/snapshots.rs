//! Input snapshots: the pinned inputs of a run, sealed, known by their digest.

use sqlx::PgPool;
use stackship_domain::canonical::{self, NotCanonical};
use stackship_domain::ids::{InputSnapshotId, ObjectId, OrganizationId, WorkspaceId};
use stackship_domain::variable::{InputSnapshot, VARIABLE_VALUE_BYTES_MAX, VARIABLES_MAX};
use stackship_domain::{Sha256Digest, Timestamp};

use crate::columns::Columns;
use crate::log::Context;
use crate::objects::{NewObject, ObjectKind};
use crate::{Store, StoreError, clock};

/// The most bytes a snapshot may have: every variable as large as one may be, escaped.
pub const SNAPSHOT_BYTES_MAX: u64 = (VARIABLES_MAX * VARIABLE_VALUE_BYTES_MAX * 2) as u64;
const TABLE: &str = "record.input_snapshots";

/// A stored snapshot, unopened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotRow {
    /// Its id.
    pub id: InputSnapshotId,
    /// The workspace it was built from.
    pub workspace: WorkspaceId,
    /// The stored document.
    pub object: ObjectId,
    /// SHA-256 of its canonical bytes.
    pub sha256: Sha256Digest,
    /// When it was built.
    pub created_at: Timestamp,
}

/// Stores a snapshot. The run that pins it tells of it, so no fact is told here.
pub async fn store(
    store: &Store,
    context: &Context,
    workspace: WorkspaceId,
    snapshot: &InputSnapshot,
) -> Result<(InputSnapshotId, Sha256Digest), StoreError> {
    let id: InputSnapshotId = clock::fresh();
    let bytes = canonical::to_bytes(snapshot).map_err(|error| match error {
        NotCanonical::Serialize(error) => StoreError::Serialize(error),
        NotCanonical::Float => StoreError::inconsistent(TABLE, "object_id", id),
    })?;
    let object = NewObject {
        organization: context.organization,
        workspace: Some(workspace),
        kind: ObjectKind::InputSnapshot,
        bytes_max: SNAPSHOT_BYTES_MAX,
    };
    let stored = store.objects.put_bytes(object, &bytes).await?;
    sqlx::query(
        "insert into record.input_snapshots (input_snapshot_id, organization_id, workspace_id, object_id, sha256) \
         values ($1, $2, $3, $4, $5)",
    )
    .bind(id.to_string())
    .bind(context.organization.to_string())
    .bind(workspace.to_string())
    .bind(stored.id.to_string())
    .bind(stored.sha256.as_bytes().as_slice())
    .execute(&store.pool)
    .await?;
    Ok((id, stored.sha256))
}

/// The organization's snapshot with this id, unopened.
pub async fn by_id(
    pool: &PgPool,
    organization: OrganizationId,
    id: InputSnapshotId,
) -> Result<Option<SnapshotRow>, StoreError> {
    let row = sqlx::query("select * from record.input_snapshots where organization_id = $1 and input_snapshot_id = $2")
        .bind(organization.to_string())
        .bind(id.to_string())
        .fetch_optional(pool)
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let columns = Columns::new(&row, TABLE, "input_snapshot_id")?;
    Ok(Some(SnapshotRow {
        id,
        workspace: columns.parsed("workspace_id")?,
        object: columns.parsed("object_id")?,
        sha256: columns.digest("sha256")?,
        created_at: columns.time("created_at")?,
    }))
}

/// The organization's snapshot with this id, opened: its variables are in clear.
pub async fn load(
    store: &Store,
    organization: OrganizationId,
    id: InputSnapshotId,
) -> Result<Option<InputSnapshot>, StoreError> {
    let Some(row) = by_id(&store.pool, organization, id).await? else {
        return Ok(None);
    };
    let bytes = store
        .objects
        .read_to_vec(
            organization,
            row.object,
            ObjectKind::InputSnapshot,
            SNAPSHOT_BYTES_MAX,
        )
        .await?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|_| StoreError::inconsistent(TABLE, "object_id", id))
}
