//! Which events have been applied: the audit knows every one of them. An event is applied once, in
//! its place, or not at all.

use std::collections::HashMap;

use sqlx::PgConnection;
use stackship_store::log::LoggedEvent;

use crate::ProjectionError;
use crate::target::Target;

/// The newest applied sequence of each aggregate of a batch.
#[derive(Debug, Default)]
pub(super) struct Progress(HashMap<(String, String), i64>);

impl Progress {
    /// What has been applied of the aggregates that these events belong to.
    pub(super) async fn load(
        connection: &mut PgConnection,
        target: Target,
        events: &[LoggedEvent],
    ) -> Result<Self, ProjectionError> {
        let mut keys: Vec<(&str, &str)> = events
            .iter()
            .map(|event| (&*event.aggregate_type, &*event.aggregate_id))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let (kinds, ids): (Vec<&str>, Vec<&str>) = keys.into_iter().unzip();
        let rows: Vec<(String, String, i64)> = sqlx::query_as(&target.sql(
            "select key.kind, key.id, coalesce((select max(entry.sequence) from {view}.audit_entries as entry \
                 where entry.aggregate_type = key.kind and entry.aggregate_id = key.id), 0) \
             from unnest($1::text[], $2::text[]) as key (kind, id)",
        ))
        .bind(kinds)
        .bind(ids)
        .fetch_all(connection)
        .await?;
        let newest = rows
            .into_iter()
            .map(|(kind, id, sequence)| ((kind, id), sequence));
        Ok(Self(newest.collect()))
    }

    /// Whether this event is the next one of its aggregate; `false` when it has been applied before.
    pub(super) fn admit(&mut self, event: &LoggedEvent) -> Result<bool, ProjectionError> {
        let key = (event.aggregate_type.clone(), event.aggregate_id.clone());
        let newest = self.0.entry(key).or_insert(0);
        let expected = *newest + 1;
        if event.sequence > expected {
            return Err(ProjectionError::Gap {
                aggregate: event.aggregate_id.clone(),
                expected,
                found: event.sequence,
            });
        }
        let is_next = event.sequence == expected;
        if is_next {
            *newest = expected;
        }
        Ok(is_next)
    }
}
