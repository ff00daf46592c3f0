//! The table of reviews.

use std::collections::BTreeMap;

use serde_json::Value;
use sqlx::PgConnection;
use stackship_domain::ids::{OrganizationId, RunId};

use super::RunReview;
use crate::target::Target;
use crate::{ProjectionError, Views};

const TABLE: &str = "run_review";

/// The reviews of these runs, as far as there are any.
pub(crate) async fn load(
    connection: &mut PgConnection,
    target: Target,
    runs: impl Iterator<Item = &RunId>,
) -> Result<BTreeMap<RunId, RunReview>, ProjectionError> {
    let ids: Vec<String> = runs.map(ToString::to_string).collect();
    let rows: Vec<(String, Value)> = sqlx::query_as(
        &target.sql("select run_id, doc from {view}.run_review where run_id = any($1)"),
    )
    .bind(ids)
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|(id, doc)| document(&id, doc).map(|review| (review.run, review)))
        .collect()
}

/// Writes the reviews of one batch.
pub(crate) async fn upsert(
    connection: &mut PgConnection,
    target: Target,
    reviews: &BTreeMap<RunId, RunReview>,
) -> Result<(), ProjectionError> {
    let column = |pick: fn(&RunReview) -> String| reviews.values().map(pick).collect::<Vec<_>>();
    let documents: Vec<Value> = reviews
        .values()
        .map(serde_json::to_value)
        .collect::<Result<_, _>>()
        .map_err(stackship_store::StoreError::from)?;
    let sequences: Vec<i64> = reviews
        .values()
        .map(|review| review.last_sequence)
        .collect();
    let written = sqlx::query(&target.sql(
        "insert into {view}.run_review as old (run_id, organization_id, workspace_id, last_sequence, doc) \
         select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::jsonb[]) \
         on conflict (run_id) do update set last_sequence = excluded.last_sequence, doc = excluded.doc \
         where old.last_sequence < excluded.last_sequence",
    ))
    .bind(column(|review| review.run.to_string()))
    .bind(column(|review| review.facts.organization.to_string()))
    .bind(column(|review| review.facts.workspace.to_string()))
    .bind(sequences)
    .bind(documents)
    .execute(connection)
    .await?
    .rows_affected();
    ProjectionError::all_written(TABLE, reviews.len(), written)
}

impl Views {
    /// The review of a run of this organization.
    pub async fn review(
        &self,
        organization: OrganizationId,
        run: RunId,
    ) -> Result<Option<RunReview>, ProjectionError> {
        let doc: Option<Value> = sqlx::query_scalar(
            "select doc from view.run_review where organization_id = $1 and run_id = $2",
        )
        .bind(organization.to_string())
        .bind(run.to_string())
        .fetch_optional(&self.pool)
        .await?;
        doc.map(|doc| document(&run.to_string(), doc)).transpose()
    }
}

fn document(id: &str, doc: Value) -> Result<RunReview, ProjectionError> {
    serde_json::from_value(doc).map_err(|_| ProjectionError::row(TABLE, id))
}
