//! Versions of a set: numbered from 1, never changed, the newest one applies.

use serde_json::json;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgExecutor, PgPool};
use stackship_domain::ids::{ObjectId, OrganizationId, PolicySetId};
use stackship_domain::{Actor, Sha256Digest, Timestamp};

use super::{bounds, full, hold};
use crate::columns::Columns;
use crate::log::Context;
use crate::objects::{NewObject, ObjectKind};
use crate::records::{Page, commit, tell};
use crate::{Store, StoreError};

/// The most versions of a set.
pub const VERSIONS_MAX: usize = 10_000;
/// The most bytes of a version's stored content.
pub const CONTENT_BYTES_MAX: u64 = 8 * 1024 * 1024;

const TABLE: &str = "record.policy_set_versions";

/// A version to be published.
#[derive(Debug, Clone, Copy)]
pub struct NewVersion<'a> {
    /// What pins it.
    pub bundle: Sha256Digest,
    /// The author's own name for it.
    pub label: &'a str,
    /// How many policies it has, disabled ones included.
    pub policies: usize,
    /// The bytes to store.
    pub content: &'a [u8],
}

/// A version of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The set.
    pub set: PolicySetId,
    /// Its number, from 1.
    pub number: u32,
    /// What pins it.
    pub bundle: Sha256Digest,
    /// The author's own name for it.
    pub label: String,
    /// How many policies it has, disabled ones included.
    pub policies: u32,
    /// The stored content.
    pub object: ObjectId,
    /// Who uploaded it.
    pub uploaded_by: Actor,
    /// When it was uploaded.
    pub uploaded_at: Timestamp,
}

/// What publishing came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// There is a new version.
    New(Version),
    /// The newest version has this content already.
    Same(Version),
}

impl Published {
    /// The version that applies from now on.
    pub const fn version(&self) -> &Version {
        match self {
            Self::New(version) | Self::Same(version) => version,
        }
    }
}

/// Publishes a version, unless the newest one has the same content and can be read. The content of an
/// older version makes a new one: that is how one goes back.
pub async fn publish(
    store: &Store,
    context: &Context,
    set: PolicySetId,
    new: NewVersion<'_>,
) -> Result<Published, StoreError> {
    let mut unreadable = None;
    if let Some(newest) = newest(&store.pool, context.organization, set).await?
        && newest.bundle == new.bundle
    {
        if is_readable(store, context.organization, &newest, new.content).await? {
            return Ok(Published::Same(newest));
        }
        unreadable = Some(newest.number);
    }
    let object = NewObject {
        organization: context.organization,
        workspace: None,
        kind: ObjectKind::PolicyBundle,
        bytes_max: CONTENT_BYTES_MAX,
    };
    let object = store.objects.put_bytes(object, new.content).await?.id;
    let candidate = Candidate {
        set,
        new,
        object,
        unreadable,
    };
    let published = record(store, context, &candidate).await;
    if !matches!(published, Ok(Published::New(_)))
        && let Err(error) = forget(store, context.organization, object).await
    {
        // The caller needs to hear of the first failure, or of none.
        tracing::warn!(object.id = %object, error = %error, "Content that became no version was kept");
    }
    published
}

/// The organization's version with this number.
pub async fn version(
    pool: &PgPool,
    organization: OrganizationId,
    set: PolicySetId,
    number: u32,
) -> Result<Option<Version>, StoreError> {
    let row = sqlx::query(
        "select *, policy_set_id || '/' || number as key from record.policy_set_versions \
         where organization_id = $1 and policy_set_id = $2 and number = $3",
    )
    .bind(organization.to_string())
    .bind(set.to_string())
    .bind(i64::from(number))
    .fetch_optional(pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// The newest of the organization's versions, of whichever set, that this digest pins.
pub async fn by_bundle(
    pool: &PgPool,
    organization: OrganizationId,
    bundle: Sha256Digest,
) -> Result<Option<Version>, StoreError> {
    let row = sqlx::query(
        "select *, policy_set_id || '/' || number as key from record.policy_set_versions \
         where organization_id = $1 and bundle = $2 order by uploaded_at desc, number desc limit 1",
    )
    .bind(organization.to_string())
    .bind(bundle.as_bytes().as_slice())
    .fetch_optional(pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// The versions of a set, oldest first; pages go by their numbers.
pub async fn list_versions(
    pool: &PgPool,
    organization: OrganizationId,
    set: PolicySetId,
    page: &Page,
) -> Result<Vec<Version>, StoreError> {
    // A page that follows something which is no number follows nothing.
    let after: i64 = page.after().parse().unwrap_or(0);
    let rows = sqlx::query(
        "select *, policy_set_id || '/' || number as key from record.policy_set_versions \
         where organization_id = $1 and policy_set_id = $2 and number > $3 order by number limit $4",
    )
    .bind(organization.to_string())
    .bind(set.to_string())
    .bind(after)
    .bind(page.limit())
    .fetch_all(pool)
    .await?;
    rows.iter().map(parse).collect()
}

/// The stored content of a version, as it was published. Whoever judges by it compares its digest
/// with the pinned one.
pub async fn content(
    store: &Store,
    organization: OrganizationId,
    object: ObjectId,
) -> Result<Vec<u8>, StoreError> {
    store
        .objects
        .read_to_vec(
            organization,
            object,
            ObjectKind::PolicyBundle,
            CONTENT_BYTES_MAX,
        )
        .await
}

async fn newest(
    executor: impl PgExecutor<'_>,
    organization: OrganizationId,
    set: PolicySetId,
) -> Result<Option<Version>, StoreError> {
    let row = sqlx::query(
        "select *, policy_set_id || '/' || number as key from record.policy_set_versions \
         where organization_id = $1 and policy_set_id = $2 order by number desc limit 1",
    )
    .bind(organization.to_string())
    .bind(set.to_string())
    .fetch_optional(executor)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// Whether a version still holds this content. A database that does not answer is no verdict on it.
async fn is_readable(
    store: &Store,
    organization: OrganizationId,
    version: &Version,
    wanted: &[u8],
) -> Result<bool, StoreError> {
    match content(store, organization, version.object).await {
        Ok(found) => Ok(found == wanted),
        Err(StoreError::Object(error)) => {
            tracing::error!(policy_set.id = %version.set, version.number, error = %error,
                "A policy version could not be read");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Stored content that may become a version.
struct Candidate<'a> {
    set: PolicySetId,
    new: NewVersion<'a>,
    object: ObjectId,
    /// The newest version, when it has the same content and cannot be read any more.
    unreadable: Option<u32>,
}

async fn record(
    store: &Store,
    context: &Context,
    candidate: &Candidate<'_>,
) -> Result<Published, StoreError> {
    let (set, new) = (candidate.set, &candidate.new);
    let mut transaction = store.pool.begin().await?;
    hold(&mut transaction, context.organization).await?;
    let newest = newest(&mut *transaction, context.organization, set).await?;
    let number = newest.as_ref().map_or(1, |newest| newest.number + 1);
    // Somebody else was faster with the same content.
    if let Some(newest) = newest
        && newest.bundle == new.bundle
        && candidate.unreadable != Some(newest.number)
    {
        return Ok(Published::Same(newest));
    }
    if usize::try_from(number).is_ok_and(|number| number > VERSIONS_MAX) {
        return Err(full("versions of a policy set", VERSIONS_MAX));
    }
    let version = insert(&mut transaction, context, candidate, number).await?;
    bounds::check(&mut transaction, context.organization).await?;
    let detail = json!({
        "policy_set": set, "version": number, "bundle": new.bundle, "label": new.label,
        "policies": new.policies,
    });
    let name = "policy_set_version_uploaded";
    tell(&mut transaction, context, name, detail).await?;
    commit(store, transaction).await?;
    Ok(Published::New(version))
}

async fn insert(
    connection: &mut PgConnection,
    context: &Context,
    candidate: &Candidate<'_>,
    number: u32,
) -> Result<Version, StoreError> {
    let new = &candidate.new;
    let row = sqlx::query(
        "insert into record.policy_set_versions \
         (organization_id, policy_set_id, number, bundle, label, policies, object_id, uploaded_by) \
         values ($1, $2, $3, $4, $5, $6, $7, $8) returning *, policy_set_id || '/' || number as key",
    )
    .bind(context.organization.to_string())
    .bind(candidate.set.to_string())
    .bind(i64::from(number))
    .bind(new.bundle.as_bytes().as_slice())
    .bind(new.label)
    .bind(i32::try_from(new.policies).unwrap_or(i32::MAX))
    .bind(candidate.object.to_string())
    .bind(context.actor.to_string())
    .fetch_one(connection)
    .await?;
    parse(&row)
}

/// Takes back the row of content that became no version; its bytes are swept then.
async fn forget(
    store: &Store,
    organization: OrganizationId,
    object: ObjectId,
) -> Result<(), StoreError> {
    sqlx::query(
        "delete from record.objects where organization_id = $1 and object_id = $2 \
           and not exists (select from record.policy_set_versions where object_id = $2)",
    )
    .bind(organization.to_string())
    .bind(object.to_string())
    .execute(&store.pool)
    .await?;
    Ok(())
}

fn parse(row: &PgRow) -> Result<Version, StoreError> {
    let columns = Columns::new(row, TABLE, "key")?;
    Ok(Version {
        set: columns.parsed("policy_set_id")?,
        number: columns.small_count("number")?,
        bundle: columns.digest("bundle")?,
        label: columns.plain("label")?,
        policies: columns.small_count("policies")?,
        object: columns.parsed("object_id")?,
        uploaded_by: columns.parsed("uploaded_by")?,
        uploaded_at: columns.time("uploaded_at")?,
    })
}
