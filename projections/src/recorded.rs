//! An event with what the log knows about it: the input of every fold.

use serde::de::DeserializeOwned;
use stackship_domain::{Actor, Timestamp};
use stackship_store::log::LoggedEvent;

use crate::ProjectionError;

/// An event and the circumstances of its recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded<E> {
    /// What happened.
    pub event: E,
    /// Its number within the aggregate, from 1.
    pub sequence: i64,
    /// When it was written.
    pub recorded_at: Timestamp,
    /// Who caused it.
    pub actor: Actor,
}

impl<E: DeserializeOwned> Recorded<E> {
    /// Reads an event of the feed.
    pub fn read(logged: &LoggedEvent) -> Result<Self, ProjectionError> {
        let unreadable = || ProjectionError::Unreadable {
            aggregate: logged.aggregate_id.clone(),
            sequence: logged.sequence,
        };
        Ok(Self {
            event: E::deserialize(&logged.payload).map_err(|_| unreadable())?,
            sequence: logged.sequence,
            recorded_at: logged.recorded_at,
            actor: logged.actor.parse().map_err(|_| unreadable())?,
        })
    }
}
