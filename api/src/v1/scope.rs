//! Where something holds: in the organization, a project or a workspace, and everywhere below.

use serde::{Deserialize, Serialize};
use stackship_domain::ids::{OrganizationId, ProjectId, WorkspaceId};
use stackship_store::records::grants::Scope;
use stackship_store::records::{projects, workspaces};
use utoipa::ToSchema;

use crate::{ApiError, App};

/// Where something holds: here and everywhere below.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    deny_unknown_fields,
    expecting = "an object with a `kind`: `organization`, `project` or `workspace`"
)]
pub(super) enum ScopeView {
    /// In the whole organization.
    Organization {},
    /// In one project.
    Project {
        /// Which one.
        #[schema(value_type = String)]
        project: ProjectId,
    },
    /// In one workspace.
    Workspace {
        /// Which one.
        #[schema(value_type = String)]
        workspace: WorkspaceId,
    },
}

impl From<ScopeView> for Scope {
    fn from(scope: ScopeView) -> Self {
        match scope {
            ScopeView::Organization {} => Self::Organization,
            ScopeView::Project { project } => Self::Project { project },
            ScopeView::Workspace { workspace } => Self::Workspace { workspace },
        }
    }
}

impl From<Scope> for ScopeView {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Organization => Self::Organization {},
            Scope::Project { project } => Self::Project { project },
            Scope::Workspace { workspace } => Self::Workspace { workspace },
        }
    }
}

/// A scope is of the organization itself. What is elsewhere is refused like what is nowhere.
pub(super) async fn is_here(
    app: &App,
    organization: OrganizationId,
    scope: Scope,
) -> Result<(), ApiError> {
    let pool = &app.store.pool;
    let (is_found, field, message) = match scope {
        Scope::Organization => return Ok(()),
        Scope::Project { project } => (
            projects::by_id(pool, organization, project)
                .await?
                .is_some(),
            "scope.project",
            "`scope.project` names no project of the organization; list them to find it",
        ),
        Scope::Workspace { workspace } => (
            workspaces::by_id(pool, organization, workspace)
                .await?
                .is_some(),
            "scope.workspace",
            "`scope.workspace` names no workspace of the organization; list them to find it",
        ),
    };
    if is_found {
        Ok(())
    } else {
        Err(ApiError::refused("SCOPE_UNKNOWN", field, message))
    }
}
