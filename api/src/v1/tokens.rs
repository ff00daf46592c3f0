//! API tokens: one's own, and those of service accounts for administrators.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use stackship_domain::Timestamp;
use stackship_domain::ids::{TokenId, UserId};
use stackship_store::records::tokens::{self, NewToken, Token};
use stackship_store::records::users::{self, UserKind};
use stackship_store::{StoreError, clock};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Data, List, created};
use super::body::{Body, Path, Query, plain_text};
use super::repeats::WithoutSecret;
use super::schema;
use crate::auth::{Denied, InOrganization, OrgAdmin, Tenant};
use crate::{ApiError, App};

const DESCRIPTION_CHARS_MAX: usize = 200;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(token_list, token_create))
        .routes(routes!(token_revoke))
}

/// A token, without its secret.
#[derive(Serialize, ToSchema)]
struct TokenView {
    /// Its id.
    #[schema(value_type = String)]
    id: TokenId,
    /// Whom it speaks for.
    #[schema(value_type = String)]
    user: UserId,
    /// What it is for.
    description: String,
    /// When it was created.
    #[schema(schema_with = schema::time)]
    created_at: Timestamp,
    /// When it ends by itself.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// When it was revoked.
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Timestamp>,
    /// When it was last presented, to the minute.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_used_at: Option<Timestamp>,
}

impl From<Token> for TokenView {
    fn from(token: Token) -> Self {
        Self {
            id: token.id,
            user: token.user,
            description: token.description,
            created_at: token.created_at,
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
            last_used_at: token.last_used_at,
        }
    }
}

/// A fresh token. The secret is shown this once: when the request is repeated under its
/// `Idempotency-Key`, it is null. Whoever lost it revokes the token and creates another.
#[derive(Serialize, ToSchema)]
struct FreshToken {
    /// Its id.
    #[schema(value_type = String)]
    id: TokenId,
    /// Whom it speaks for.
    #[schema(value_type = String)]
    user: UserId,
    /// What to present as `Authorization: Bearer …`; null in a repeated answer.
    token: Option<String>,
}

/// A token to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewTokenBody {
    /// What it is for.
    description: String,
    /// When it ends by itself; never when absent.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// Whom it speaks for: oneself when absent, or a service account (needs `org:admin`).
    #[schema(value_type = Option<String>)]
    user: Option<UserId>,
}

/// Whose tokens are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OwnerQuery {
    /// One's own when absent; those of others need `org:admin`.
    #[param(value_type = Option<String>)]
    user: Option<UserId>,
}

#[derive(Deserialize)]
struct TokenPath {
    token: String,
}

/// Lists the newest tokens of a user in the organization, at most 100.
#[utoipa::path(get, path = "/v1/organizations/{organization}/tokens", tag = "tokens",
    params(("organization" = String, Path), OwnerQuery),
    responses((status = 200, body = List<TokenView>)))]
async fn token_list(
    State(app): State<App>,
    tenant: Tenant,
    Query(query): Query<OwnerQuery>,
) -> Result<List<TokenView>, ApiError> {
    let user = query.user.unwrap_or(tenant.user.user);
    if user != tenant.user.user {
        administrator(&app, &tenant).await?;
    }
    let rows = tokens::list(&app.store.pool, tenant.organization.id, user).await?;
    Ok(List::new(rows.into_iter().map(Into::into).collect(), None))
}

/// Creates a token. Repeated under its `Idempotency-Key`, the request gets the same token's metadata,
/// without the secret.
#[utoipa::path(post, path = "/v1/organizations/{organization}/tokens", tag = "tokens",
    params(("organization" = String, Path)), request_body = NewTokenBody,
    responses((status = 201, body = Data<FreshToken>)))]
async fn token_create(
    State(app): State<App>,
    tenant: Tenant,
    Body(body): Body<NewTokenBody>,
) -> Result<Fresh, ApiError> {
    plain_text(
        "TOKEN_INVALID",
        "description",
        &body.description,
        1..=DESCRIPTION_CHARS_MAX,
    )?;
    if body.expires_at.is_some_and(|end| end <= clock::now()) {
        let message = "`expires_at` is in the past";
        return Err(ApiError::refused("TOKEN_INVALID", "expires_at", message));
    }
    let user = owner(&app, &tenant, body.user).await?;
    let new = NewToken {
        user,
        description: body.description,
        expires_at: body.expires_at,
    };
    let (id, secret) = tokens::create(&app.store, &tenant.caller.command(), &new).await?;
    let repeated = Data::from(FreshToken {
        id,
        user,
        token: None,
    });
    let repeated = serde_json::to_string(&repeated).map_err(StoreError::from)?;
    let token = Some(secret.expose().to_owned());
    let (status, fresh) = created(FreshToken { id, user, token });
    Ok((status, Extension(WithoutSecret(repeated)), fresh))
}

/// A fresh token, and what is kept of it.
type Fresh = (StatusCode, Extension<WithoutSecret>, Data<FreshToken>);

/// Whom a new token speaks for. No administrator gets a token that speaks for another person.
async fn owner(app: &App, tenant: &Tenant, asked: Option<UserId>) -> Result<UserId, ApiError> {
    let Some(user) = asked.filter(|user| *user != tenant.user.user) else {
        return Ok(tenant.user.user);
    };
    administrator(app, tenant).await?;
    let found = users::member(&app.store.pool, tenant.organization.id, user).await?;
    if found.is_some_and(|user| user.kind == UserKind::Service) {
        return Ok(user);
    }
    let message = "`user` names no service account; people create their own tokens";
    Err(ApiError::refused("TOKEN_INVALID", "user", message))
}

async fn administrator(app: &App, tenant: &Tenant) -> Result<InOrganization<OrgAdmin>, Denied> {
    let name = tenant.organization.name.as_str();
    InOrganization::find(app, tenant.caller.clone(), name).await
}

/// Revokes a token: one's own, or any of the organization's with `org:admin`.
#[utoipa::path(delete, path = "/v1/organizations/{organization}/tokens/{token}", tag = "tokens",
    params(("organization" = String, Path), ("token" = String, Path)),
    responses((status = 204)))]
async fn token_revoke(
    State(app): State<App>,
    tenant: Tenant,
    Path(path): Path<TokenPath>,
) -> Result<StatusCode, ApiError> {
    let hidden = || Denied::not_found("token");
    let id: TokenId = path.token.parse().map_err(|_| hidden())?;
    let own = tokens::list(&app.store.pool, tenant.organization.id, tenant.user.user).await?;
    if !own.iter().any(|token| token.id == id) {
        administrator(&app, &tenant).await?;
    }
    if tokens::revoke(&app.store, &tenant.caller.command(), id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(hidden().into())
    }
}
