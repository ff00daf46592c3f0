//! Organizations: the tenants.

use serde_json::json;
use sqlx::PgPool;
use sqlx::postgres::PgRow;
use stackship_domain::ids::{OrganizationId, UserId};
use stackship_domain::{Name, Role, Timestamp};

use super::{Origin, commit, tell};
use crate::columns::Columns;
use crate::{Store, StoreError, clock};

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Organization {
    /// Its id.
    pub id: OrganizationId,
    /// Its name, unique in this installation.
    pub name: Name,
    /// When it was created.
    pub created_at: Timestamp,
}

/// Creates an organization and makes `owner` its owner.
pub async fn create(
    store: &Store,
    origin: &Origin,
    name: &Name,
    owner: UserId,
) -> Result<OrganizationId, StoreError> {
    let id: OrganizationId = clock::fresh();
    let context = origin.within(id);
    let mut transaction = store.pool.begin().await?;
    sqlx::query("insert into record.organizations (organization_id, name) values ($1, $2)")
        .bind(id.to_string())
        .bind(name.as_str())
        .execute(&mut *transaction)
        .await?;
    sqlx::query(
        "insert into record.role_grants (organization_id, user_id, role) values ($1, $2, $3)",
    )
    .bind(id.to_string())
    .bind(owner.to_string())
    .bind(Role::Owner.as_str())
    .execute(&mut *transaction)
    .await?;
    tell(
        &mut transaction,
        &context,
        "organization_created",
        json!({"organization": id, "name": name}),
    )
    .await?;
    let granted = json!({"scope": {"kind": "organization"}, "user": owner, "role": Role::Owner});
    tell(&mut transaction, &context, "role_granted", granted).await?;
    commit(store, transaction).await?;
    Ok(id)
}

/// The organization with this name.
pub async fn by_name(pool: &PgPool, name: &Name) -> Result<Option<Organization>, StoreError> {
    let row = sqlx::query(
        "select organization_id, name, created_at from record.organizations where name = $1",
    )
    .bind(name.as_str())
    .fetch_optional(pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// The organization with this id.
pub async fn by_id(pool: &PgPool, id: OrganizationId) -> Result<Option<Organization>, StoreError> {
    let row =
        sqlx::query("select organization_id, name, created_at from record.organizations where organization_id = $1")
            .bind(id.to_string())
            .fetch_optional(pool)
            .await?;
    row.as_ref().map(parse).transpose()
}

fn parse(row: &PgRow) -> Result<Organization, StoreError> {
    let columns = Columns::new(row, "record.organizations", "organization_id")?;
    Ok(Organization {
        id: columns.parsed("organization_id")?,
        name: columns.parsed("name")?,
        created_at: columns.time("created_at")?,
    })
}
