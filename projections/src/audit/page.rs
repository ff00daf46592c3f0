//! Pages of an organization's audit.

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use stackship_domain::Sha256Digest;
use stackship_domain::ids::OrganizationId;
use stackship_store::DbTime;

use super::{AuditEntry, AuditPage};
use crate::views::page_limit;
use crate::{ProjectionError, Views};

const TABLE: &str = "audit_entries";

impl Views {
    /// Entries of an organization's audit, newest first; those before number `before`, or the newest.
    pub async fn audit_page(
        &self,
        organization: OrganizationId,
        before: Option<i64>,
        limit: u16,
    ) -> Result<AuditPage, ProjectionError> {
        let found = sqlx::query(
            "select * from view.audit_entries where organization_id = $1 and number < $2 \
             order by number desc limit $3",
        )
        .bind(organization.to_string())
        .bind(before.unwrap_or(i64::MAX))
        .bind(page_limit(limit))
        .fetch_all(&self.pool)
        .await?;
        let entries = found.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
        // Numbers are dense, so an entry that is not the first one has others before it.
        let next_before = entries
            .last()
            .map(|entry| entry.number)
            .filter(|number| *number > 1);
        Ok(AuditPage {
            entries,
            next_before,
        })
    }
}

fn entry(row: &PgRow) -> Result<AuditEntry, ProjectionError> {
    let organization: String = row.try_get("organization_id")?;
    let number: i64 = row.try_get("number")?;
    let inconsistent = || ProjectionError::row(TABLE, format!("{organization}/{number}"));
    let actor: String = row.try_get("actor")?;
    let hash: Vec<u8> = row.try_get("hash")?;
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
        hash: digest(&hash).ok_or_else(inconsistent)?,
    })
}

pub(super) fn digest(bytes: &[u8]) -> Option<Sha256Digest> {
    bytes.try_into().ok().map(Sha256Digest::from_bytes)
}
