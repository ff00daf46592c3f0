//! Workspaces as this edge shows them.

use serde::Serialize;
use stackship_domain::ids::{
    OrganizationId, ProjectId, RunId, StateVersionId, UserId, WorkspaceId,
};
use stackship_domain::run::Status;
use stackship_domain::workspace::{Holder, StateHead};
use stackship_domain::{Name, Sha256Digest, Timestamp, TofuVersion};
use stackship_projections::workspace_status::HeldLock;
use stackship_store::records::users;
use stackship_store::records::workspaces::Workspace;
use utoipa::ToSchema;

use crate::v1::schema;
use crate::{ApiError, App};

/// A workspace's settings.
#[derive(Serialize, ToSchema)]
pub(super) struct WorkspaceView {
    /// Its id.
    #[schema(value_type = String)]
    id: WorkspaceId,
    /// The project it belongs to.
    #[schema(value_type = String)]
    project: ProjectId,
    /// Its name, unique in the organization.
    #[schema(value_type = String)]
    name: Name,
    /// The exact OpenTofu release of its runs.
    #[schema(value_type = String)]
    tofu_version: TofuVersion,
    /// Directory below the configuration's root in which OpenTofu runs.
    working_directory: String,
    /// Where its runs execute.
    region: String,
    /// On what its runs execute.
    platform: String,
    /// How long a plan waits for a decision.
    approval_seconds: u32,
    /// Its published state.
    #[schema(value_type = Option<String>)]
    current_state_version: Option<StateVersionId>,
    /// Always false: a person approves each plan.
    auto_apply: bool,
    /// When it was created.
    #[schema(schema_with = schema::time)]
    created_at: Timestamp,
    /// When its settings last changed.
    #[schema(schema_with = schema::time)]
    updated_at: Timestamp,
}

impl From<Workspace> for WorkspaceView {
    fn from(workspace: Workspace) -> Self {
        Self {
            id: workspace.id,
            project: workspace.project,
            name: workspace.name,
            tofu_version: workspace.tofu_version,
            working_directory: workspace.working_directory,
            region: workspace.region,
            platform: workspace.platform,
            approval_seconds: workspace.approval_seconds,
            current_state_version: workspace.current_state_version,
            auto_apply: false,
            created_at: workspace.created_at,
            updated_at: workspace.updated_at,
        }
    }
}

/// A workspace with what happens in it now.
#[derive(Serialize, ToSchema)]
pub(super) struct WorkspaceDetail {
    #[serde(flatten)]
    settings: WorkspaceView,
    /// Its lock, when somebody holds it.
    lock: Option<LockView>,
    /// Runs that wait for it, first come first.
    #[schema(value_type = Vec<String>)]
    queue: Vec<RunId>,
    /// Its published state.
    state: Option<StateView>,
}

/// A held lock.
#[derive(Serialize, ToSchema)]
pub(super) struct LockView {
    /// Who holds it.
    holder: HolderView,
    /// Since when.
    #[schema(schema_with = schema::time)]
    since: Timestamp,
    /// Why, in a person's words.
    reason: Option<String>,
}

/// Who holds a lock.
#[derive(Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum HolderView {
    /// A run, from the start of its plan to its end.
    Run {
        /// Which one.
        #[schema(value_type = String)]
        id: RunId,
        /// Where it stands: why it still holds the lock.
        #[schema(value_type = Option<String>)]
        status: Option<Status>,
    },
    /// A person, by hand.
    User {
        /// Who.
        #[schema(value_type = String)]
        id: UserId,
        /// What they are called.
        name: Option<String>,
    },
}

/// The published state of a workspace.
#[derive(Serialize, ToSchema)]
struct StateView {
    /// Which state version.
    #[schema(value_type = String)]
    version: StateVersionId,
    /// Its serial.
    serial: i64,
    /// Its lineage.
    lineage: String,
    /// SHA-256 of its exact bytes.
    #[schema(value_type = String)]
    sha256: Sha256Digest,
}

/// A held lock, with what others need to know of its holder.
async fn lock_view(
    app: &App,
    organization: OrganizationId,
    lock: HeldLock,
) -> Result<LockView, ApiError> {
    let holder = match lock.holder {
        Holder::Run { run } => HolderView::Run {
            id: run,
            status: app
                .views
                .review(organization, run)
                .await?
                .map(|review| review.status),
        },
        Holder::User { user } => HolderView::User {
            id: user,
            name: users::display_names(&app.store.pool, &[user])
                .await?
                .remove(&user),
        },
    };
    Ok(LockView {
        holder,
        since: lock.since,
        reason: lock.reason,
    })
}

impl From<StateHead> for StateView {
    fn from(head: StateHead) -> Self {
        Self {
            version: head.version,
            serial: head.serial,
            lineage: head.lineage,
            sha256: head.digest,
        }
    }
}

/// A workspace with what the read models know of it.
pub(super) async fn detail(app: &App, workspace: Workspace) -> Result<WorkspaceDetail, ApiError> {
    let status = app
        .views
        .workspace_status(workspace.organization, workspace.id)
        .await?;
    let (lock, queue, head) = match status {
        Some(status) => (status.lock, status.queue, status.head),
        None => (None, Vec::new(), None),
    };
    let lock = match lock {
        Some(lock) => Some(lock_view(app, workspace.organization, lock).await?),
        None => None,
    };
    Ok(WorkspaceDetail {
        settings: workspace.into(),
        lock,
        queue,
        state: head.map(Into::into),
    })
}
