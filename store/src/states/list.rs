//! A workspace's published states, newest first.

use stackship_domain::ids::{OrganizationId, WorkspaceId};

use super::{COLUMNS, StateVersionRow, parse};
use crate::records::Page;
use crate::{Store, StoreError};

/// A part of the workspace's published states: what is `after` a serial is lower. Serials only rise along a
/// workspace's history, so they are its order. The page must come with a serial or nothing.
pub async fn published(
    store: &Store,
    organization: OrganizationId,
    workspace: WorkspaceId,
    page: &Page,
) -> Result<Vec<StateVersionRow>, StoreError> {
    let rows = sqlx::query(&format!(
        "select {COLUMNS} from record.state_versions \
         where organization_id = $1 and workspace_id = $2 and status = 'published' \
             and ($3 = '' or serial < nullif($3, '')::bigint) \
         order by serial desc limit $4"
    ))
    .bind(organization.to_string())
    .bind(workspace.to_string())
    .bind(page.after())
    .bind(page.limit())
    .fetch_all(&store.pool)
    .await?;
    rows.iter().map(parse).collect()
}
