//! A thin wrapper over the published repository: it delegates appends and loads, refuses snapshots
//! and streams, refuses an automatic apply once more, and remembers where the stream ended.

use std::sync::{Arc, Mutex, PoisonError};

use cqrs_es::Aggregate;
use cqrs_es::persist::{
    PersistedEventRepository, PersistenceError, ReplayStream, SerializedEvent, SerializedSnapshot,
};
use postgres_es::PostgresEventRepository;
use serde_json::Value;
use sqlx::PgPool;

use super::Committed;
use crate::Violation;

/// The log's table, with its schema.
const EVENTS: &str = "log.events";
/// Named because the library wants a name; no such table exists.
const NO_SNAPSHOTS: &str = "log.no_snapshots";

/// Where the stream of one command ended, first when it was read and then when it was appended to;
/// shared with whoever executes the command.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamEnd(Arc<Mutex<Committed>>);

impl StreamEnd {
    fn set(&self, newest: Option<&SerializedEvent>, appended: bool) {
        let end = newest.and_then(|event| i64::try_from(event.sequence).ok());
        if let Some(sequence) = end {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
                Committed { sequence, appended };
        }
    }

    pub(super) fn get(&self) -> Committed {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The repository for one command.
pub(super) struct Repository {
    inner: PostgresEventRepository,
    end: StreamEnd,
}

impl Repository {
    pub(super) fn new(pool: PgPool, end: StreamEnd) -> Self {
        Self {
            inner: PostgresEventRepository::new(pool).with_tables(EVENTS, NO_SNAPSHOTS),
            end,
        }
    }
}

fn refused(what: &str) -> PersistenceError {
    PersistenceError::UnknownError(format!("{what} are not used with this log").into())
}

/// No event that asks for an automatic apply is written, whoever made it (S-RUN-6). The database
/// refuses it too.
pub(super) fn refuse_auto_apply(payload: &Value) -> Result<(), PersistenceError> {
    match payload.get("auto_apply") {
        None | Some(Value::Bool(false)) => Ok(()),
        Some(_) => Err(PersistenceError::UnknownError(Box::new(
            Violation::AutoApply,
        ))),
    }
}

impl PersistedEventRepository for Repository {
    async fn get_events<A: Aggregate>(
        &self,
        aggregate_id: &str,
    ) -> Result<Vec<SerializedEvent>, PersistenceError> {
        let events = self.inner.get_events::<A>(aggregate_id).await?;
        self.end.set(events.last(), false);
        events.into_iter().map(upcast_serialized).collect()
    }

    async fn get_last_events<A: Aggregate>(
        &self,
        aggregate_id: &str,
        last_sequence: usize,
    ) -> Result<Vec<SerializedEvent>, PersistenceError> {
        let events = self
            .inner
            .get_last_events::<A>(aggregate_id, last_sequence)
            .await?;
        events.into_iter().map(upcast_serialized).collect()
    }

    async fn get_snapshot<A: Aggregate>(
        &self,
        _: &str,
    ) -> Result<Option<SerializedSnapshot>, PersistenceError> {
        Ok(None)
    }

    async fn persist<A: Aggregate>(
        &self,
        events: &[SerializedEvent],
        snapshot_update: Option<(String, Value, usize)>,
    ) -> Result<(), PersistenceError> {
        if snapshot_update.is_some() {
            return Err(refused("snapshots"));
        }
        for event in events {
            refuse_auto_apply(&event.payload)?;
        }
        self.inner.persist::<A>(events, None).await?;
        self.end.set(events.last(), true);
        Ok(())
    }

    async fn stream_events<A: Aggregate>(&self, _: &str) -> Result<ReplayStream, PersistenceError> {
        Err(refused("streams"))
    }

    async fn stream_all_events<A: Aggregate>(&self) -> Result<ReplayStream, PersistenceError> {
        Err(refused("streams"))
    }
}

fn upcast_serialized(mut event: SerializedEvent) -> Result<SerializedEvent, PersistenceError> {
    event.payload = super::upcast(
        &event.aggregate_type,
        &event.event_type,
        &event.event_version,
        event.payload,
    )
    .map_err(|error| PersistenceError::DeserializationError(Box::new(error)))?;
    Ok(event)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_that_asks_for_an_automatic_apply_is_not_persisted() {
        assert!(refuse_auto_apply(&json!({"facts": {}})).is_ok());
        assert!(refuse_auto_apply(&json!({"auto_apply": false})).is_ok());
        for forged in [json!(true), json!("false"), json!(0), json!(null)] {
            assert!(refuse_auto_apply(&json!({"auto_apply": forged})).is_err());
        }
    }
}
