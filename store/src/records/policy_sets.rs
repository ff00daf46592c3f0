//! Policy sets: policies under one name, in numbered versions, and where they apply.
//!
//! The content of a version is opaque here; the `policy` room reads it. What a run was judged by must
//! stay readable, so versions never change and a set is archived, not deleted.

mod attachments;
mod bounds;
mod versions;

use serde_json::json;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgPool};
use stackship_domain::ids::{OrganizationId, PolicySetId};
use stackship_domain::{Actor, Name, Timestamp};

use super::{Page, commit, tell};
use crate::columns::Columns;
use crate::log::Context;
use crate::{Store, StoreError, Violation, clock};

pub use attachments::{
    Applying, AttachedVersion, Attaching, Attachment, applying, attach, attached_to, detach,
    list_attachments,
};
pub use bounds::ATTACHMENTS_MAX;
pub use versions::{
    CONTENT_BYTES_MAX, NewVersion, Published, VERSIONS_MAX, Version, by_bundle, content,
    list_versions, publish, version,
};

/// The most sets of an organization, archived ones not counted.
pub const SETS_MAX: usize = 1_000;

const TABLE: &str = "record.policy_sets";
const COLUMNS: &str = "policy_set_id, organization_id, name, created_by, created_at, archived_at, \
    (select max(number) from record.policy_set_versions version \
     where version.policy_set_id = policy_sets.policy_set_id) as newest";

/// Policies under one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySet {
    /// Its id.
    pub id: PolicySetId,
    /// The tenant.
    pub organization: OrganizationId,
    /// Its name, unique among the organization's sets that are not archived.
    pub name: Name,
    /// Who created it.
    pub created_by: Actor,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was archived.
    pub archived_at: Option<Timestamp>,
    /// The number of its newest version, which is the one that applies.
    pub newest: Option<u32>,
}

/// Creates a set without a version.
pub async fn create(
    store: &Store,
    context: &Context,
    name: &Name,
) -> Result<PolicySet, StoreError> {
    let id: PolicySetId = clock::fresh();
    let mut transaction = store.pool.begin().await?;
    hold(&mut transaction, context.organization).await?;
    let sets: i64 = sqlx::query_scalar(
        "select count(*) from record.policy_sets where organization_id = $1 and archived_at is null",
    )
    .bind(context.organization.to_string())
    .fetch_one(&mut *transaction)
    .await?;
    if usize::try_from(sets).is_ok_and(|sets| sets >= SETS_MAX) {
        return Err(full("policy sets in an organization", SETS_MAX));
    }
    let row = sqlx::query(&format!(
        "insert into record.policy_sets (policy_set_id, organization_id, name, created_by) \
         values ($1, $2, $3, $4) returning {COLUMNS}"
    ))
    .bind(id.to_string())
    .bind(context.organization.to_string())
    .bind(name.as_str())
    .bind(context.actor.to_string())
    .fetch_one(&mut *transaction)
    .await?;
    let detail = json!({"policy_set": id, "name": name});
    tell(&mut transaction, context, "policy_set_created", detail).await?;
    commit(store, transaction).await?;
    parse(&row)
}

/// The organization's set with this id, archived or not.
pub async fn by_id(
    pool: &PgPool,
    organization: OrganizationId,
    id: PolicySetId,
) -> Result<Option<PolicySet>, StoreError> {
    let row = sqlx::query(&format!(
        "select {COLUMNS} from record.policy_sets where organization_id = $1 and policy_set_id = $2"
    ))
    .bind(organization.to_string())
    .bind(id.to_string())
    .fetch_optional(pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// The organization's sets, oldest first, archived ones included.
pub async fn list(
    pool: &PgPool,
    organization: OrganizationId,
    page: &Page,
) -> Result<Vec<PolicySet>, StoreError> {
    let rows = sqlx::query(&format!(
        "select {COLUMNS} from record.policy_sets \
         where organization_id = $1 and policy_set_id collate \"C\" > $2 \
         order by policy_set_id collate \"C\" limit $3"
    ))
    .bind(organization.to_string())
    .bind(page.after())
    .bind(page.limit())
    .fetch_all(pool)
    .await?;
    rows.iter().map(parse).collect()
}

/// Archives a set that is attached nowhere. Returns nothing when there is no such set; archiving it
/// again changes nothing.
pub async fn archive(
    store: &Store,
    context: &Context,
    id: PolicySetId,
    reason: &str,
) -> Result<Option<PolicySet>, StoreError> {
    let mut transaction = store.pool.begin().await?;
    hold(&mut transaction, context.organization).await?;
    let archived = sqlx::query(
        "update record.policy_sets set archived_at = clock_timestamp() \
         where organization_id = $1 and policy_set_id = $2 and archived_at is null",
    )
    .bind(context.organization.to_string())
    .bind(id.to_string())
    .execute(&mut *transaction)
    .await?;
    if archived.rows_affected() == 1 {
        let detail = json!({"policy_set": id, "reason": reason});
        tell(&mut transaction, context, "policy_set_archived", detail).await?;
        commit(store, transaction).await?;
    } else {
        // Gives the connection back: looking takes another one.
        transaction.rollback().await?;
    }
    by_id(&store.pool, context.organization, id).await
}

/// Makes changes of an organization's policies wait for each other: how much applies to a workspace
/// depends on all of them.
async fn hold(
    connection: &mut PgConnection,
    organization: OrganizationId,
) -> Result<(), StoreError> {
    sqlx::query("select from record.organizations where organization_id = $1 for no key update")
        .bind(organization.to_string())
        .execute(connection)
        .await?;
    Ok(())
}

fn full(what: &'static str, max: usize) -> StoreError {
    Violation::Full { what, max }.into()
}

fn parse(row: &PgRow) -> Result<PolicySet, StoreError> {
    let columns = Columns::new(row, TABLE, "policy_set_id")?;
    let newest: Option<i32> = columns.plain("newest")?;
    Ok(PolicySet {
        id: columns.parsed("policy_set_id")?,
        organization: columns.parsed("organization_id")?,
        name: columns.parsed("name")?,
        created_by: columns.parsed("created_by")?,
        created_at: columns.time("created_at")?,
        archived_at: columns.time_or_null("archived_at")?,
        newest: newest
            .map(u32::try_from)
            .transpose()
            .map_err(|_| columns.inconsistent("newest"))?,
    })
}
