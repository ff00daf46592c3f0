//! Where sets apply: in an organization, a project or a workspace, and in everything below it.

use serde_json::json;
use sqlx::PgPool;
use sqlx::postgres::PgRow;
use stackship_domain::ids::{ObjectId, OrganizationId, PolicySetId, ProjectId, WorkspaceId};
use stackship_domain::policy_bounds::BUNDLES_ATTACHED_MAX;
use stackship_domain::{Actor, Name, Sha256Digest, Timestamp};

use super::{bounds, full, hold};
use crate::columns::Columns;
use crate::log::Context;
use crate::records::grants::Scope;
use crate::records::{Page, commit, tell};
use crate::{Store, StoreError, Violation};

const TABLE: &str = "record.policy_attachments";

/// A set that applies somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its number; pages go by it.
    pub number: i64,
    /// The set.
    pub set: PolicySetId,
    /// Where it applies.
    pub scope: Scope,
    /// Who attached it.
    pub attached_by: Actor,
    /// When.
    pub attached_at: Timestamp,
}

/// The version of a set that applies to a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedVersion {
    /// The set.
    pub set: PolicySetId,
    /// The set's name.
    pub name: String,
    /// The number of its newest version.
    pub version: u32,
    /// What pins that version.
    pub bundle: Sha256Digest,
    /// Its stored content; see [`content`](super::content).
    pub object: ObjectId,
}

/// A set that applies to a workspace, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applying {
    /// The set.
    pub set: PolicySetId,
    /// The set's name.
    pub name: Name,
    /// The number of its newest version.
    pub version: u32,
    /// The author's own name for that version.
    pub label: String,
    /// What pins that version.
    pub bundle: Sha256Digest,
    /// Where it is attached; at least one place, in the order of attaching.
    pub scopes: Vec<Scope>,
}

/// What attaching came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attaching {
    /// The set applies there from now on.
    New(Attachment),
    /// It did already.
    Already(Attachment),
}

/// Attaches a set. Refused when the set is archived or has no version, when there is no such place in
/// the organization, and when more would apply somewhere than a run may have.
pub async fn attach(
    store: &Store,
    context: &Context,
    set: PolicySetId,
    scope: Scope,
    reason: &str,
) -> Result<Attaching, StoreError> {
    let mut transaction = store.pool.begin().await?;
    hold(&mut transaction, context.organization).await?;
    let row = sqlx::query(
        "insert into record.policy_attachments \
         (organization_id, policy_set_id, project_id, workspace_id, attached_by) \
         select $1, $2, $3, $4, $5 \
         where exists (select from record.policy_sets where organization_id = $1 and policy_set_id = $2) \
           and ($3::text is null or exists ( \
                 select from record.projects where organization_id = $1 and project_id = $3)) \
           and ($4::text is null or exists ( \
                 select from record.workspaces where organization_id = $1 and workspace_id = $4)) \
         on conflict (policy_set_id, coalesce(project_id, ''), coalesce(workspace_id, '')) do nothing \
         returning *, attachment_id::text as key",
    )
    .bind(context.organization.to_string())
    .bind(set.to_string())
    .bind(scope.project())
    .bind(scope.workspace())
    .bind(context.actor.to_string())
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(row) = row else {
        // Gives the connection back: looking takes another one.
        transaction.rollback().await?;
        let already = at(&store.pool, context.organization, set, scope).await?;
        return already
            .map(Attaching::Already)
            .ok_or_else(|| Violation::NotNow.into());
    };
    bounds::check(&mut transaction, context.organization).await?;
    let detail = json!({"policy_set": set, "scope": scope, "reason": reason});
    tell(&mut transaction, context, "policy_set_attached", detail).await?;
    commit(store, transaction).await?;
    parse(&row).map(Attaching::New)
}

/// Detaches a set. Returns what is gone, or nothing when it was not attached there. Runs that have
/// pinned the set keep it.
pub async fn detach(
    store: &Store,
    context: &Context,
    set: PolicySetId,
    scope: Scope,
    reason: &str,
) -> Result<Option<Attachment>, StoreError> {
    let mut transaction = store.pool.begin().await?;
    hold(&mut transaction, context.organization).await?;
    let row = sqlx::query(
        "delete from record.policy_attachments where organization_id = $1 and policy_set_id = $2 \
           and project_id is not distinct from $3 and workspace_id is not distinct from $4 \
         returning *, attachment_id::text as key",
    )
    .bind(context.organization.to_string())
    .bind(set.to_string())
    .bind(scope.project())
    .bind(scope.workspace())
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let detail = json!({"policy_set": set, "scope": scope, "reason": reason});
    tell(&mut transaction, context, "policy_set_detached", detail).await?;
    commit(store, transaction).await?;
    parse(&row).map(Some)
}

/// The attachments of a set, oldest first; pages go by their numbers.
pub async fn list_attachments(
    pool: &PgPool,
    organization: OrganizationId,
    set: PolicySetId,
    page: &Page,
) -> Result<Vec<Attachment>, StoreError> {
    // A page that follows something which is no number follows nothing.
    let after: i64 = page.after().parse().unwrap_or(0);
    let rows = sqlx::query(
        "select *, attachment_id::text as key from record.policy_attachments \
         where organization_id = $1 and policy_set_id = $2 and attachment_id > $3 \
         order by attachment_id limit $4",
    )
    .bind(organization.to_string())
    .bind(set.to_string())
    .bind(after)
    .bind(page.limit())
    .fetch_all(pool)
    .await?;
    rows.iter().map(parse).collect()
}

/// The sets that apply to a workspace, each with the version that does and where it is attached.
pub async fn applying(
    pool: &PgPool,
    organization: OrganizationId,
    project: ProjectId,
    workspace: WorkspaceId,
) -> Result<Vec<Applying>, StoreError> {
    let rows = sqlx::query(
        "select attachment.*, attachment_id::text as key, name, newest.number, newest.label, newest.bundle \
         from record.policy_attachments attachment join record.policy_sets using (organization_id, policy_set_id) \
         cross join lateral ( \
             select number, label, bundle from record.policy_set_versions version \
             where version.policy_set_id = attachment.policy_set_id order by number desc limit 1) newest \
         where organization_id = $1 and ((project_id is null and workspace_id is null) \
           or project_id = $2 or workspace_id = $3) \
         order by policy_set_id collate \"C\", attachment_id",
    )
    .bind(organization.to_string())
    .bind(project.to_string())
    .bind(workspace.to_string())
    .fetch_all(pool)
    .await?;
    let mut applying: Vec<Applying> = Vec::new();
    for row in &rows {
        let attachment = parse(row)?;
        match applying.last_mut() {
            Some(last) if last.set == attachment.set => last.scopes.push(attachment.scope),
            Some(_) | None => applying.push(parse_applying(row, &attachment)?),
        }
    }
    Ok(applying)
}

/// What judges a run that is created now in this workspace: the newest version of each set that
/// applies, sorted by digest, each digest once. Nothing here says that the content can be read.
pub async fn attached_to(
    pool: &PgPool,
    organization: OrganizationId,
    project: ProjectId,
    workspace: WorkspaceId,
) -> Result<Vec<AttachedVersion>, StoreError> {
    // The outer join lets a set without a version be found, and refused, instead of passed over.
    let rows = sqlx::query(
        "select policy_set.policy_set_id, name, newest.number, newest.bundle, newest.object_id \
         from (select distinct policy_set_id from record.policy_attachments \
               where organization_id = $1 and ((project_id is null and workspace_id is null) \
                 or project_id = $2 or workspace_id = $3)) attached \
         join record.policy_sets policy_set \
           on policy_set.organization_id = $1 and policy_set.policy_set_id = attached.policy_set_id \
         left join lateral ( \
             select number, bundle, object_id from record.policy_set_versions version \
             where version.policy_set_id = attached.policy_set_id order by number desc limit 1) newest on true \
         order by newest.bundle, policy_set.policy_set_id collate \"C\"",
    )
    .bind(organization.to_string())
    .bind(project.to_string())
    .bind(workspace.to_string())
    .fetch_all(pool)
    .await?;
    let mut attached: Vec<_> = rows.iter().map(parse_attached).collect::<Result<_, _>>()?;
    attached.dedup_by_key(|version| version.bundle);
    if attached.len() > BUNDLES_ATTACHED_MAX {
        return Err(full(
            "policy sets that apply to one workspace",
            BUNDLES_ATTACHED_MAX,
        ));
    }
    Ok(attached)
}

async fn at(
    pool: &PgPool,
    organization: OrganizationId,
    set: PolicySetId,
    scope: Scope,
) -> Result<Option<Attachment>, StoreError> {
    let row = sqlx::query(
        "select *, attachment_id::text as key from record.policy_attachments \
         where organization_id = $1 and policy_set_id = $2 \
           and project_id is not distinct from $3 and workspace_id is not distinct from $4",
    )
    .bind(organization.to_string())
    .bind(set.to_string())
    .bind(scope.project())
    .bind(scope.workspace())
    .fetch_optional(pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

fn parse(row: &PgRow) -> Result<Attachment, StoreError> {
    let columns = Columns::new(row, TABLE, "key")?;
    Ok(Attachment {
        number: columns.plain("attachment_id")?,
        set: columns.parsed("policy_set_id")?,
        scope: Scope::of(&columns)?,
        attached_by: columns.parsed("attached_by")?,
        attached_at: columns.time("attached_at")?,
    })
}

fn parse_applying(row: &PgRow, attachment: &Attachment) -> Result<Applying, StoreError> {
    let columns = Columns::new(row, TABLE, "key")?;
    Ok(Applying {
        set: attachment.set,
        name: columns.parsed("name")?,
        version: columns.small_count("number")?,
        label: columns.plain("label")?,
        bundle: columns.digest("bundle")?,
        scopes: vec![attachment.scope],
    })
}

fn parse_attached(row: &PgRow) -> Result<AttachedVersion, StoreError> {
    let columns = Columns::new(row, "record.policy_sets", "policy_set_id")?;
    let Some(bundle) = columns.digest_or_null("bundle")? else {
        return Err(columns.inconsistent("newest version"));
    };
    Ok(AttachedVersion {
        set: columns.parsed("policy_set_id")?,
        name: columns.parsed::<Name>("name")?.to_string(),
        version: columns.small_count("number")?,
        bundle,
        object: columns.parsed("object_id")?,
    })
}
