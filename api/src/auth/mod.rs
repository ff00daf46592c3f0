//! Who calls, and what they may do. A handler that needs a permission takes it as an argument, so it
//! cannot be reached without the check.

mod anywhere;
mod denied;
mod guard;
mod permissions;
mod scopes;
mod viewer;

pub use anywhere::Anywhere;
pub use denied::Denied;
pub use guard::{NoQuery, Person, Proven, Quietly};
pub use permissions::{
    ArtifactRead, ArtifactReadSensitive, AuditRead, OrRun, OrgAdmin, OrgRead, PolicyOverrideSoft,
    PolicyRead, PolicyWrite, ProjectRead, ProjectWrite, Requires, RunApprove, RunCancel, RunCreate,
    RunRead, RunRecover, StateRead, StateRecover, StateWrite, VariableRead, VariableWrite,
    WorkspaceForceUnlock, WorkspaceLock, WorkspaceRead, WorkspaceWrite,
};
pub use scopes::{
    InConfiguration, InOrganization, InPolicySet, InProject, InRun, InWorkspace, Tenant,
};
pub use viewer::Viewer;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use stackship_domain::Actor;
use stackship_domain::ids::{OrganizationId, TokenId};
use stackship_store::attempts::{self, RunPrincipal};
use stackship_store::clock;
use stackship_store::log::Context;
use stackship_store::records::tokens;

use crate::head::Judged;
use crate::request_id::RequestId;
use crate::serving::{Account, AtHand};
use crate::{ApiError, App};

/// The longest credential that is looked at, in bytes.
const CREDENTIAL_BYTES_MAX: usize = 256;

/// Whom a credential speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Principal {
    /// A person or a service account, within one organization.
    User(tokens::Principal),
    /// One phase of one run.
    Run(RunPrincipal),
}

/// Whoever presents a live credential. That says nothing about what they may do.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Whom the credential speaks for.
    pub principal: Principal,
    /// The request's name.
    pub request_id: String,
    /// Names the command of this request: fresh, unless the caller names its request.
    pub command_id: String,
    /// Whether nothing may be carried out for the request: the caller's name for it is taken, so that it
    /// may only be answered as before, or its head alone is judged.
    pub is_repeated: bool,
}

impl Caller {
    /// The organization that the credential opens.
    pub const fn organization(&self) -> OrganizationId {
        match &self.principal {
            Principal::User(user) => user.organization,
            Principal::Run(run) => run.organization,
        }
    }

    /// The user, unless a run calls.
    pub const fn user(&self) -> Option<&tokens::Principal> {
        match &self.principal {
            Principal::User(user) => Some(user),
            Principal::Run(_) => None,
        }
    }

    /// On whose account the request is: a user's, whichever token it comes with, as a user makes as many
    /// tokens as they like.
    pub const fn account(&self) -> Account {
        match &self.principal {
            Principal::User(user) => Account::User(user.organization, user.user),
            Principal::Run(run) => Account::Run(run.organization, run.run),
        }
    }

    /// Who causes what this request leads to.
    pub const fn actor(&self) -> Actor {
        match &self.principal {
            Principal::User(user) => Actor::User(user.user),
            Principal::Run(_) => Actor::System,
        }
    }

    /// Whom a token of the organization speaks for, while it is live: for what it was used to hand out.
    pub async fn behind(
        app: &App,
        organization: OrganizationId,
        token: TokenId,
    ) -> Result<Option<Self>, Denied> {
        let user = tokens::live(&app.store.pool, organization, token).await?;
        Ok(user.map(|user| Self {
            principal: Principal::User(user),
            request_id: clock::fresh_text(),
            command_id: clock::fresh_text(),
            is_repeated: false,
        }))
    }

    /// The context of a command with another name than the request's own.
    pub fn context(&self, command_id: impl Into<String>) -> Context {
        Context {
            organization: self.organization(),
            actor: self.actor(),
            request_id: self.request_id.clone(),
            command_id: command_id.into(),
        }
    }

    /// The context of the request's own command, for whoever is about to carry it out. When it was
    /// carried out before, there is none: what a repeated request may get is its first answer, and it
    /// has come this far only if the caller may still ask for it.
    pub fn command(&self) -> Result<Context, ApiError> {
        if self.is_repeated {
            return Err(ApiError::Repeated);
        }
        Ok(self.context(self.command_id.clone()))
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Denied> {
        if let Some(known) = parts.extensions.get::<Self>() {
            return Ok(known.clone());
        }
        let presented = bearer(&parts.headers).ok_or(Denied::Unauthenticated)?;
        let principal = principal(app, presented)
            .await?
            .ok_or(Denied::Unauthenticated)?;
        let request_id = parts
            .extensions
            .get::<RequestId>()
            .map_or_else(clock::fresh_text, |id| id.0.clone());
        let caller = Self {
            principal,
            request_id,
            command_id: clock::fresh_text(),
            is_repeated: parts.extensions.get::<Judged>().is_some(),
        };
        if let Some(at_hand) = parts.extensions.get::<AtHand>() {
            at_hand.is_of(caller.account())?;
        }
        parts.extensions.insert(caller.clone());
        Ok(caller)
    }
}

async fn principal(app: &App, presented: &str) -> Result<Option<Principal>, Denied> {
    if let Some(user) = tokens::authenticate(&app.store, presented).await? {
        return Ok(Some(Principal::User(user)));
    }
    let run = attempts::by_run_token(&app.store, presented).await?;
    Ok(run.map(Principal::Run))
}

/// The credential in `Authorization: Bearer …`.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, credential) = value.split_once(' ')?;
    let credential = credential.trim();
    let fits = !credential.is_empty() && credential.len() <= CREDENTIAL_BYTES_MAX;
    (scheme.eq_ignore_ascii_case("bearer") && fits).then_some(credential)
}
