//! Configuration versions: sources that are uploaded once and never change.

use serde_json::json;
use sqlx::PgPool;
use sqlx::postgres::PgRow;
use stackship_domain::ids::{ConfigurationVersionId, ObjectId, OrganizationId, WorkspaceId};
use stackship_domain::run::SourceKind;
use stackship_domain::{Actor, Sha256Digest, Timestamp};

use super::{commit, tell};
use crate::columns::Columns;
use crate::log::Context;
use crate::objects::{ObjectKind, StoredObject};
use crate::{Store, StoreError, Violation, clock};

/// A configuration version to be created.
#[derive(Debug, Clone, Copy)]
pub struct NewConfigurationVersion {
    /// The workspace it is for.
    pub workspace: WorkspaceId,
    /// Whether it may only be planned.
    pub speculative: bool,
    /// Where it comes from.
    pub source: SourceKind,
}

/// A configuration version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationVersion {
    /// Its id.
    pub id: ConfigurationVersionId,
    /// The tenant.
    pub organization: OrganizationId,
    /// The workspace it is for.
    pub workspace: WorkspaceId,
    /// Whether it may only be planned.
    pub speculative: bool,
    /// Where it comes from.
    pub source: SourceKind,
    /// Who created it.
    pub created_by: Actor,
    /// When it was created.
    pub created_at: Timestamp,
    /// The uploaded source; absent until it has arrived.
    pub upload: Option<Upload>,
}

/// An uploaded source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upload {
    /// The stored archive.
    pub object: ObjectId,
    /// SHA-256 of the archive.
    pub sha256: Sha256Digest,
    /// How many bytes the archive has.
    pub bytes: u64,
    /// When it had arrived.
    pub at: Timestamp,
}

/// Creates a configuration version that waits for its upload.
pub async fn create(
    store: &Store,
    context: &Context,
    new: NewConfigurationVersion,
) -> Result<ConfigurationVersion, StoreError> {
    let id: ConfigurationVersionId = clock::fresh();
    let mut transaction = store.pool.begin().await?;
    let row = sqlx::query(
        "insert into record.configuration_versions \
         (configuration_version_id, organization_id, workspace_id, speculative, source, created_by) \
         values ($1, $2, $3, $4, $5, $6) returning *",
    )
    .bind(id.to_string())
    .bind(context.organization.to_string())
    .bind(new.workspace.to_string())
    .bind(new.speculative)
    .bind(new.source.as_str())
    .bind(context.actor.to_string())
    .fetch_one(&mut *transaction)
    .await?;
    let detail = json!({
        "configuration_version": id, "workspace": new.workspace, "speculative": new.speculative,
        "source": new.source,
    });
    tell(
        &mut transaction,
        context,
        "configuration_version_created",
        detail,
    )
    .await?;
    commit(store, transaction).await?;
    parse(&row)
}

/// The organization's configuration version with this id.
pub async fn by_id(
    pool: &PgPool,
    organization: OrganizationId,
    id: ConfigurationVersionId,
) -> Result<Option<ConfigurationVersion>, StoreError> {
    let row = sqlx::query(
        "select * from record.configuration_versions where organization_id = $1 and configuration_version_id = $2",
    )
    .bind(organization.to_string())
    .bind(id.to_string())
    .fetch_optional(pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// Says that the source has arrived. The same bytes again are harmless; others are refused.
pub async fn uploaded(
    store: &Store,
    context: &Context,
    id: ConfigurationVersionId,
    archive: StoredObject,
) -> Result<(), StoreError> {
    let mut transaction = store.pool.begin().await?;
    // The object must be a configuration of the same workspace: its id arrives from outside.
    let updated = sqlx::query(
        "update record.configuration_versions version \
         set object_id = stored.object_id, sha256 = stored.sha256, bytes = stored.bytes, uploaded_at = clock_timestamp() \
         from record.objects stored \
         where version.organization_id = $1 and version.configuration_version_id = $2 and version.object_id is null \
           and stored.organization_id = $1 and stored.object_id = $3 \
           and stored.workspace_id = version.workspace_id and stored.kind = $4",
    )
    .bind(context.organization.to_string())
    .bind(id.to_string())
    .bind(archive.id.to_string())
    .bind(ObjectKind::Configuration.as_str())
    .execute(&mut *transaction)
    .await?;
    if updated.rows_affected() == 1 {
        let detail =
            json!({"configuration_version": id, "sha256": archive.sha256, "bytes": archive.bytes});
        tell(&mut transaction, context, "configuration_uploaded", detail).await?;
        return commit(store, transaction).await;
    }
    // Gives the connection back: looking takes another one.
    transaction.rollback().await?;
    let earlier = by_id(&store.pool, context.organization, id)
        .await?
        .and_then(|version| version.upload);
    match earlier {
        Some(upload) if upload.sha256 == archive.sha256 => Ok(()),
        Some(_) => Err(Violation::Immutable.into()),
        None => Err(Violation::NotNow.into()),
    }
}

fn parse(row: &PgRow) -> Result<ConfigurationVersion, StoreError> {
    let columns = Columns::new(
        row,
        "record.configuration_versions",
        "configuration_version_id",
    )?;
    let upload = match columns.parsed_or_null("object_id")? {
        None => None,
        Some(object) => Some(Upload {
            object,
            sha256: columns.digest("sha256")?,
            bytes: columns.count("bytes")?,
            at: columns.time("uploaded_at")?,
        }),
    };
    Ok(ConfigurationVersion {
        id: columns.parsed("configuration_version_id")?,
        organization: columns.parsed("organization_id")?,
        workspace: columns.parsed("workspace_id")?,
        speculative: columns.plain("speculative")?,
        source: columns.member("source", SourceKind::ALL, SourceKind::as_str)?,
        created_by: columns.parsed("created_by")?,
        created_at: columns.time("created_at")?,
        upload,
    })
}
