//! What a caller may do, and the roles that grant it. Permissions are named `resource:verb`; a role
//! is granted on an organization, a project or a workspace and holds for everything below it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! permissions {
    ($($(#[$doc:meta])* $name:ident = $text:literal),+ $(,)?) => {
        /// One thing a caller may do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Permission { $($(#[$doc])* $name),+ }

        impl Permission {
            /// Every permission there is.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }
        }
    };
}

permissions! {
    /// See runs, their plans as text and their logs.
    RunRead = "run:read",
    /// Upload a configuration and create a run.
    RunCreate = "run:create",
    /// Approve or discard a plan.
    RunApprove = "run:approve",
    /// Cancel a run.
    RunCancel = "run:cancel",
    /// Resolve a run whose apply is in doubt.
    RunRecover = "run:recover",
    /// Let a soft-mandatory policy failure pass for a limited time.
    PolicyOverrideSoft = "policy:override_soft",
    /// See policy sets, their versions and where they apply.
    PolicyRead = "policy:read",
    /// Create policy sets, upload versions, attach and detach them: decides what may reach production.
    PolicyWrite = "policy:write",
    /// Read redacted artifacts.
    ArtifactRead = "artifact:read",
    /// Download raw plans and emergency state.
    ArtifactReadSensitive = "artifact:read_sensitive",
    /// Download state.
    StateRead = "state:read",
    /// Write state; held by an applying run, never by a person.
    StateWrite = "state:write",
    /// Adopt or download an emergency state.
    StateRecover = "state:recover",
    /// See a workspace and its settings.
    WorkspaceRead = "workspace:read",
    /// Create and change workspaces.
    WorkspaceWrite = "workspace:write",
    /// Lock and unlock a workspace by hand.
    WorkspaceLock = "workspace:lock",
    /// Break a lock that another person holds.
    WorkspaceForceUnlock = "workspace:force_unlock",
    /// See variables; sensitive values are never shown to anybody.
    VariableRead = "variable:read",
    /// Create, change and delete variables.
    VariableWrite = "variable:write",
    /// See a project.
    ProjectRead = "project:read",
    /// Create projects.
    ProjectWrite = "project:write",
    /// See the organization.
    OrgRead = "org:read",
    /// Administer the organization: members, roles, tokens of others.
    OrgAdmin = "org:admin",
    /// Read the whole history of the organization, everybody's and everything's. A permission of its
    /// own, so that somebody may look without being able to change anything.
    AuditRead = "audit:read",
}

impl fmt::Display for Permission {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A named set of permissions, granted at organization, project or workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sees runs, logs and settings.
    Reader,
    /// Also uploads configurations and creates runs: plan-only, cannot approve.
    Planner,
    /// Also approves, discards, cancels, locks and sets variables.
    Operator,
    /// Everything in the organization, recovery and sensitive artifacts included.
    Owner,
}

/// A text that names no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a role is `reader`, `planner`, `operator` or `owner`")]
pub struct InvalidRole;

impl Role {
    /// Every role, weakest first.
    pub const ALL: [Self; 4] = [Self::Reader, Self::Planner, Self::Operator, Self::Owner];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Planner => "planner",
            Self::Operator => "operator",
            Self::Owner => "owner",
        }
    }

    /// Whether this role grants `permission`.
    pub const fn grants(self, permission: Permission) -> bool {
        match permission {
            Permission::OrgRead
            | Permission::ProjectRead
            | Permission::WorkspaceRead
            | Permission::VariableRead
            | Permission::RunRead
            | Permission::PolicyRead
            | Permission::ArtifactRead => true,
            Permission::RunCreate | Permission::StateRead => {
                matches!(self, Self::Planner | Self::Operator | Self::Owner)
            }
            Permission::RunApprove
            | Permission::RunCancel
            | Permission::WorkspaceLock
            | Permission::WorkspaceWrite
            | Permission::VariableWrite => matches!(self, Self::Operator | Self::Owner),
            Permission::RunRecover
            | Permission::PolicyOverrideSoft
            // Whoever is stopped by a policy must not be the one who takes it away.
            | Permission::PolicyWrite
            | Permission::ArtifactReadSensitive
            | Permission::StateRecover
            | Permission::WorkspaceForceUnlock
            | Permission::ProjectWrite
            | Permission::OrgAdmin
            // It tells of members, roles and tokens, which only an owner may list.
            | Permission::AuditRead => matches!(self, Self::Owner),
            // State is written by an applying run alone (S-STA-1).
            Permission::StateWrite => false,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = InvalidRole;

    fn from_str(text: &str) -> Result<Self, InvalidRole> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or(InvalidRole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stronger_role_never_loses_a_permission() {
        for pair in Role::ALL.windows(2) {
            for permission in Permission::ALL {
                assert!(
                    !pair[0].grants(*permission) || pair[1].grants(*permission),
                    "{permission}: {pair:?}"
                );
            }
        }
    }

    #[test]
    fn nobody_writes_state_and_a_planner_cannot_approve() {
        assert!(
            Role::ALL
                .iter()
                .all(|role| !role.grants(Permission::StateWrite))
        );
        assert!(!Role::Planner.grants(Permission::RunApprove));
        assert!(!Role::Planner.grants(Permission::VariableWrite));
        assert!(!Role::Operator.grants(Permission::WorkspaceForceUnlock));
    }
}
