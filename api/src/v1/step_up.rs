//! Proving again who is there, before something guarded is asked for.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use stackship_domain::Timestamp;
use stackship_store::records::passwords::{self, Password};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::Data;
use super::body::Body;
use super::repeats::Unnamed;
use super::schema;
use crate::auth::Person;
use crate::{ApiError, App};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(step_up))
        .routes(routes!(password_change))
}

/// What shows who is there.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct StepUpBody {
    /// The caller's password.
    password: String,
}

/// A proof.
#[derive(Serialize, ToSchema)]
struct StepUpView {
    /// Until when the proof is good, for the token that was presented and for no other.
    #[schema(schema_with = schema::time)]
    good_until: Timestamp,
}

/// Proves who is behind the token, for 15 minutes: guarded downloads ask for it. After 10 failed tries
/// within 15 minutes no more are looked at until those are over.
#[utoipa::path(post, path = "/v1/user/step-up", tag = "user", request_body = StepUpBody,
    responses((status = 200, body = Data<StepUpView>)))]
async fn step_up(
    State(app): State<App>,
    person: Person,
    _unnamed: Unnamed,
    Body(body): Body<StepUpBody>,
) -> Result<Data<StepUpView>, ApiError> {
    let context = person.caller.command()?;
    let password = presented("password", body.password)?;
    let good_until = passwords::prove(&app.store, &context, person.user, password).await?;
    Ok(StepUpView { good_until }.into())
}

/// A new password in place of the present one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PasswordBody {
    /// The present password. A first one is set at the machine, by `stackship admin set-password`.
    current: String,
    /// The new one: at least 12 characters.
    new: String,
}

/// Changes the caller's password. Proofs made with the present one are void.
#[utoipa::path(put, path = "/v1/user/password", tag = "user", request_body = PasswordBody,
    responses((status = 200, body = Data<PasswordChanged>)))]
async fn password_change(
    State(app): State<App>,
    person: Person,
    Body(body): Body<PasswordBody>,
) -> Result<Data<PasswordChanged>, ApiError> {
    let new = Password::new(body.new)
        .map_err(|error| ApiError::refused("PASSWORD_INVALID", "new", format!("`new`: {error}")))?;
    let current = presented("current", body.current)?;
    let context = person.caller.command()?;
    passwords::prove(&app.store, &context, person.user, current).await?;
    passwords::set(&app.store, &context, person.user.user, new).await?;
    Ok(PasswordChanged { changed: true }.into())
}

/// That it was done.
#[derive(Serialize, ToSchema)]
struct PasswordChanged {
    /// Always true.
    changed: bool,
}

fn presented(field: &'static str, text: String) -> Result<Password, ApiError> {
    Password::presented(text).map_err(|error| {
        ApiError::refused("PASSWORD_INVALID", field, format!("`{field}`: {error}"))
    })
}
