//! Permissions as types, for use as arguments.

use std::marker::PhantomData;

use stackship_domain::Permission;
use stackship_domain::run::Phase;
use stackship_store::attempts::RunPrincipal;

/// A permission that a handler asks for by its type.
pub trait Requires: Send + Sync + 'static {
    /// Which one.
    const PERMISSION: Permission;
    /// Whether a run's token may stand in for a person's.
    const RUN_TOKEN: bool = false;
}

macro_rules! markers {
    ($($name:ident),+ $(,)?) => { $(
        #[doc = concat!("Asks for [`Permission::", stringify!($name), "`].")]
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl Requires for $name {
            const PERMISSION: Permission = Permission::$name;
        }
    )+ };
}

markers!(
    RunRead,
    RunCreate,
    RunApprove,
    RunCancel,
    RunRecover,
    PolicyOverrideSoft,
    PolicyRead,
    PolicyWrite,
    ArtifactRead,
    ArtifactReadSensitive,
    StateRead,
    StateWrite,
    StateRecover,
    WorkspaceRead,
    WorkspaceWrite,
    WorkspaceLock,
    WorkspaceForceUnlock,
    VariableRead,
    VariableWrite,
    ProjectRead,
    ProjectWrite,
    OrgRead,
    OrgAdmin,
    AuditRead,
);

/// Asks for `P` of a person, or for the token of a run whose phase needs `P`.
#[derive(Debug, Clone, Copy)]
pub struct OrRun<P>(PhantomData<fn() -> P>);

impl<P: Requires> Requires for OrRun<P> {
    const PERMISSION: Permission = P::PERMISSION;
    const RUN_TOKEN: bool = true;
}

/// What a run may do to itself and its workspace: a plan reads, an apply also writes state.
pub(super) fn run_grants(run: &RunPrincipal, permission: Permission) -> bool {
    match permission {
        Permission::OrgRead
        | Permission::ProjectRead
        | Permission::WorkspaceRead
        | Permission::StateRead
        | Permission::RunRead => true,
        Permission::StateWrite => run.phase == Phase::Apply && run.fence.is_some(),
        Permission::RunCreate
        | Permission::RunApprove
        | Permission::RunCancel
        | Permission::RunRecover
        | Permission::PolicyOverrideSoft
        | Permission::PolicyRead
        | Permission::PolicyWrite
        | Permission::ArtifactRead
        | Permission::ArtifactReadSensitive
        | Permission::StateRecover
        | Permission::WorkspaceWrite
        | Permission::WorkspaceLock
        | Permission::WorkspaceForceUnlock
        | Permission::VariableRead
        | Permission::VariableWrite
        | Permission::ProjectWrite
        | Permission::OrgAdmin
        | Permission::AuditRead => false,
    }
}
