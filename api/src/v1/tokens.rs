//! API tokens: one's own, and those of service accounts for administrators.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use stackship_domain::Timestamp;
use stackship_domain::ids::{TokenId, UserId};
use stackship_store::records::passwords;
use stackship_store::records::tokens::{self, Descent, MintError, NewToken, Token};
use stackship_store::records::users::{self, UserKind};
use stackship_store::{StoreError, clock};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Data, List, created};
use super::body::{Body, PageQuery, Path, Query, plain_text, time};
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
    /// The token that it was made with: it is revoked with that one. Null when it stands by itself.
    #[schema(value_type = Option<String>)]
    minted_by: Option<TokenId>,
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
            minted_by: token.minted_by,
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
    /// When it ends by itself; never when absent. No later than the token that is presented, if that
    /// one ends.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "time")]
    expires_at: Option<Timestamp>,
    /// Whom it speaks for: oneself when absent, or a service account (needs `org:admin`).
    #[schema(value_type = Option<String>)]
    user: Option<UserId>,
    /// Whether it stands by itself: it may outlive the token that is presented, and is not revoked with
    /// it. Needs a proof not older than 15 minutes (`/v1/user/step-up`).
    #[serde(default)]
    #[schema(default = false)]
    independent: bool,
}

/// What was revoked.
#[derive(Serialize, ToSchema)]
struct Revocation {
    /// The token.
    #[schema(value_type = String)]
    id: TokenId,
    /// How many live tokens that descend from it were revoked with it.
    descendants: usize,
}

/// Whose tokens are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OwnerQuery {
    /// One's own when absent; those of others need `org:admin`.
    #[param(value_type = Option<String>)]
    user: Option<UserId>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many tokens at most: 1 to 100, 100 when absent.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u16>,
}

#[derive(Deserialize)]
struct TokenPath {
    token: String,
}

/// Lists a user's tokens in the organization, newest first, revoked ones included.
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
    let (cursor, limit) = (query.cursor, query.limit);
    let part = PageQuery { cursor, limit };
    let page = part.page(|cursor| cursor.parse::<TokenId>().is_ok())?;
    let rows = tokens::list(&app.store.pool, tenant.organization.id, user, &page).await?;
    let next = part.next(&rows, |token| token.id.to_string());
    Ok(List::new(rows.into_iter().map(Into::into).collect(), next))
}

/// Creates a token. Unless it is `independent`, it ends with the token that is presented here: it is
/// revoked with it and has to expire with it. Repeated under its `Idempotency-Key`, the request gets the
/// same token's metadata, without the secret.
#[utoipa::path(post, path = "/v1/organizations/{organization}/tokens", tag = "tokens",
    params(("organization" = String, Path)), request_body = NewTokenBody,
    responses((status = 201, body = Data<FreshToken>)))]
async fn token_create(
    State(app): State<App>,
    tenant: Tenant,
    Body(body): Body<NewTokenBody>,
) -> Result<Fresh, ApiError> {
    let user = owner(&app, &tenant, body.user).await?;
    let descent = descent(&app, &tenant, body.independent).await?;
    let context = tenant.caller.command()?;
    let new = new_token(user, descent, body)?;
    let made = tokens::create(&app.store, &context, &new).await;
    let (id, secret) = made.map_err(not_made)?;
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

/// What a token comes from that is made with the one that is presented. To stand by itself it takes more
/// than that one: whoever stole it must not be able to.
async fn descent(app: &App, tenant: &Tenant, independent: bool) -> Result<Descent, ApiError> {
    let presented = tenant.user.token;
    if !independent {
        return Ok(Descent::Of(presented));
    }
    if passwords::is_proven(&app.store.pool, presented).await? {
        Ok(Descent::Apart(presented))
    } else {
        Err(Denied::StepUp.into())
    }
}

fn new_token(user: UserId, descent: Descent, body: NewTokenBody) -> Result<NewToken, ApiError> {
    let (description, expires_at) = (body.description, body.expires_at);
    let bounds = 1..=DESCRIPTION_CHARS_MAX;
    plain_text("TOKEN_INVALID", "description", &description, bounds)?;
    if expires_at.is_some_and(|end| end <= clock::now()) {
        let message = "`expires_at` is in the past";
        return Err(ApiError::refused("TOKEN_INVALID", "expires_at", message));
    }
    Ok(NewToken {
        user,
        description,
        expires_at,
        descent,
    })
}

fn not_made(error: MintError) -> ApiError {
    match error {
        MintError::MinterOver => Denied::Unauthenticated.into(),
        MintError::OutlivesMinter { end } => {
            let message = format!(
                "the token that you present ends at {end}, and this one with it: say an `expires_at` no later than that"
            );
            ApiError::refused("TOKEN_INVALID", "expires_at", message)
        }
        MintError::Store(error) => error.into(),
    }
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

/// Revokes a token, and every live one that descends from it: one's own, or any of the organization's
/// with `org:admin`.
#[utoipa::path(delete, path = "/v1/organizations/{organization}/tokens/{token}", tag = "tokens",
    params(("organization" = String, Path), ("token" = String, Path)),
    responses((status = 200, body = Data<Revocation>)))]
async fn token_revoke(
    State(app): State<App>,
    tenant: Tenant,
    Path(path): Path<TokenPath>,
) -> Result<Data<Revocation>, ApiError> {
    let hidden = || Denied::not_found("token");
    let id: TokenId = path.token.parse().map_err(|_| hidden())?;
    let user = tokens::user_of(&app.store.pool, tenant.organization.id, id).await?;
    if user != Some(tenant.user.user) {
        administrator(&app, &tenant).await?;
    }
    let revoked = tokens::revoke(&app.store, &tenant.caller.command()?, id).await?;
    let descendants = revoked.ok_or_else(hidden)?.descendants;
    Ok(Revocation { id, descendants }.into())
}
