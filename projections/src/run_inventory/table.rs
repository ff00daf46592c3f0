//! The table of the inventory: writing and parsing rows.

use std::collections::BTreeMap;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};
use stackship_domain::Timestamp;
use stackship_domain::ids::RunId;
use stackship_domain::run::{RunKind, SourceKind, Status};
use stackship_store::DbTime;

use super::InventoryRow;
use crate::target::Target;
use crate::{ProjectionError, RunReview};

const TABLE: &str = "run_inventory";

/// Every column, in the order in which [`row`] reads them.
pub(super) const COLUMNS: &str = "run_id, organization_id, project_id, workspace_id, status, kind, message, source, \
    created_by, created_at, updated_at, ended_at, last_sequence";

/// Writes the rows of one batch's runs.
pub(crate) async fn upsert(
    connection: &mut PgConnection,
    target: Target,
    reviews: &BTreeMap<RunId, RunReview>,
) -> Result<(), ProjectionError> {
    let rows: Vec<InventoryRow> = reviews.values().map(InventoryRow::from).collect();
    let texts = |pick: fn(&InventoryRow) -> String| rows.iter().map(pick).collect::<Vec<_>>();
    let ended: Vec<Option<String>> = rows.iter().map(|row| row.ended_at.map(time)).collect();
    let sequences: Vec<i64> = rows.iter().map(|row| row.last_sequence).collect();
    let written = sqlx::query(&target.sql(
        "insert into {view}.run_inventory as old (run_id, organization_id, project_id, workspace_id, status, kind, \
             message, source, created_by, created_at, updated_at, ended_at, last_sequence) \
         select run_id, organization_id, project_id, workspace_id, status, kind, message, source, created_by, \
             created_at::timestamptz, updated_at::timestamptz, ended_at::timestamptz, last_sequence \
         from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], \
             $9::text[], $10::text[], $11::text[], $12::text[], $13::bigint[]) \
             as new (run_id, organization_id, project_id, workspace_id, status, kind, message, source, created_by, \
                 created_at, updated_at, ended_at, last_sequence) \
         on conflict (run_id) do update set status = excluded.status, updated_at = excluded.updated_at, \
             ended_at = excluded.ended_at, last_sequence = excluded.last_sequence \
         where old.last_sequence < excluded.last_sequence",
    ))
    .bind(texts(|row| row.run.to_string()))
    .bind(texts(|row| row.organization.to_string()))
    .bind(texts(|row| row.project.to_string()))
    .bind(texts(|row| row.workspace.to_string()))
    .bind(texts(|row| row.status.to_string()))
    .bind(texts(|row| row.kind.to_string()))
    .bind(texts(|row| row.message.clone()))
    .bind(texts(|row| row.source.to_string()))
    .bind(texts(|row| row.created_by.to_string()))
    .bind(texts(|row| time(row.created_at)))
    .bind(texts(|row| time(row.updated_at)))
    .bind(ended)
    .bind(sequences)
    .execute(connection)
    .await?
    .rows_affected();
    ProjectionError::all_written(TABLE, rows.len(), written)
}

/// A time as PostgreSQL reads it, cut to the microsecond that it keeps rather than rounded by it.
fn time(time: Timestamp) -> String {
    Timestamp::from_microsecond(time.as_microsecond())
        .unwrap_or(time)
        .to_string()
}

/// A row of [`COLUMNS`].
pub(super) fn row(row: &PgRow) -> Result<InventoryRow, ProjectionError> {
    let run: String = row.try_get("run_id")?;
    let inconsistent = || ProjectionError::row(TABLE, &run);
    let text = |column: &str| row.try_get::<String, _>(column);
    Ok(InventoryRow {
        run: run.parse().map_err(|_| inconsistent())?,
        organization: text("organization_id")?
            .parse()
            .map_err(|_| inconsistent())?,
        project: text("project_id")?.parse().map_err(|_| inconsistent())?,
        workspace: text("workspace_id")?.parse().map_err(|_| inconsistent())?,
        status: status(&text("status")?).ok_or_else(inconsistent)?,
        kind: kind(&text("kind")?).ok_or_else(inconsistent)?,
        message: text("message")?,
        source: source(&text("source")?).ok_or_else(inconsistent)?,
        created_by: text("created_by")?.parse().map_err(|_| inconsistent())?,
        created_at: row.try_get::<DbTime, _>("created_at")?.get(),
        updated_at: row.try_get::<DbTime, _>("updated_at")?.get(),
        ended_at: row
            .try_get::<Option<DbTime>, _>("ended_at")?
            .map(DbTime::get),
        last_sequence: row.try_get("last_sequence")?,
    })
}

pub(super) fn status(text: &str) -> Option<Status> {
    Status::ALL
        .iter()
        .copied()
        .find(|member| member.as_str() == text)
}

fn kind(text: &str) -> Option<RunKind> {
    RunKind::ALL
        .iter()
        .copied()
        .find(|member| member.as_str() == text)
}

fn source(text: &str) -> Option<SourceKind> {
    SourceKind::ALL
        .iter()
        .copied()
        .find(|member| member.as_str() == text)
}
