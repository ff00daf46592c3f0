//! Pages of an organization's audit, newest first: by the time of recording, and by position among
//! equal times. Each filter has an index in this order, so a page costs the same wherever it begins.

use sqlx::postgres::PgRow;
use sqlx::{Postgres, QueryBuilder, Row as _};
use stackship_domain::Sha256Digest;
use stackship_domain::ids::OrganizationId;
use stackship_store::DbTime;

use super::cursor::{Cursor, List};
use super::{AuditEntry, AuditFilter, AuditPage, CHAIN_START};
use crate::views::page_limit;
use crate::{PageError, ProjectionError, Views};

const TABLE: &str = "audit_entries";

impl Views {
    /// A page of an organization's audit. `cursor` is a `next_cursor` of the same list.
    pub async fn audit_page(
        &self,
        organization: OrganizationId,
        filter: &AuditFilter,
        cursor: Option<&str>,
        limit: u16,
    ) -> Result<AuditPage, PageError> {
        let list = List {
            key: &self.cursor_key,
            organization,
            filter,
        };
        let after = cursor.map(|text| list.open(text)).transpose()?;
        let limit = page_limit(limit);
        // One more than asked says whether another page follows.
        let mut query = select(organization, filter, after, limit + 1);
        let found = query.build().fetch_all(&self.pool).await?;
        let wanted = usize::try_from(limit).expect("a page's limit is a small positive number");
        let shown = found.iter().take(wanted).map(entry);
        let entries = shown.collect::<Result<Vec<_>, _>>()?;
        let next_cursor = entries
            .last()
            .filter(|_| found.len() > wanted)
            .map(|oldest| list.seal(Cursor::from(oldest)));
        Ok(AuditPage {
            entries,
            next_cursor,
        })
    }
}

/// The page is found first; only its own entries are looked up in the log.
fn select(
    organization: OrganizationId,
    filter: &AuditFilter,
    after: Option<Cursor>,
    limit: i64,
) -> QueryBuilder<'static, Postgres> {
    let mut query = QueryBuilder::new(
        "select entry.*, event.payload, previous.hash as previous_hash from (\
         select * from view.audit_entries where organization_id = ",
    );
    query.push_bind(organization.to_string());
    for (column, value) in [
        ("actor", filter.actor.map(|actor| actor.to_string())),
        ("run_id", filter.run.map(|run| run.to_string())),
        ("workspace_id", filter.workspace.map(|id| id.to_string())),
        ("event_type", filter.event_type.clone()),
    ] {
        if let Some(value) = value {
            query.push(format!(" and {column} = ")).push_bind(value);
        }
    }
    for (comparison, time) in [(">=", filter.from), ("<", filter.to)] {
        if let Some(time) = time {
            query
                .push(format!(" and recorded_at {comparison} "))
                .push_bind(DbTime(time));
        }
    }
    if let Some(after) = after {
        query
            .push(" and (recorded_at, number) < (")
            .push_bind(DbTime(after.recorded_at))
            .push(", ")
            .push_bind(after.number)
            .push(")");
    }
    query
        .push(" order by recorded_at desc, number desc limit ")
        .push_bind(limit)
        .push(
            ") as entry \
             left join log.events as event using (aggregate_type, aggregate_id, sequence) \
             left join view.audit_entries as previous \
                 on previous.organization_id = entry.organization_id and previous.number = entry.number - 1 \
             order by entry.recorded_at desc, entry.number desc",
        );
    query
}

fn entry(row: &PgRow) -> Result<AuditEntry, ProjectionError> {
    let organization: String = row.try_get("organization_id")?;
    let number: i64 = row.try_get("number")?;
    let inconsistent = || ProjectionError::row(TABLE, format!("{organization}/{number}"));
    let actor: String = row.try_get("actor")?;
    let hash: Vec<u8> = row.try_get("hash")?;
    let previous: Option<Vec<u8>> = row.try_get("previous_hash")?;
    let previous_hash = match previous {
        None if number == 1 => CHAIN_START,
        previous => previous
            .and_then(|bytes| digest(&bytes))
            .ok_or_else(inconsistent)?,
    };
    let payload: Option<serde_json::Value> = row.try_get("payload")?;
    Ok(AuditEntry {
        organization: organization.parse().map_err(|_| inconsistent())?,
        number,
        aggregate_type: row.try_get("aggregate_type")?,
        aggregate_id: row.try_get("aggregate_id")?,
        sequence: row.try_get("sequence")?,
        event_type: row.try_get("event_type")?,
        event_version: row.try_get("event_version")?,
        actor: actor.parse().map_err(|_| inconsistent())?,
        request_id: row.try_get("request_id")?,
        command_id: row.try_get("command_id")?,
        recorded_at: row.try_get::<DbTime, _>("recorded_at")?.get(),
        run: row.try_get("run_id")?,
        workspace: row.try_get("workspace_id")?,
        payload: payload.ok_or_else(inconsistent)?,
        previous_hash,
        hash: digest(&hash).ok_or_else(inconsistent)?,
    })
}

pub(super) fn digest(bytes: &[u8]) -> Option<Sha256Digest> {
    bytes.try_into().ok().map(Sha256Digest::from_bytes)
}
