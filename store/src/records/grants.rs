//! Grants: which role a user has, and where. A role holds for everything below its scope.

use serde::Serialize;
use serde_json::json;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgPool};
use stackship_domain::ids::{OrganizationId, ProjectId, UserId, WorkspaceId};
use stackship_domain::{Role, Timestamp};

use super::{Page, commit, tell};
use crate::columns::Columns;
use crate::log::Context;
use crate::{Store, StoreError, Violation};

/// Where a role holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Scope {
    /// In the whole organization.
    Organization,
    /// In one project.
    Project {
        /// Which one.
        project: ProjectId,
    },
    /// In one workspace.
    Workspace {
        /// Which one.
        workspace: WorkspaceId,
    },
}

impl Scope {
    /// What the columns of a row say, of which at most one is not null.
    pub(super) fn of(columns: &Columns<'_>) -> Result<Self, StoreError> {
        match (
            columns.parsed_or_null("project_id")?,
            columns.parsed_or_null("workspace_id")?,
        ) {
            (None, None) => Ok(Self::Organization),
            (Some(project), None) => Ok(Self::Project { project }),
            (None, Some(workspace)) => Ok(Self::Workspace { workspace }),
            (Some(_), Some(_)) => Err(columns.inconsistent("workspace_id")),
        }
    }

    pub(super) fn project(self) -> Option<String> {
        match self {
            Self::Project { project } => Some(project.to_string()),
            Self::Organization | Self::Workspace { .. } => None,
        }
    }

    pub(super) fn workspace(self) -> Option<String> {
        match self {
            Self::Workspace { workspace } => Some(workspace.to_string()),
            Self::Organization | Self::Project { .. } => None,
        }
    }
}

/// A role to be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// Where.
    pub scope: Scope,
    /// To whom.
    pub user: UserId,
    /// What.
    pub role: Role,
}

/// A granted role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantRow {
    /// Its number; pages go by it.
    pub number: i64,
    /// What was granted.
    pub grant: Grant,
    /// When.
    pub created_at: Timestamp,
}

/// Grants a role; it takes the place of the user's earlier role in the same scope. Who is an
/// organization's last owner stays it.
pub async fn grant(store: &Store, context: &Context, grant: Grant) -> Result<(), StoreError> {
    let mut transaction = store.pool.begin().await?;
    let owned = Owned::before(&mut transaction, context.organization, grant.scope).await?;
    // The scope must be the organization's own; a grant elsewhere would be somebody else's.
    let granted = sqlx::query(
        "insert into record.role_grants (organization_id, project_id, workspace_id, user_id, role) \
         select $1, $2, $3, $4, $5 \
         where ($2::text is null or exists ( \
                 select from record.projects where organization_id = $1 and project_id = $2)) \
           and ($3::text is null or exists ( \
                 select from record.workspaces where organization_id = $1 and workspace_id = $3)) \
         on conflict (organization_id, user_id, coalesce(project_id, ''), coalesce(workspace_id, '')) \
             do update set role = excluded.role",
    )
    .bind(context.organization.to_string())
    .bind(grant.scope.project())
    .bind(grant.scope.workspace())
    .bind(grant.user.to_string())
    .bind(grant.role.as_str())
    .execute(&mut *transaction)
    .await?;
    if granted.rows_affected() == 0 {
        return Err(Violation::NotNow.into());
    }
    owned.after(&mut transaction).await?;
    tell(&mut transaction, context, "role_granted", grant).await?;
    commit(store, transaction).await
}

/// Takes a user's role in a scope away, unless it is an organization's last owner's. Returns whether
/// there was one.
pub async fn revoke(
    store: &Store,
    context: &Context,
    scope: Scope,
    user: UserId,
) -> Result<bool, StoreError> {
    let mut transaction = store.pool.begin().await?;
    let owned = Owned::before(&mut transaction, context.organization, scope).await?;
    let revoked = sqlx::query(
        "delete from record.role_grants where organization_id = $1 and user_id = $2 \
           and project_id is not distinct from $3 and workspace_id is not distinct from $4",
    )
    .bind(context.organization.to_string())
    .bind(user.to_string())
    .bind(scope.project())
    .bind(scope.workspace())
    .execute(&mut *transaction)
    .await?;
    if revoked.rows_affected() == 0 {
        return Ok(false);
    }
    owned.after(&mut transaction).await?;
    tell(
        &mut transaction,
        context,
        "role_revoked",
        json!({"scope": scope, "user": user}),
    )
    .await?;
    commit(store, transaction).await?;
    Ok(true)
}

/// An organization whose roles one transaction changes at a time, and whether somebody owns it.
///
/// Two owners who take each other's role at the same moment each see the other one as an owner still:
/// only who waits for the other's end sees that none would be left.
struct Owned {
    organization: OrganizationId,
    was_owned: bool,
}

impl Owned {
    /// Takes the lock until the transaction ends, where the change could be about an owner.
    async fn before(
        connection: &mut PgConnection,
        organization: OrganizationId,
        scope: Scope,
    ) -> Result<Self, StoreError> {
        let mut was_owned = false;
        if scope == Scope::Organization {
            sqlx::query("select pg_advisory_xact_lock(hashtextextended($1, 0))")
                .bind(format!("owners of {organization}"))
                .execute(&mut *connection)
                .await?;
            was_owned = is_owned(connection, organization).await?;
        }
        Ok(Self {
            organization,
            was_owned,
        })
    }

    /// Refuses the change when it would leave nobody.
    async fn after(self, connection: &mut PgConnection) -> Result<(), StoreError> {
        if self.was_owned && !is_owned(connection, self.organization).await? {
            return Err(Violation::LastOwner.into());
        }
        Ok(())
    }
}

/// Whether the organization has an owner who can still do anything.
async fn is_owned(
    connection: &mut PgConnection,
    organization: OrganizationId,
) -> Result<bool, StoreError> {
    let is_owned = sqlx::query_scalar(
        "select exists (select from record.role_grants join record.users using (user_id) \
           where organization_id = $1 and project_id is null and workspace_id is null \
             and role = $2 and disabled_at is null)",
    )
    .bind(organization.to_string())
    .bind(Role::Owner.as_str())
    .fetch_one(connection)
    .await?;
    Ok(is_owned)
}

/// The organization's grants, in the order of their numbers.
pub async fn list(
    pool: &PgPool,
    organization: OrganizationId,
    page: &Page,
) -> Result<Vec<GrantRow>, StoreError> {
    // A page that follows something which is no number follows nothing.
    let after: i64 = page.after().parse().unwrap_or(0);
    let rows = sqlx::query(
        "select grant_id, grant_id::text as key, project_id, workspace_id, user_id, role, created_at \
         from record.role_grants where organization_id = $1 and grant_id > $2 order by grant_id limit $3",
    )
    .bind(organization.to_string())
    .bind(after)
    .bind(page.limit())
    .fetch_all(pool)
    .await?;
    rows.iter().map(parse).collect()
}

/// The strongest of the user's roles that hold here. A workspace tells its project itself.
pub async fn role_for(
    pool: &PgPool,
    organization: OrganizationId,
    user: UserId,
    project: Option<ProjectId>,
    workspace: Option<WorkspaceId>,
) -> Result<Option<Role>, StoreError> {
    let rows = sqlx::query(
        "select role, grant_id::text as key from record.role_grants \
         where organization_id = $1 and user_id = $2 \
           and (workspace_id is null or workspace_id = $4) \
           and (project_id is null or project_id = coalesce( \
                 (select project_id from record.workspaces where organization_id = $1 and workspace_id = $4), $3))",
    )
    .bind(organization.to_string())
    .bind(user.to_string())
    .bind(project.map(|project| project.to_string()))
    .bind(workspace.map(|workspace| workspace.to_string()))
    .fetch_all(pool)
    .await?;
    let roles: Vec<Role> = rows.iter().map(role).collect::<Result<_, _>>()?;
    Ok(roles.into_iter().max())
}

/// The user's roles in the organization, wherever they hold.
pub async fn roles_of(
    pool: &PgPool,
    organization: OrganizationId,
    user: UserId,
) -> Result<Vec<Role>, StoreError> {
    let rows = sqlx::query(
        "select distinct on (role) role, grant_id::text as key from record.role_grants \
         where organization_id = $1 and user_id = $2",
    )
    .bind(organization.to_string())
    .bind(user.to_string())
    .fetch_all(pool)
    .await?;
    rows.iter().map(role).collect()
}

fn role(row: &PgRow) -> Result<Role, StoreError> {
    Columns::new(row, "record.role_grants", "key")?.parsed("role")
}

fn parse(row: &PgRow) -> Result<GrantRow, StoreError> {
    let columns = Columns::new(row, "record.role_grants", "key")?;
    Ok(GrantRow {
        number: columns.plain("grant_id")?,
        grant: Grant {
            scope: Scope::of(&columns)?,
            user: columns.parsed("user_id")?,
            role: columns.parsed("role")?,
        },
        created_at: columns.time("created_at")?,
    })
}
