//! A permission that may hold anywhere, for requests that name their place in the body.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use stackship_store::records::grants;

use super::{Caller, Denied, Principal, Requires};
use crate::App;

/// May do `P` somewhere in their own organization. Whoever may do it nowhere is told so from the head:
/// no body could name a place where it is theirs to do. The handler still asks for `P` in the place that
/// the body names.
#[derive(Debug, Clone)]
pub struct Anywhere<P> {
    /// Who may.
    pub caller: Caller,
    permission: PhantomData<fn() -> P>,
}

impl<P: Requires> FromRequestParts<App> for Anywhere<P> {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Denied> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let Principal::User(user) = &caller.principal else {
            return Err(Denied::RunToken);
        };
        let roles = grants::roles_of(&app.store.pool, user.organization, user.user).await?;
        let is_granted = roles.iter().any(|role| role.grants(P::PERMISSION));
        match (is_granted, roles.is_empty()) {
            (true, _) => Ok(Self {
                caller,
                permission: PhantomData,
            }),
            (false, false) => Err(Denied::Forbidden {
                permission: P::PERMISSION,
            }),
            (false, true) => Err(Denied::not_found("organization")),
        }
    }
}
