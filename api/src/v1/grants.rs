//! Who may do what: roles, granted to members of the organization.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use stackship_domain::ids::{ProjectId, UserId, WorkspaceId};
use stackship_domain::{Role, Timestamp};
use stackship_store::records::grants::{self, Grant, GrantRow, Scope};
use stackship_store::records::users;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Data, List, created};
use super::body::{Body, PageQuery, Path, Query};
use super::schema;
use super::scope::{self, ScopeView};
use crate::auth::{Denied, InOrganization, OrgAdmin};
use crate::{ApiError, App};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(grant_list, grant_create))
        .routes(routes!(grant_delete))
}

/// A role to be granted; it takes the place of the user's earlier role in the same scope.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewGrant {
    /// To whom.
    #[schema(value_type = String)]
    user: UserId,
    /// What.
    #[schema(schema_with = schema::role)]
    role: Role,
    /// Where.
    scope: ScopeView,
}

/// A granted role.
#[derive(Serialize, ToSchema)]
struct GrantView {
    /// To whom.
    #[schema(value_type = String)]
    user: UserId,
    /// What.
    #[schema(schema_with = schema::role)]
    role: Role,
    /// Where.
    scope: ScopeView,
    /// When; absent in the answer to the grant itself.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Timestamp>,
}

impl From<GrantRow> for GrantView {
    fn from(row: GrantRow) -> Self {
        Self {
            user: row.grant.user,
            role: row.grant.role,
            scope: row.grant.scope.into(),
            created_at: Some(row.created_at),
        }
    }
}

/// In which scope a role is taken away: the organization, unless one of these is given.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ScopeQuery {
    /// The project whose grant is meant.
    #[param(value_type = Option<String>)]
    project: Option<ProjectId>,
    /// The workspace whose grant is meant.
    #[param(value_type = Option<String>)]
    workspace: Option<WorkspaceId>,
}

impl ScopeQuery {
    fn scope(&self) -> Result<Scope, ApiError> {
        match (self.project, self.workspace) {
            (None, None) => Ok(Scope::Organization),
            (Some(project), None) => Ok(Scope::Project { project }),
            (None, Some(workspace)) => Ok(Scope::Workspace { workspace }),
            (Some(_), Some(_)) => Err(ApiError::unreadable(
                "QUERY_INVALID",
                "workspace",
                "name `project` or `workspace`, not both",
            )),
        }
    }
}

#[derive(Deserialize)]
struct UserPath {
    user: String,
}

/// Lists the organization's granted roles, oldest first.
#[utoipa::path(get, path = "/v1/organizations/{organization}/grants", tag = "members",
    params(("organization" = String, Path), PageQuery),
    responses((status = 200, body = List<GrantView>)))]
async fn grant_list(
    State(app): State<App>,
    may: InOrganization<OrgAdmin>,
    Query(query): Query<PageQuery>,
) -> Result<List<GrantView>, ApiError> {
    let page = query.page(|cursor| cursor.parse::<u32>().is_ok())?;
    let rows = grants::list(&app.store.pool, may.organization.id, &page).await?;
    let next = query.next(&rows, |row| row.number.to_string());
    Ok(List::new(rows.into_iter().map(Into::into).collect(), next))
}

/// Grants a role.
#[utoipa::path(post, path = "/v1/organizations/{organization}/grants", tag = "members",
    params(("organization" = String, Path)), request_body = NewGrant,
    responses((status = 201, body = Data<GrantView>)))]
async fn grant_create(
    State(app): State<App>,
    may: InOrganization<OrgAdmin>,
    Body(body): Body<NewGrant>,
) -> Result<(StatusCode, Data<GrantView>), ApiError> {
    let (user, role, scope) = (body.user, body.role, Scope::from(body.scope));
    let context = may.caller.command()?;
    keeps_an_owner(&may, user, scope)?;
    is_here(&app, &may, user, scope).await?;
    grants::grant(&app.store, &context, Grant { scope, user, role }).await?;
    let (scope, created_at) = (body.scope, None);
    Ok(created(GrantView {
        user,
        role,
        scope,
        created_at,
    }))
}

/// A grant is about a member and something of the organization itself. What is elsewhere is refused
/// like what is nowhere.
async fn is_here(
    app: &App,
    may: &InOrganization<OrgAdmin>,
    user: UserId,
    scope: Scope,
) -> Result<(), ApiError> {
    let (pool, organization) = (&app.store.pool, may.organization.id);
    if users::member(pool, organization, user).await?.is_none() {
        let message =
            "`user` names no member of the organization; list them, or create a service account";
        return Err(ApiError::refused("USER_UNKNOWN", "user", message));
    }
    scope::is_here(app, organization, scope).await
}

/// Takes a role away.
#[utoipa::path(delete, path = "/v1/organizations/{organization}/grants/{user}", tag = "members",
    params(("organization" = String, Path), ("user" = String, Path), ScopeQuery),
    responses((status = 204)))]
async fn grant_delete(
    State(app): State<App>,
    may: InOrganization<OrgAdmin>,
    Path(path): Path<UserPath>,
    Query(query): Query<ScopeQuery>,
) -> Result<StatusCode, ApiError> {
    let hidden = || Denied::not_found("grant");
    let user: UserId = path.user.parse().map_err(|_| hidden())?;
    let scope = query.scope()?;
    keeps_an_owner(&may, user, scope)?;
    let context = may.caller.command()?;
    if grants::revoke(&app.store, &context, scope, user).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(hidden().into())
    }
}

/// Nobody changes their own role in the organization: a slip would lock them out. That an owner is left
/// when two take each other's role at the same moment is decided where it is written.
fn keeps_an_owner(
    may: &InOrganization<OrgAdmin>,
    user: UserId,
    scope: Scope,
) -> Result<(), ApiError> {
    if scope == Scope::Organization && may.user()? == user {
        let message = "`user` is you: another owner has to change your role in the organization";
        return Err(ApiError::refused("GRANT_OWN", "user", message));
    }
    Ok(())
}
