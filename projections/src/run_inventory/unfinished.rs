//! Runs that have not ended, across organizations: for the sweep that moves runs on. Never for a
//! caller from outside.

use stackship_domain::ids::{OrganizationId, RunId};
use stackship_domain::run::Status;

use super::table::status;
use crate::{ProjectionError, Views};

/// The most runs that one read of a sweep returns.
pub const UNFINISHED_MAX: u16 = 1_000;

/// A run that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfinishedRun {
    /// Which run.
    pub run: RunId,
    /// Its tenant.
    pub organization: OrganizationId,
    /// Where it stands.
    pub status: Status,
}

impl Views {
    /// The oldest unfinished runs after `after`, so that a sweep reaches every run in pages.
    pub async fn unfinished_runs(
        &self,
        after: Option<RunId>,
        limit: u16,
    ) -> Result<Vec<UnfinishedRun>, ProjectionError> {
        let rows: Vec<(String, String, String)> = sqlx::query_as(
            "select run_id, organization_id, status from view.run_inventory \
             where ended_at is null and run_id > $1 order by run_id limit $2",
        )
        .bind(after.map_or(String::new(), |run| run.to_string()))
        .bind(i64::from(limit.clamp(1, UNFINISHED_MAX)))
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter()
            .map(|(run, organization, status)| unfinished(&run, &organization, &status))
            .collect()
    }
}

fn unfinished(run: &str, organization: &str, text: &str) -> Result<UnfinishedRun, ProjectionError> {
    let inconsistent = || ProjectionError::row("run_inventory", run);
    Ok(UnfinishedRun {
        run: run.parse().map_err(|_| inconsistent())?,
        organization: organization.parse().map_err(|_| inconsistent())?,
        status: status(text).ok_or_else(inconsistent)?,
    })
}
