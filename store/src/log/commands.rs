//! Carrying out a command: load, decide, append; again when somebody else was faster, a bounded
//! number of times.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use cqrs_es::persist::PersistedEventStore;
use cqrs_es::{AggregateError, CqrsFramework};
use rand::Rng as _;
use sqlx::PgPool;
use stackship_domain::Actor;
use stackship_domain::ids::OrganizationId;

use super::aggregate::{Bridge, Logged};
use super::repository::{Repository, StreamEnd};
use crate::{StoreError, Violation, notify};

/// How often a command is decided again after somebody else's append.
pub const CONFLICT_RETRIES_MAX: u32 = 5;
/// The longest pause before a command is decided again, in milliseconds.
const CONFLICT_PAUSE_MS_MAX: u64 = 64;

/// Who causes events, and on whose behalf: the metadata that the database requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The tenant.
    pub organization: OrganizationId,
    /// Who causes it.
    pub actor: Actor,
    /// The request that led here.
    pub request_id: String,
    /// Makes carrying out the same command twice harmless: a second one with this id does nothing.
    pub command_id: String,
}

impl Context {
    fn metadata(&self) -> HashMap<String, String> {
        HashMap::from([
            ("organization_id".to_owned(), self.organization.to_string()),
            ("actor".to_owned(), self.actor.to_string()),
            ("request_id".to_owned(), self.request_id.clone()),
            ("command_id".to_owned(), self.command_id.clone()),
        ])
    }
}

/// Where an aggregate's events end after a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Committed {
    /// The sequence of the newest event; what a reader who wants to see this write waits for.
    pub sequence: i64,
    /// Whether this command appended anything.
    pub appended: bool,
}

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum CommandError<R: std::error::Error> {
    /// A no by the rules.
    #[error(transparent)]
    Refused(R),
    /// A no by the database: a stale fence, a pinned value.
    #[error(transparent)]
    Violated(Violation),
    /// Others kept being faster.
    #[error("too many others change this at the same time; try again")]
    Contended,
    /// A failure of ours.
    #[error(transparent)]
    Store(StoreError),
}

/// The log of one kind of aggregate. Cheap to clone.
pub struct EventLog<L> {
    pool: PgPool,
    kind: PhantomData<fn() -> L>,
}

impl<L> Clone for EventLog<L> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            kind: PhantomData,
        }
    }
}

impl<L: Logged + fmt::Debug + PartialEq> EventLog<L> {
    /// A log over a pool with the API's rights.
    pub const fn new(pool: PgPool) -> Self {
        Self {
            pool,
            kind: PhantomData,
        }
    }

    /// The aggregate as its events tell it, with the sequence of the newest event (0 when there is
    /// none).
    pub async fn load(&self, id: L::Id) -> Result<(L, i64), StoreError> {
        let rows: Vec<(i64, String, String, serde_json::Value)> = sqlx::query_as(
            "select sequence, event_type, event_version, payload from log.events \
             where aggregate_type = $1 and aggregate_id = $2 order by sequence",
        )
        .bind(L::TYPE)
        .bind(id.to_string())
        .fetch_all(&self.pool)
        .await?;
        let mut aggregate = L::default();
        let mut newest = 0;
        for (sequence, event_type, version, payload) in rows {
            let inconsistent =
                || StoreError::inconsistent("log.events", "payload", format!("{id}/{sequence}"));
            let payload = super::upcast(L::TYPE, &event_type, &version, payload)
                .map_err(|_| inconsistent())?;
            let event: L::Event = serde_json::from_value(payload).map_err(|_| inconsistent())?;
            aggregate.take(&event);
            newest = sequence;
        }
        Ok((aggregate, newest))
    }

    /// Carries out a command and nudges everybody who follows the log.
    pub async fn execute(
        &self,
        id: L::Id,
        command: L::Command,
        context: &Context,
    ) -> Result<Committed, CommandError<L::Refusal>> {
        let mut tries = 0;
        loop {
            if let Some(sequence) = self
                .carried_out(id, &context.command_id)
                .await
                .map_err(CommandError::Store)?
            {
                return Ok(Committed {
                    sequence,
                    appended: false,
                });
            }
            match self.try_once(id, command.clone(), context).await {
                Err(CommandError::Contended) if tries < CONFLICT_RETRIES_MAX => {
                    tries += 1;
                    let pause = rand::rng().random_range(1..=CONFLICT_PAUSE_MS_MAX);
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// The sequence of the newest event that this command wrote, if it was carried out before.
    async fn carried_out(&self, id: L::Id, command_id: &str) -> Result<Option<i64>, StoreError> {
        let sequence: Option<i64> = sqlx::query_scalar(
            "select max(sequence) from log.events where aggregate_type = $1 and aggregate_id = $2 and command_id = $3",
        )
        .bind(L::TYPE)
        .bind(id.to_string())
        .bind(command_id)
        .fetch_one(&self.pool)
        .await?;
        Ok(sequence)
    }

    async fn try_once(
        &self,
        id: L::Id,
        command: L::Command,
        context: &Context,
    ) -> Result<Committed, CommandError<L::Refusal>> {
        let end = StreamEnd::default();
        let repository = Repository::new(self.pool.clone(), end.clone());
        let store = PersistedEventStore::<_, Bridge<L>>::new_event_store(repository);
        let framework = CqrsFramework::new(store, vec![], ());
        let aggregate_id = id.to_string();
        framework
            .execute_with_metadata(&aggregate_id, command, context.metadata())
            .await
            .map_err(command_error::<L>)?;
        let committed = end.get();
        // The events are in: a nudge that fails costs followers only their fallback interval.
        if committed.appended
            && let Err(error) = notify::send(&self.pool, notify::Topic::Events, &aggregate_id).await
        {
            tracing::warn!(error = %error, "A nudge about new events was lost");
        }
        Ok(committed)
    }
}

fn command_error<L: Logged>(error: AggregateError<L::Refusal>) -> CommandError<L::Refusal> {
    let failure = match error {
        AggregateError::UserError(refusal) => return CommandError::Refused(refusal),
        AggregateError::AggregateConflict => return CommandError::Contended,
        AggregateError::DatabaseConnectionError(failure)
        | AggregateError::DeserializationError(failure)
        | AggregateError::UnexpectedError(failure) => failure,
    };
    // The library wraps the driver's error; its text would hold the row, so only its kind goes on.
    if let Some(violation) = failure.downcast_ref::<Violation>() {
        return CommandError::Violated(violation.clone());
    }
    match failure.downcast::<sqlx::Error>() {
        Ok(database) => match StoreError::from(*database) {
            StoreError::Refused(violation) => CommandError::Violated(violation),
            other => CommandError::Store(other),
        },
        Err(_) => CommandError::Store(StoreError::inconsistent(
            "log.events",
            "payload",
            "of this command",
        )),
    }
}
