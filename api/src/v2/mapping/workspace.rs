//! Workspaces.

use stackship_domain::ids::RunId;
use stackship_domain::workspace::Holder;
use stackship_domain::{Name, Permission, Role};
use stackship_projections::WorkspaceStatus;
use stackship_store::records::workspaces::Workspace;

use crate::v2::wire::{
    Kind, ToOne, WorkspaceActions, WorkspaceAttributes, WorkspacePermissions,
    WorkspaceRelationships, WorkspaceResource,
};

/// What a caller may do in a workspace, as far as documents tell it. It opens nothing: each call asks
/// for its own permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each right stands for itself"
)]
pub struct Rights {
    /// Change settings.
    pub update: bool,
    /// Create runs.
    pub create_run: bool,
    /// Approve and discard.
    pub approve: bool,
    /// Let a soft-mandatory policy failure pass.
    pub override_policy: bool,
    /// Cancel.
    pub cancel: bool,
    /// Change variables.
    pub write_variables: bool,
}

impl Rights {
    /// What a role allows. A run's token has no role and none of these rights.
    pub fn of(role: Option<Role>) -> Self {
        let may = |permission| role.is_some_and(|role| role.grants(permission));
        Self {
            update: may(Permission::WorkspaceWrite),
            create_run: may(Permission::RunCreate),
            approve: may(Permission::RunApprove),
            override_policy: may(Permission::PolicyOverrideSoft),
            cancel: may(Permission::RunCancel),
            write_variables: may(Permission::VariableWrite),
        }
    }

    fn permissions(self) -> WorkspacePermissions {
        WorkspacePermissions {
            can_update: self.update,
            can_queue_run: self.create_run,
            can_queue_apply: self.create_run,
            can_queue_destroy: false,
            // State is written by runs alone, so this edge locks nothing for a person.
            can_lock: false,
            can_unlock: false,
            can_force_unlock: false,
            can_read_settings: true,
            can_update_variable: self.write_variables,
            can_destroy: false,
        }
    }
}

/// The run that others wait for: whoever holds the lock, else the run whose turn it is. Behind a lock
/// that a person holds that is a waiting run, which is how the client tells such a lock apart.
pub fn current_run(status: &WorkspaceStatus) -> Option<RunId> {
    match status.lock.as_ref().map(|lock| lock.holder) {
        Some(Holder::Run { run }) => Some(run),
        Some(Holder::User { .. }) | None => status.queue.first().copied(),
    }
}

/// A workspace as a resource. Included with a run it does not point at its current run: the client
/// would follow that without an end.
pub fn workspace_resource(
    organization: &Name,
    workspace: &Workspace,
    status: Option<&WorkspaceStatus>,
    rights: Rights,
) -> WorkspaceResource {
    WorkspaceResource {
        id: workspace.id.to_string(),
        kind: Kind::Workspaces,
        attributes: WorkspaceAttributes {
            name: workspace.name.to_string(),
            execution_mode: "remote",
            operations: true,
            locked: status.is_some_and(|status| status.lock.is_some()),
            terraform_version: workspace.tofu_version.to_string(),
            working_directory: workspace.working_directory.clone(),
            tag_names: [],
            vcs_repo: None,
            auto_apply: false,
            structured_run_output_enabled: false,
            allow_destroy_plan: false,
            can_queue_destroy_plan: false,
            created_at: workspace.created_at,
            updated_at: workspace.updated_at,
            actions: WorkspaceActions {
                is_destroyable: false,
            },
            permissions: rights.permissions(),
        },
        relationships: WorkspaceRelationships {
            organization: ToOne::to(Kind::Organizations, organization),
            project: ToOne::to(Kind::Projects, workspace.project),
            current_run: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackship_domain::Fence;
    use stackship_domain::ids::UserId;
    use stackship_domain::run::samples::{at, id};
    use stackship_projections::workspace_status::HeldLock;

    fn status(holder: Option<Holder>, queue: Vec<RunId>) -> WorkspaceStatus {
        WorkspaceStatus {
            lock: holder.map(|holder| HeldLock {
                holder,
                since: at(0),
                reason: None,
            }),
            fence: Fence::from_stored(1),
            queue,
            ..WorkspaceStatus::new(id(3), id(1))
        }
    }

    #[test]
    fn the_current_run_is_the_one_that_others_wait_for() {
        let (holding, waiting): (RunId, RunId) = (id(1), id(2));
        let by_run = Some(Holder::Run { run: holding });
        let by_person = Some(Holder::User {
            user: id::<UserId>(7),
        });
        assert_eq!(current_run(&status(by_run, vec![waiting])), Some(holding));
        assert_eq!(
            current_run(&status(by_person, vec![waiting])),
            Some(waiting)
        );
        assert_eq!(current_run(&status(None, vec![waiting])), Some(waiting));
        assert_eq!(current_run(&status(None, vec![])), None);
    }

    #[test]
    fn a_planner_may_ask_for_an_apply_but_nobody_locks_or_destroys() {
        let planner = Rights::of(Some(Role::Planner)).permissions();
        assert!(planner.can_queue_run && planner.can_queue_apply && !planner.can_update);
        for role in Role::ALL {
            let may = Rights::of(Some(role)).permissions();
            assert!(
                !may.can_lock && !may.can_queue_destroy && !may.can_destroy,
                "{role}"
            );
        }
        assert_eq!(Rights::of(None), Rights::default());
    }
}
