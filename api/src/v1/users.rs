//! The members of an organization, and its service accounts. People are created by an operator.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use stackship_domain::Timestamp;
use stackship_domain::ids::UserId;
use stackship_store::records::users::{self, NewUser, User, UserKind};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Data, List, created};
use super::body::{Body, PageQuery, Query, plain_text};
use super::schema;
use crate::auth::{Denied, InOrganization, OrgAdmin};
use crate::{ApiError, App};

const NAME_CHARS_MAX: usize = 200;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(user_list, user_create))
}

/// A service account to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewUserBody {
    /// Unique among the organization's service accounts: letters, digits, `.`, `_`, `-`, `+` and `@`.
    login: String,
    /// What others see.
    display_name: String,
}

/// A member: a person or a service account.
#[derive(Serialize, ToSchema)]
struct UserView {
    /// Its id.
    #[schema(value_type = String)]
    id: UserId,
    /// What it signs in with.
    login: String,
    /// What others see.
    display_name: String,
    /// `person` or `service`.
    #[schema(schema_with = schema::user_kind)]
    kind: &'static str,
    /// When it was created.
    #[schema(schema_with = schema::time)]
    created_at: Timestamp,
    /// Since when it may do nothing any more.
    #[schema(value_type = Option<String>, format = DateTime)]
    disabled_at: Option<Timestamp>,
}

impl From<User> for UserView {
    fn from(user: User) -> Self {
        Self {
            id: user.id,
            login: user.login,
            display_name: user.display_name,
            kind: user.kind.as_str(),
            created_at: user.created_at,
            disabled_at: user.disabled_at,
        }
    }
}

/// Creates a service account. It may do nothing until a role is granted to it.
#[utoipa::path(post, path = "/v1/organizations/{organization}/users", tag = "members",
    params(("organization" = String, Path)), request_body = NewUserBody,
    responses((status = 201, body = Data<UserView>)))]
async fn user_create(
    State(app): State<App>,
    may: InOrganization<OrgAdmin>,
    Body(body): Body<NewUserBody>,
) -> Result<(StatusCode, Data<UserView>), ApiError> {
    users::check_login(&body.login).map_err(|invalid| {
        ApiError::refused("USER_INVALID", "login", format!("`login`: {invalid}"))
    })?;
    plain_text(
        "USER_INVALID",
        "display_name",
        &body.display_name,
        1..=NAME_CHARS_MAX,
    )?;
    let new = NewUser {
        login: body.login,
        display_name: body.display_name,
        kind: UserKind::Service,
    };
    let id = users::create(&app.store, Some(&may.caller.command()?), &new).await?;
    let user = users::member(&app.store.pool, may.organization.id, id).await?;
    Ok(created(user.ok_or(Denied::not_found("user"))?.into()))
}

/// Lists the organization's members, oldest first: its service accounts and whoever has a role in it.
#[utoipa::path(get, path = "/v1/organizations/{organization}/users", tag = "members",
    params(("organization" = String, Path), PageQuery),
    responses((status = 200, body = List<UserView>)))]
async fn user_list(
    State(app): State<App>,
    may: InOrganization<OrgAdmin>,
    Query(query): Query<PageQuery>,
) -> Result<List<UserView>, ApiError> {
    let page = query.page(|cursor| cursor.parse::<UserId>().is_ok())?;
    let rows = users::members(&app.store.pool, may.organization.id, &page).await?;
    let next = query.next(&rows, |user| user.id.to_string());
    Ok(List::new(rows.into_iter().map(Into::into).collect(), next))
}
