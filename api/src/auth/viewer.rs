//! Whoever looks at a run, with all that they may do to it: for answers that say what a caller could do
//! next. A handler that does one of these things still asks for it by its type.

use stackship_domain::{Actor, Permission, Role};
use stackship_store::records::grants;

use super::{Denied, InRun, Principal, Requires};
use crate::App;

/// Somebody who looks, and the strongest role they have there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Viewer {
    actor: Actor,
    role: Option<Role>,
}

impl Viewer {
    /// Somebody with a role, or with none.
    pub const fn new(actor: Actor, role: Option<Role>) -> Self {
        Self { actor, role }
    }

    /// Who it is.
    pub const fn actor(&self) -> Actor {
        self.actor
    }

    /// Whether they hold this permission.
    pub const fn may(&self, permission: Permission) -> bool {
        match self.role {
            Some(role) => role.grants(permission),
            None => false,
        }
    }
}

impl<P: Requires> InRun<P> {
    /// The caller with all that they may do to the run.
    pub async fn viewer(&self, app: &App) -> Result<Viewer, Denied> {
        let role = match &self.caller.principal {
            Principal::User(user) => {
                let (project, workspace) = (self.workspace.project, self.workspace.id);
                grants::role_for(
                    &app.store.pool,
                    user.organization,
                    user.user,
                    Some(project),
                    Some(workspace),
                )
                .await?
            }
            Principal::Run(_) => None,
        };
        Ok(Viewer::new(self.caller.actor(), role))
    }
}
