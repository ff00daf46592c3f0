//! Pages of an organization's runs, newest first. The key is compared as a row, so the page that
//! begins anywhere costs what the first one costs, and equal times neither skip nor repeat.

use sqlx::{Postgres, QueryBuilder};
use stackship_domain::ids::{OrganizationId, WorkspaceId};
use stackship_store::DbTime;

use super::cursor::{Cursor, List};
use super::table::{COLUMNS, row};
use super::{InventoryFilter, InventoryPage, InventoryRow};
use crate::views::page_limit;
use crate::{PageError, ProjectionError, Views};

impl Views {
    /// A page of an organization's runs. `cursor` is a `next_cursor` of the same list.
    pub async fn inventory_page(
        &self,
        organization: OrganizationId,
        filter: InventoryFilter,
        cursor: Option<&str>,
        limit: u16,
    ) -> Result<InventoryPage, PageError> {
        let list = List {
            key: &self.cursor_key,
            organization,
            filter,
        };
        let after = cursor.map(|text| list.open(text)).transpose()?;
        let limit = page_limit(limit);
        let mut query = select(organization, filter, after);
        // One more than asked says whether another page follows.
        query.push(" limit ").push_bind(limit + 1);
        let found = query.build().fetch_all(&self.pool).await?;
        let mut rows = found.iter().map(row).collect::<Result<Vec<_>, _>>()?;
        let wanted = usize::try_from(limit).expect("a page's limit is a small positive number");
        let more = rows.len() > wanted;
        rows.truncate(wanted);
        let next_cursor = rows
            .last()
            .filter(|_| more)
            .map(|oldest| list.seal(Cursor::from(oldest)));
        Ok(InventoryPage { rows, next_cursor })
    }

    /// The newest unfinished runs of a workspace.
    pub async fn unfinished_of_workspace(
        &self,
        organization: OrganizationId,
        workspace: WorkspaceId,
        limit: u16,
    ) -> Result<Vec<InventoryRow>, ProjectionError> {
        let filter = InventoryFilter {
            workspace: Some(workspace),
            status: None,
        };
        let mut query = filtered(organization, filter);
        query.push(" and ended_at is null");
        ordered(&mut query);
        query.push(" limit ").push_bind(page_limit(limit));
        let found = query.build().fetch_all(&self.pool).await?;
        found.iter().map(row).collect()
    }
}

fn select(
    organization: OrganizationId,
    filter: InventoryFilter,
    after: Option<Cursor>,
) -> QueryBuilder<'static, Postgres> {
    let mut query = filtered(organization, filter);
    if let Some(after) = after {
        query
            .push(" and (created_at, run_id) < (")
            .push_bind(DbTime(after.created_at))
            .push(", ")
            .push_bind(after.run.to_string())
            .push(")");
    }
    ordered(&mut query);
    query
}

fn filtered(
    organization: OrganizationId,
    filter: InventoryFilter,
) -> QueryBuilder<'static, Postgres> {
    let mut query = QueryBuilder::new(format!(
        "select {COLUMNS} from view.run_inventory where organization_id = "
    ));
    query.push_bind(organization.to_string());
    if let Some(workspace) = filter.workspace {
        query
            .push(" and workspace_id = ")
            .push_bind(workspace.to_string());
    }
    if let Some(status) = filter.status {
        query.push(" and status = ").push_bind(status.as_str());
        // Said again in the words of the partial indexes: a plan for any status could use neither.
        query.push(if status.is_terminal() {
            " and ended_at is not null"
        } else {
            " and ended_at is null"
        });
    }
    query
}

fn ordered(query: &mut QueryBuilder<'static, Postgres>) {
    query.push(" order by created_at desc, run_id desc");
}
