//! Everything that is written down: the event log, the records, fenced attempts and states, logs
//! of phases, and encrypted objects.
//!
//! SQL of the write side lives here and nowhere else. No HTTP, no read models, no rules: what is
//! allowed is asked of the `domain` room before, and refused by the database after.

pub mod attempts;
pub mod clock;
mod columns;
pub mod error;
pub mod log;
pub mod notify;
pub mod objects;
pub mod phase_logs;
pub mod pool;
pub mod records;
pub mod recoveries;
pub mod states;
mod time;

pub use error::{StoreError, Violation};
pub use time::DbTime;

use log::EventLog;
use objects::Objects;
use sqlx::PgPool;
use stackship_domain::run::Run;
use stackship_domain::workspace::Workspace;

/// The migrations of the whole database.
pub static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!("../migrations");

/// The write side, as one handle. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    /// Connections with the rights of the API.
    pub pool: PgPool,
    /// Runs, by their events.
    pub runs: EventLog<Run>,
    /// Workspaces (lock, queue, state), by their events.
    pub workspaces: EventLog<Workspace>,
    /// Encrypted objects.
    pub objects: Objects,
}

impl Store {
    /// Puts the write side together over a pool that already has the API's rights.
    pub fn new(pool: PgPool, objects: Objects) -> Self {
        Self {
            runs: EventLog::new(pool.clone()),
            workspaces: EventLog::new(pool.clone()),
            pool,
            objects,
        }
    }
}
