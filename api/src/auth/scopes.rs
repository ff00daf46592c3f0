//! Where a permission holds. Each type stands for "this caller may do `P` to this thing": the only
//! way to get one is to find the thing within the caller's own organization and to be allowed.
//!
//! As extractors they take the thing from the path parameter of the same name. What the caller may
//! not even read looks as if it did not exist.

use std::marker::PhantomData;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use stackship_domain::ids::{
    ConfigurationVersionId, PolicySetId, ProjectId, RunId, UserId, WorkspaceId,
};
use stackship_domain::{Name, Permission};
use stackship_store::records::configuration_versions::{self, ConfigurationVersion};
use stackship_store::records::organizations::{self, Organization};
use stackship_store::records::policy_sets::{self, PolicySet};
use stackship_store::records::projects::{self, Project};
use stackship_store::records::runs_record::{self, RunRecord};
use stackship_store::records::workspaces::{self, Workspace};
use stackship_store::records::{grants, tokens};

use super::permissions::run_grants;
use super::{Caller, Denied, Principal, Requires};
use crate::App;

/// What is to be reached, and what it takes to know that it is there.
struct Place {
    kind: &'static str,
    seen_with: Permission,
    project: Option<ProjectId>,
    workspace: Option<WorkspaceId>,
    run: Option<RunId>,
}

impl Place {
    const ORGANIZATION: Self = Self {
        kind: "organization",
        seen_with: Permission::OrgRead,
        project: None,
        workspace: None,
        run: None,
    };

    /// A run reaches itself and its workspace; of the organization only that it exists.
    fn is_reached_by(&self, caller: &stackship_store::attempts::RunPrincipal) -> bool {
        let is_own_workspace = self.workspace.is_none_or(|id| id == caller.workspace);
        let is_own_run = self.run.is_none_or(|id| id == caller.run);
        let is_own = is_own_workspace && is_own_run;
        is_own && (self.workspace.is_some() || self.seen_with == Permission::OrgRead)
    }
}

/// Whether the credential may be used here at all; asked before anything is looked up.
const fn admit<P: Requires>(caller: &Caller) -> Result<(), Denied> {
    match caller.principal {
        Principal::User(_) => Ok(()),
        Principal::Run(_) if P::RUN_TOKEN => Ok(()),
        Principal::Run(_) => Err(Denied::RunToken),
    }
}

async fn allow<P: Requires>(app: &App, caller: &Caller, place: &Place) -> Result<(), Denied> {
    let hidden = Denied::not_found(place.kind);
    let user = match &caller.principal {
        Principal::Run(run) if place.is_reached_by(run) && run_grants(run, P::PERMISSION) => {
            return Ok(());
        }
        Principal::Run(_) => return Err(hidden),
        Principal::User(user) => user,
    };
    let pool = &app.store.pool;
    let role = grants::role_for(
        pool,
        user.organization,
        user.user,
        place.project,
        place.workspace,
    );
    match role.await? {
        Some(role) if role.grants(P::PERMISSION) => Ok(()),
        Some(role) if role.grants(place.seen_with) => Err(Denied::Forbidden {
            permission: P::PERMISSION,
        }),
        Some(_) | None => Err(hidden),
    }
}

/// The caller's own organization, before any permission in it: what the credential itself says.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Who calls.
    pub caller: Caller,
    /// The user.
    pub user: tokens::Principal,
    /// The organization.
    pub organization: Organization,
}

impl Tenant {
    /// The user's own organization, if it has this name.
    pub async fn find(app: &App, caller: Caller, name: &str) -> Result<Self, Denied> {
        let Principal::User(user) = caller.principal else {
            return Err(Denied::RunToken);
        };
        let organization = own_organization(app, &caller, name).await?;
        Ok(Self {
            caller,
            user,
            organization,
        })
    }
}

async fn own_organization(app: &App, caller: &Caller, name: &str) -> Result<Organization, Denied> {
    let hidden = || Denied::not_found("organization");
    let name: Name = name.parse().map_err(|_| hidden())?;
    organizations::by_name(&app.store.pool, &name)
        .await?
        .filter(|found| found.id == caller.organization())
        .ok_or_else(hidden)
}

macro_rules! scopes {
    ($($(#[$doc:meta])* $name:ident { $field:ident: $thing:ty $(, $also:ident: $other:ty)* }),+ $(,)?) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name<P> {
            /// Who may.
            pub caller: Caller,
            /// What they may do it to.
            pub $field: $thing,
            $(
                /// Where that belongs.
                pub $also: $other,
            )*
            permission: PhantomData<fn() -> P>,
        }

        impl<P: Requires> FromRequestParts<App> for $name<P> {
            type Rejection = Denied;

            async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Denied> {
                let caller = Caller::from_request_parts(parts, app).await?;
                let given = path_parameter(parts, stringify!($field)).await;
                Self::find(app, caller, &given.unwrap_or_default()).await
            }
        }
    )+ };
}

scopes! {
    /// May do `P` in the organization named by `{organization}`.
    InOrganization { organization: Organization },
    /// May do `P` in the project with the id `{project}`.
    InProject { project: Project },
    /// May do `P` to the workspace with the id `{workspace}`.
    InWorkspace { workspace: Workspace },
    /// May do `P` to the run with the id `{run}`.
    InRun { run: RunRecord, workspace: Workspace },
    /// May do `P` to the configuration version with the id `{configuration}`.
    InConfiguration { configuration: ConfigurationVersion, workspace: Workspace },
    /// May do `P` to the policy set with the id `{policy_set}`, wherever it is attached.
    InPolicySet { policy_set: PolicySet },
}

impl FromRequestParts<App> for Tenant {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Denied> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let given = path_parameter(parts, "organization").await;
        Self::find(app, caller, &given.unwrap_or_default()).await
    }
}

/// A missing parameter names nothing, so it finds nothing.
async fn path_parameter(parts: &mut Parts, name: &str) -> Option<String> {
    let given = RawPathParams::from_request_parts(parts, &()).await.ok()?;
    given
        .iter()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned())
}

impl<P: Requires> InOrganization<P> {
    /// Finds the caller's organization by its name and asks for `P` there.
    pub async fn find(app: &App, caller: Caller, name: &str) -> Result<Self, Denied> {
        admit::<P>(&caller)?;
        let organization = own_organization(app, &caller, name).await?;
        allow::<P>(app, &caller, &Place::ORGANIZATION).await?;
        Ok(Self {
            caller,
            organization,
            permission: PhantomData,
        })
    }

    /// The user, where no run's token is let in; nobody else has an organization to administer.
    pub fn user(&self) -> Result<UserId, Denied> {
        self.caller
            .user()
            .map(|user| user.user)
            .ok_or(Denied::RunToken)
    }
}

impl<P: Requires> InProject<P> {
    /// Finds a project of the caller's organization by its id and asks for `P` there.
    pub async fn find(app: &App, caller: Caller, id: &str) -> Result<Self, Denied> {
        admit::<P>(&caller)?;
        let hidden = || Denied::not_found("project");
        let id: ProjectId = id.parse().map_err(|_| hidden())?;
        let found = projects::by_id(&app.store.pool, caller.organization(), id).await?;
        Self::of(app, caller, found.ok_or_else(hidden)?).await
    }

    /// Asks for `P` in a project that was found otherwise.
    pub async fn of(app: &App, caller: Caller, project: Project) -> Result<Self, Denied> {
        admit::<P>(&caller)?;
        let place = Place {
            kind: "project",
            seen_with: Permission::ProjectRead,
            project: Some(project.id),
            ..Place::ORGANIZATION
        };
        allow::<P>(app, &caller, &place).await?;
        Ok(Self {
            caller,
            project,
            permission: PhantomData,
        })
    }
}

impl<P: Requires> InWorkspace<P> {
    /// Finds a workspace of the caller's organization by its id and asks for `P` there.
    pub async fn find(app: &App, caller: Caller, id: &str) -> Result<Self, Denied> {
        admit::<P>(&caller)?;
        let hidden = || Denied::not_found("workspace");
        let id: WorkspaceId = id.parse().map_err(|_| hidden())?;
        let found = workspaces::by_id(&app.store.pool, caller.organization(), id).await?;
        Self::of(app, caller, found.ok_or_else(hidden)?).await
    }

    /// Finds a workspace of the caller's organization by its name and asks for `P` there.
    pub async fn find_by_name(app: &App, caller: Caller, name: &str) -> Result<Self, Denied> {
        admit::<P>(&caller)?;
        let hidden = || Denied::not_found("workspace");
        let name: Name = name.parse().map_err(|_| hidden())?;
        let found = workspaces::by_name(&app.store.pool, caller.organization(), &name).await?;
        Self::of(app, caller, found.ok_or_else(hidden)?).await
    }

    /// Asks for `P` in a workspace that was found otherwise.
    pub async fn of(app: &App, caller: Caller, workspace: Workspace) -> Result<Self, Denied> {
        admit::<P>(&caller)?;
        let place = workspace_place("workspace", Permission::WorkspaceRead, &workspace, None);
        allow::<P>(app, &caller, &place).await?;
        Ok(Self {
            caller,
            workspace,
            permission: PhantomData,
        })
    }
}

impl<P: Requires> InRun<P> {
    /// Finds a run of the caller's organization by its id and asks for `P` in its workspace.
    pub async fn find(app: &App, caller: Caller, id: &str) -> Result<Self, Denied> {
        admit::<P>(&caller)?;
        let hidden = || Denied::not_found("run");
        let pool = &app.store.pool;
        let id: RunId = id.parse().map_err(|_| hidden())?;
        let run = runs_record::by_id(pool, caller.organization(), id)
            .await?
            .ok_or_else(hidden)?;
        let workspace = workspaces::by_id(pool, caller.organization(), run.workspace)
            .await?
            .ok_or_else(hidden)?;
        let place = workspace_place("run", Permission::RunRead, &workspace, Some(run.id));
        allow::<P>(app, &caller, &place).await?;
        Ok(Self {
            caller,
            run,
            workspace,
            permission: PhantomData,
        })
    }
}

impl<P: Requires> InConfiguration<P> {
    /// Finds a configuration version of the caller's organization by its id and asks for `P` in its
    /// workspace.
    pub async fn find(app: &App, caller: Caller, id: &str) -> Result<Self, Denied> {
        admit::<P>(&caller)?;
        let hidden = || Denied::not_found("configuration version");
        let pool = &app.store.pool;
        let id: ConfigurationVersionId = id.parse().map_err(|_| hidden())?;
        let configuration = configuration_versions::by_id(pool, caller.organization(), id)
            .await?
            .ok_or_else(hidden)?;
        let workspace = workspaces::by_id(pool, caller.organization(), configuration.workspace)
            .await?
            .ok_or_else(hidden)?;
        let place = workspace_place(
            "configuration version",
            Permission::RunRead,
            &workspace,
            None,
        );
        allow::<P>(app, &caller, &place).await?;
        Ok(Self {
            caller,
            configuration,
            workspace,
            permission: PhantomData,
        })
    }
}

impl<P: Requires> InPolicySet<P> {
    /// Finds a policy set of the caller's organization by its id and asks for `P` in the organization:
    /// a role below it decides nothing about what may apply to others.
    pub async fn find(app: &App, caller: Caller, id: &str) -> Result<Self, Denied> {
        admit::<P>(&caller)?;
        let hidden = || Denied::not_found("policy set");
        let id: PolicySetId = id.parse().map_err(|_| hidden())?;
        let policy_set = policy_sets::by_id(&app.store.pool, caller.organization(), id)
            .await?
            .ok_or_else(hidden)?;
        let place = Place {
            kind: "policy set",
            seen_with: Permission::PolicyRead,
            ..Place::ORGANIZATION
        };
        allow::<P>(app, &caller, &place).await?;
        Ok(Self {
            caller,
            policy_set,
            permission: PhantomData,
        })
    }
}

fn workspace_place(
    kind: &'static str,
    seen_with: Permission,
    workspace: &Workspace,
    run: Option<RunId>,
) -> Place {
    Place {
        kind,
        seen_with,
        project: Some(workspace.project),
        workspace: Some(workspace.id),
        run,
    }
}
