//! Read-your-own-writes: whoever has just appended waits until the read models have passed it.

use std::time::Duration;

use sqlx::PgPool;
use stackship_domain::ids::{RunId, WorkspaceId};
use stackship_store::log::FeedPosition;
use stackship_store::notify::{Nudges, Topic};
use tokio::time::Instant;

use crate::ProjectionError;

/// How long a request waits for its own write before it answers that the read models are behind.
pub const READ_YOUR_WRITES_LIMIT: Duration = Duration::from_secs(2);
/// How long a lost nudge can delay a waiter.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The read models hold what was waited for.
    Caught,
    /// The limit passed first; what is read now may be older than the write.
    TimedOut,
}

/// Waits for read models. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ViewWaiter {
    pool: PgPool,
    nudges: Nudges,
}

impl ViewWaiter {
    /// Looks through `pool` whenever `nudges` says that the read models moved.
    pub const fn new(pool: PgPool, nudges: Nudges) -> Self {
        Self { pool, nudges }
    }

    /// Waits until the review of `run` holds the event with this sequence.
    pub async fn wait_run(
        &self,
        run: RunId,
        sequence: i64,
        limit: Duration,
    ) -> Result<Waited, ProjectionError> {
        let run = run.to_string();
        let caught = || {
            sqlx::query_scalar::<_, bool>(
                "select exists (select from view.run_review where run_id = $1 and last_sequence >= $2)",
            )
            .bind(&run)
            .bind(sequence)
            .fetch_one(&self.pool)
        };
        self.wait(limit, caught).await
    }

    /// Waits until the status of `workspace` holds the event with this sequence.
    pub async fn wait_workspace(
        &self,
        workspace: WorkspaceId,
        sequence: i64,
        limit: Duration,
    ) -> Result<Waited, ProjectionError> {
        let workspace = workspace.to_string();
        let caught = || {
            sqlx::query_scalar::<_, bool>(
                "select exists (select from view.workspace_status where workspace_id = $1 and last_sequence >= $2)",
            )
            .bind(&workspace)
            .bind(sequence)
            .fetch_one(&self.pool)
        };
        self.wait(limit, caught).await
    }

    /// Waits until everything up to `position` is in the read models, facts among it.
    pub async fn wait_position(
        &self,
        position: FeedPosition,
        limit: Duration,
    ) -> Result<Waited, ProjectionError> {
        let caught = || {
            sqlx::query_scalar::<_, bool>(
                "select exists (select from view.checkpoints where name = 'live' \
                 and (epoch, transaction_id, global_position) >= ($1, $2, $3))",
            )
            .bind(position.epoch)
            .bind(position.transaction)
            .bind(position.position)
            .fetch_one(&self.pool)
        };
        self.wait(limit, caught).await
    }

    async fn wait<F>(
        &self,
        limit: Duration,
        mut caught: impl FnMut() -> F,
    ) -> Result<Waited, ProjectionError>
    where
        F: Future<Output = Result<bool, sqlx::Error>>,
    {
        // Before the first look, so that no move between a look and the wait for the next is missed.
        let mut receiver = self.nudges.subscribe();
        let deadline = Instant::now() + limit;
        loop {
            if caught().await? {
                return Ok(Waited::Caught);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Waited::TimedOut);
            }
            Nudges::wait(
                &mut receiver,
                Topic::Projected,
                None,
                left.min(LOOK_AGAIN_AFTER),
            )
            .await;
        }
    }
}
