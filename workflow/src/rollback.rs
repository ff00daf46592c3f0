//! Going back to an older state of a workspace.
//!
//! The bytes are stored first, under the serial that follows the current one; then one command makes them
//! the workspace's state, under a fence. What moves in between makes the command a refusal, and the stored
//! bytes are nobody's.

use stackship_domain::ids::{OrganizationId, StateVersionId, UserId, WorkspaceId};
use stackship_domain::workspace::{self, Command, Refusal, Rollback, StateHead};
use stackship_store::log::{CommandError, Committed, Context};
use stackship_store::states::{self, RestoreError, StateStatus, StateVersionRow};
use stackship_store::{Store, StoreError, clock};

use crate::StepError;

/// What a person asks for.
#[derive(Debug, Clone)]
pub struct RollbackRequest {
    /// The tenant.
    pub organization: OrganizationId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Who asks.
    pub by: UserId,
    /// The version to go back to.
    pub version: StateVersionId,
    /// The version that the person saw as the workspace's state.
    pub current: StateVersionId,
    /// Why.
    pub reason: String,
}

/// Why nothing was rolled back.
#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    /// The workspace never had this state.
    #[error("there is no such state version of this workspace")]
    NoSuchVersion,
    /// The state cannot have another serial.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The rules of the workspace say no, or something failed.
    #[error(transparent)]
    Step(#[from] StepError),
}

impl From<StoreError> for RollbackError {
    fn from(error: StoreError) -> Self {
        Self::Step(error.into())
    }
}

impl From<Refusal> for RollbackError {
    fn from(refusal: Refusal) -> Self {
        Self::Step(CommandError::<workspace::Refusal>::Refused(refusal).into())
    }
}

impl From<CommandError<workspace::Refusal>> for RollbackError {
    fn from(error: CommandError<workspace::Refusal>) -> Self {
        Self::Step(error.into())
    }
}

/// Makes the content of an older version the workspace's state, as a new version with a higher serial.
pub async fn roll_back(
    store: &Store,
    context: &Context,
    request: RollbackRequest,
) -> Result<Committed, RollbackError> {
    let older = older(store, &request).await?;
    let (workspace, _) = store.workspaces.load(request.workspace).await?;
    // Asked before anything is stored; the command asks again.
    let head = workspace.rolled_back_from(request.by, request.current, request.version)?;
    let serial = head.serial.checked_add(1).ok_or(Refusal::NotSuccessor)?;
    if older.lineage != head.lineage {
        return Err(Refusal::NotSuccessor.into());
    }
    let stored = states::under_serial(store, &older, serial).await?;
    let rollback = Rollback {
        predecessor: request.current,
        restored: request.version,
        state: StateHead {
            version: clock::fresh(),
            serial,
            lineage: older.lineage,
            digest: stored.sha256,
        },
        object: stored.object,
        reason: request.reason,
    };
    let command = Command::RollBackState {
        by: request.by,
        rollback,
    };
    let committed = store
        .workspaces
        .execute(request.workspace, command, context);
    Ok(committed.await?)
}

async fn older(store: &Store, request: &RollbackRequest) -> Result<StateVersionRow, RollbackError> {
    let row = states::by_id(store, request.organization, request.version).await?;
    row.filter(|row| row.workspace == request.workspace && row.status == StateStatus::Published)
        .ok_or(RollbackError::NoSuchVersion)
}
