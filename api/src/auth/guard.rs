//! What guarded routes ask for besides a permission.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use stackship_store::records::{passwords, tokens};

use super::{Caller, Denied};
use crate::{ApiError, App};

/// A user, whatever they may do: for what is about the user alone.
#[derive(Debug, Clone)]
pub struct Person {
    /// Who calls.
    pub caller: Caller,
    /// The user behind the token.
    pub user: tokens::Principal,
}

impl FromRequestParts<App> for Person {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Denied> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let user = *caller.user().ok_or(Denied::RunToken)?;
        Ok(Self { caller, user })
    }
}

/// The person behind the token has proved who they are, and that is still good (S-ART-1).
#[derive(Debug, Clone, Copy)]
pub struct Proven(());

impl FromRequestParts<App> for Proven {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Denied> {
        let person = Person::from_request_parts(parts, app).await?;
        if passwords::is_proven(&app.store.pool, person.user.token).await? {
            Ok(Self(()))
        } else {
            Err(Denied::StepUp)
        }
    }
}

/// What may be downloaded is nobody else's business: whoever may not is told the same as whoever asks for
/// what is not there, down to the byte.
#[derive(Debug, Clone)]
pub struct Quietly<T>(pub T);

impl<T> FromRequestParts<App> for Quietly<T>
where
    T: FromRequestParts<App, Rejection = Denied>,
{
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Denied> {
        match T::from_request_parts(parts, app).await {
            Ok(may) => Ok(Self(may)),
            Err(Denied::NotFound { .. } | Denied::Forbidden { .. } | Denied::RunToken) => {
                Err(Denied::ARTIFACT)
            }
            Err(
                other @ (Denied::Unauthenticated
                | Denied::StepUp
                | Denied::Crowded
                | Denied::Store(_)),
            ) => Err(other),
        }
    }
}

/// The request has no query string: what is guarded takes nothing from an address, which logs and
/// histories keep (S-ART-1).
#[derive(Debug, Clone, Copy)]
pub struct NoQuery(());

impl FromRequestParts<App> for NoQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        match parts.uri.query() {
            None | Some("") => Ok(Self(())),
            Some(_) => Err(ApiError::unreadable(
                "QUERY_REFUSED",
                "",
                "this route takes no query parameters; say everything in the body",
            )),
        }
    }
}
