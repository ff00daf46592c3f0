//! One person at a time decides what became of an apply.
//!
//! Adopting a state is two commits, one to its workspace and one to its run. Between them nobody else
//! may say that nothing had changed.

use sqlx::{Postgres, Transaction};
use stackship_domain::ids::RunId;

use crate::{Store, StoreError};

/// The right to decide about a run, until it is given back or its connection ends.
#[derive(Debug)]
pub struct Deciding(Transaction<'static, Postgres>);

/// Takes the right to decide about a run; `None` while somebody else has it. Nobody waits for it: the
/// one who comes second should see what the first decided.
pub async fn decide_alone(store: &Store, run: RunId) -> Result<Option<Deciding>, StoreError> {
    let mut transaction = store.pool.begin().await?;
    let is_mine: bool =
        sqlx::query_scalar("select pg_try_advisory_xact_lock(hashtextextended($1, 0))")
            .bind(format!("recovery of {run}"))
            .fetch_one(&mut *transaction)
            .await?;
    Ok(is_mine.then_some(Deciding(transaction)))
}

impl Deciding {
    /// Gives the right back. A connection that fails at this has ended, and the right with it.
    pub async fn end(self) {
        if let Err(error) = self.0.rollback().await {
            tracing::warn!(error = %error, "The right to decide ended with its connection");
        }
    }
}
