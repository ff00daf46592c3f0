//! Who calls, in this edge's own words. What they may do is asked by the `auth` module's types; here
//! they are only wrapped, so that a refusal is a document the client can print.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use stackship_domain::Name;
use stackship_domain::run::Phase;
use stackship_store::records::grants;
use stackship_store::records::organizations::{self, Organization};
use stackship_store::records::workspaces::Workspace;

use super::error::V2Error;
use super::ids::{run_of_phase, run_of_policy_check};
use super::mapping::Rights;
use crate::App;
use crate::auth::{Caller, Denied, InRun, InWorkspace, OrRun, Principal, Requires, RunRead};

/// A permission of the `auth` module, refused in this edge's words.
pub struct May<T>(pub T);

impl<T> FromRequestParts<App> for May<T>
where
    T: FromRequestParts<App, Rejection = Denied>,
{
    type Rejection = V2Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, V2Error> {
        Ok(Self(T::from_request_parts(parts, app).await?))
    }
}

/// The caller's own organization, named by `{organization}`. It asks for no permission: whoever has a
/// live credential for an organization may know that it exists, and nothing else is told.
pub struct Own {
    /// Who calls.
    pub caller: Caller,
    /// The organization.
    pub organization: Organization,
}

impl FromRequestParts<App> for Own {
    type Rejection = V2Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, V2Error> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let hidden = || V2Error::not_found("organization");
        let name: Name = parameter(parts, "organization")
            .await
            .parse()
            .map_err(|_| hidden())?;
        let organization = organizations::by_name(&app.store.pool, &name)
            .await?
            .filter(|found| found.id == caller.organization())
            .ok_or_else(hidden)?;
        Ok(Self {
            caller,
            organization,
        })
    }
}

/// May do `P` to the workspace named by `{organization}` and `{name}`.
pub struct ByName<P> {
    /// The organization.
    pub organization: Organization,
    /// The workspace and who may.
    pub within: InWorkspace<P>,
}

impl<P: Requires> FromRequestParts<App> for ByName<P> {
    type Rejection = V2Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, V2Error> {
        let Own {
            caller,
            organization,
        } = Own::from_request_parts(parts, app).await?;
        let name = parameter(parts, "name").await;
        let within = InWorkspace::find_by_name(app, caller, &name).await?;
        Ok(Self {
            organization,
            within,
        })
    }
}

/// May read the run whose plan `{plan}` names.
pub struct OfPlan(pub InRun<RunRead>);

impl FromRequestParts<App> for OfPlan {
    type Rejection = V2Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, V2Error> {
        of_phase(parts, app, Phase::Plan).await.map(Self)
    }
}

/// May read the run whose apply `{apply}` names.
pub struct OfApply(pub InRun<RunRead>);

impl FromRequestParts<App> for OfApply {
    type Rejection = V2Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, V2Error> {
        of_phase(parts, app, Phase::Apply).await.map(Self)
    }
}

/// May do `P` to the run whose policy check `{check}` names.
pub struct OfPolicyCheck<P>(pub InRun<P>);

impl<P: Requires> FromRequestParts<App> for OfPolicyCheck<P> {
    type Rejection = V2Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, V2Error> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let id = parameter(parts, "check").await;
        Ok(Self(
            InRun::find(app, caller, &run_of_policy_check(&id)).await?,
        ))
    }
}

async fn of_phase(parts: &mut Parts, app: &App, phase: Phase) -> Result<InRun<RunRead>, V2Error> {
    let caller = Caller::from_request_parts(parts, app).await?;
    let id = parameter(parts, phase.as_str()).await;
    Ok(InRun::find(app, caller, &run_of_phase(phase, &id)).await?)
}

/// A path parameter; a missing one names nothing, so it finds nothing.
pub async fn parameter(parts: &mut Parts, name: &str) -> String {
    let Ok(given) = RawPathParams::from_request_parts(parts, &()).await else {
        return String::new();
    };
    let found = given.iter().find(|(key, _)| *key == name);
    found.map_or_else(String::new, |(_, value)| value.to_owned())
}

/// The signed part of a path, which stands in for a credential. What cannot be read is signed by nobody.
pub struct Signature(pub String);

impl FromRequestParts<App> for Signature {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Self::Rejection> {
        Ok(Self(parameter(parts, "token").await))
    }
}

/// What the caller may do in a workspace, for documents that tell it.
pub async fn rights(app: &App, caller: &Caller, workspace: &Workspace) -> Result<Rights, V2Error> {
    let Principal::User(user) = &caller.principal else {
        return Ok(Rights::default());
    };
    let role = grants::role_for(
        &app.store.pool,
        user.organization,
        user.user,
        Some(workspace.project),
        Some(workspace.id),
    );
    Ok(Rights::of(role.await?))
}

/// The caller's organization.
pub async fn organization_of(app: &App, caller: &Caller) -> Result<Organization, V2Error> {
    organizations::by_id(&app.store.pool, caller.organization())
        .await?
        .ok_or_else(|| V2Error::not_found("organization"))
}

/// A workspace that a run's token reaches too.
pub type Reached<P> = May<InWorkspace<OrRun<P>>>;
