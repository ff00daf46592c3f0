//! State versions: begun and staged by an applying run, published by the log alone.
//!
//! A staged state is what its run reads back; everybody else reads the published one. What is
//! staged and never published is the run's emergency state: it is kept and never a version. A person
//! brings an older one back as a new one, which only the log writes.

mod list;
mod restore;
mod row;
mod scan;
mod succession;

use stackship_domain::ids::{OrganizationId, RunId, StateVersionId, WorkspaceId};
use tokio::io::AsyncRead;

use crate::attempts::RunPrincipal;
use crate::objects::{NewObject, ObjectKind, ObjectReader};
use crate::{Store, StoreError, Violation, clock};

pub use list::published;
pub use restore::{RestoreError, Restored, under_serial};
pub use row::{Author, StateStatus, StateVersionRow};
use row::{COLUMNS, parse};
pub use scan::{Found, Identity, LINEAGE_BYTES_MAX, Scanner};
pub use succession::{
    Announced, NoSuccessor, SERIAL_STEP_MAX, STATE_BYTES_OF_RUN_MAX, STATES_OF_RUN_MAX, follows,
    has_room,
};

/// The largest state, in bytes.
pub const STATE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The largest outputs document, in bytes.
pub const OUTPUTS_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What a run says of a state before it uploads the bytes.
#[derive(Debug, Clone)]
pub struct NewState {
    /// Who writes.
    pub principal: RunPrincipal,
    /// Its serial.
    pub serial: i64,
    /// Its lineage.
    pub lineage: String,
    /// MD5 of the bytes that follow, 32 hexadecimal digits: the protocol's own check.
    pub md5: String,
    /// Root outputs with sensitive values in clear; stored encrypted.
    pub outputs: Option<Vec<u8>>,
}

/// Why the bytes of a state were not taken.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    /// There is no such state of this run.
    #[error("there is no such state version of this run")]
    NotFound,
    /// The bytes are not the ones that were announced.
    #[error("the bytes do not have the announced MD5")]
    Md5Mismatch,
    /// The serial or lineage inside is not the announced one.
    #[error("the state's own serial or lineage is not the announced one")]
    IdentityMismatch,
    /// A newer one was announced or is here: this one comes too late.
    #[error("a newer state of this run was announced or is here")]
    Superseded,
    /// The run has brought as much as one run may.
    #[error("the run has written as much state as one run may")]
    NoRoom,
    /// A failure of ours, or a refusal by the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// On which way the bytes of a state come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// While the apply goes on. OpenTofu announces a state when the one before is here, so only the one
    /// that was announced last is taken.
    Uploaded,
    /// After its end, from what it left behind: then nothing else arrives any more.
    LeftBehind,
}

/// Begins a state version; the same announcement again finds the first one.
pub async fn begin(store: &Store, new: NewState) -> Result<StateVersionRow, StoreError> {
    let fence = new
        .principal
        .fence
        .ok_or(StoreError::Refused(Violation::StaleFence))?;
    if let Some(row) = announced(store, &new).await? {
        return Ok(row);
    }
    let outputs = match &new.outputs {
        None => None,
        Some(bytes) => {
            let object = NewObject {
                organization: new.principal.organization,
                workspace: Some(new.principal.workspace),
                kind: ObjectKind::StateOutputs,
                bytes_max: OUTPUTS_BYTES_MAX,
            };
            Some(store.objects.put_bytes(object, bytes).await?.id)
        }
    };
    let id: StateVersionId = clock::fresh();
    sqlx::query(
        "insert into record.state_versions (state_version_id, organization_id, workspace_id, run_id, fence, serial, \
             lineage, md5, outputs_object_id) values ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         on conflict on constraint same_upload_once do nothing",
    )
    .bind(id.to_string())
    .bind(new.principal.organization.to_string())
    .bind(new.principal.workspace.to_string())
    .bind(new.principal.run.to_string())
    .bind(fence.number())
    .bind(new.serial)
    .bind(&new.lineage)
    .bind(&new.md5)
    .bind(outputs.map(|object| object.to_string()))
    .execute(&store.pool)
    .await?;
    announced(store, &new)
        .await?
        .ok_or_else(|| StoreError::inconsistent("record.state_versions", "run_id", id))
}

async fn announced(store: &Store, new: &NewState) -> Result<Option<StateVersionRow>, StoreError> {
    let row = sqlx::query(&format!(
        "select {COLUMNS} from record.state_versions \
         where organization_id = $1 and run_id = $2 and serial = $3 and lineage = $4 and md5 = $5"
    ))
    .bind(new.principal.organization.to_string())
    .bind(new.principal.run.to_string())
    .bind(new.serial)
    .bind(&new.lineage)
    .bind(&new.md5)
    .fetch_optional(&store.pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// Takes the bytes of a begun state and stages it. `check` sees what was stored and says whether it
/// is what was announced; bytes that are not are never staged, nor is a state behind a newer one. Taking
/// the same bytes again is harmless.
pub async fn stage<R, C>(
    store: &Store,
    principal: RunPrincipal,
    id: StateVersionId,
    (arrival, reader): (Arrival, R),
    check: C,
) -> Result<StateVersionRow, PutError>
where
    R: AsyncRead + Send + Unpin,
    C: AsyncFnOnce(&StateVersionRow) -> Result<(), PutError>,
{
    let row = of_run(store, principal, id).await?;
    if row.status != StateStatus::Pending {
        return Ok(row);
    }
    if arrival == Arrival::Uploaded && !has_room(store, principal).await? {
        return Err(PutError::NoRoom);
    }
    let object = NewObject {
        organization: row.organization,
        workspace: Some(row.workspace),
        kind: ObjectKind::State,
        bytes_max: STATE_BYTES_MAX,
    };
    let stored = store.objects.put(object, reader).await?;
    check(&row).await?;
    sqlx::query(
        "update record.state_versions set object_id = $2, sha256 = $3, bytes = $4, status = 'staged', \
             staged_at = clock_timestamp() \
         where state_version_id = $1 and object_id is null and not exists ( \
             select from record.state_versions as other \
             where other.run_id = record.state_versions.run_id and other.state_version_id <> $1 \
               and (other.status <> 'pending' and other.serial >= record.state_versions.serial \
                 or $5 and (other.created_at, other.state_version_id) \
                     > (record.state_versions.created_at, $1)))",
    )
    .bind(id.to_string())
    .bind(stored.id.to_string())
    .bind(stored.sha256.as_bytes().as_slice())
    .bind(i64::try_from(stored.bytes).unwrap_or(i64::MAX))
    .bind(arrival == Arrival::Uploaded)
    .execute(&store.pool)
    .await
    .map_err(StoreError::from)?;
    let row = of_run(store, principal, id).await?;
    if row.status == StateStatus::Pending {
        return Err(PutError::Superseded);
    }
    Ok(row)
}

/// Keeps the external JSON form of a state beside it: the first time, and while its apply is live.
pub async fn keep_json<R>(
    store: &Store,
    principal: RunPrincipal,
    id: StateVersionId,
    reader: R,
) -> Result<(), PutError>
where
    R: AsyncRead + Send + Unpin,
{
    let row = of_run(store, principal, id).await?;
    let is_wanted: bool = sqlx::query_scalar(
        "select json_object_id is null and exists ( \
             select from record.attempts as attempt \
             where attempt.run_id = version.run_id and attempt.phase = 'apply' \
               and attempt.fence = version.fence and attempt.runner_id is not null \
               and attempt.closed_at is null) \
         from record.state_versions as version where state_version_id = $1",
    )
    .bind(id.to_string())
    .fetch_one(&store.pool)
    .await
    .map_err(StoreError::from)?;
    if !is_wanted {
        return Ok(());
    }
    if !has_room(store, principal).await? {
        return Err(PutError::NoRoom);
    }
    let object = NewObject {
        organization: row.organization,
        workspace: Some(row.workspace),
        kind: ObjectKind::StateJson,
        bytes_max: STATE_BYTES_MAX,
    };
    let stored = store.objects.put(object, reader).await?;
    sqlx::query(
        "update record.state_versions set json_object_id = $2 where state_version_id = $1 and json_object_id is null",
    )
    .bind(id.to_string())
    .bind(stored.id.to_string())
    .execute(&store.pool)
    .await
    .map_err(StoreError::from)?;
    Ok(())
}

/// One state version of the run that a token speaks for.
pub async fn of_run(
    store: &Store,
    principal: RunPrincipal,
    id: StateVersionId,
) -> Result<StateVersionRow, PutError> {
    let row = by_id(store, principal.organization, id)
        .await?
        .ok_or(PutError::NotFound)?;
    if row.author == Author::Run(principal.run) && row.workspace == principal.workspace {
        Ok(row)
    } else {
        Err(PutError::NotFound)
    }
}

/// A state version of the organization.
pub async fn by_id(
    store: &Store,
    organization: OrganizationId,
    id: StateVersionId,
) -> Result<Option<StateVersionRow>, StoreError> {
    let row = sqlx::query(&format!(
        "select {COLUMNS} from record.state_versions where organization_id = $1 and state_version_id = $2"
    ))
    .bind(organization.to_string())
    .bind(id.to_string())
    .fetch_optional(&store.pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// The workspace's state, as everybody but an applying run sees it.
pub async fn current(
    store: &Store,
    organization: OrganizationId,
    workspace: WorkspaceId,
) -> Result<Option<StateVersionRow>, StoreError> {
    let row = sqlx::query(&format!(
        "select {COLUMNS} from record.state_versions where organization_id = $1 and state_version_id = ( \
             select current_state_version_id from record.workspaces \
             where organization_id = $1 and workspace_id = $2)"
    ))
    .bind(organization.to_string())
    .bind(workspace.to_string())
    .fetch_optional(&store.pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// The newest state that a run staged: the last one that tofu wrote.
pub async fn newest_staged(
    store: &Store,
    organization: OrganizationId,
    run: RunId,
) -> Result<Option<StateVersionRow>, StoreError> {
    let row = sqlx::query(&format!(
        "select {COLUMNS} from record.state_versions \
         where organization_id = $1 and run_id = $2 and status <> 'pending' \
         order by serial desc, staged_at desc limit 1"
    ))
    .bind(organization.to_string())
    .bind(run.to_string())
    .fetch_optional(&store.pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// Streams the bytes of a state; `None` while they have not arrived.
pub async fn reader(
    store: &Store,
    row: &StateVersionRow,
) -> Result<Option<ObjectReader>, StoreError> {
    match row.object {
        None => Ok(None),
        Some(object) => Ok(Some(
            store
                .objects
                .reader(row.organization, object, ObjectKind::State)
                .await?,
        )),
    }
}

/// The outputs document of a state, values in clear.
pub async fn outputs(
    store: &Store,
    row: &StateVersionRow,
) -> Result<Option<serde_json::Value>, StoreError> {
    let Some(object) = row.outputs_object else {
        return Ok(None);
    };
    let bytes = store
        .objects
        .read_to_vec(
            row.organization,
            object,
            ObjectKind::StateOutputs,
            OUTPUTS_BYTES_MAX,
        )
        .await?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|_| StoreError::inconsistent("record.state_versions", "outputs_object_id", row.id))
}
