//! The follower of the log. Every process may run one; whoever holds the checkpoint's row works, the
//! others look again later. An event that cannot be applied stops the projector there, loudly, until
//! somebody mends the cause: nothing is ever skipped.

mod apply;
mod batch;
mod checkpoint;
mod progress;
mod telemetry;

use std::time::Duration;

use sqlx::PgPool;
use stackship_store::notify::{Nudges, Topic};
use tokio_util::sync::CancellationToken;

pub(crate) use batch::{Pass, pass, step};
pub(crate) use checkpoint::lock;
pub use checkpoint::{Checkpoint, checkpoint};

use crate::ProjectionError;
use crate::target::Target;

/// The most events of one transaction while following. Batches stay well under a second: while one
/// runs, the events written meanwhile cannot be read.
pub const BATCH_EVENTS_LIVE: u16 = 1_000;
/// How long a lost nudge can delay the projector.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How soon to look again when events wait for an older transaction to end; doubled each time up to
/// [`HELD_BACK_PAUSE_MAX`].
const HELD_BACK_PAUSE: Duration = Duration::from_millis(4);
/// The longest pause while events wait: what a reader loses when that transaction has ended.
const HELD_BACK_PAUSE_MAX: Duration = Duration::from_millis(32);
/// How soon to try again after an error; doubled each time up to [`RETRY_PAUSE_MAX`].
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause after an error.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(8);

/// Why the projector rests.
enum Rest {
    /// Nothing is left to do, or another process does it.
    CaughtUp,
    /// Events are there, but an older transaction may still write before them.
    HeldBack,
    /// The process ends.
    Stopped,
}

/// Follows the log.
#[derive(Debug, Clone)]
pub struct Projector {
    pool: PgPool,
    nudges: Nudges,
}

impl Projector {
    /// A projector over a pool with the projector's rights, woken by `nudges`.
    pub const fn new(pool: PgPool, nudges: Nudges) -> Self {
        Self { pool, nudges }
    }

    /// Follows the log until `stop`. A batch that has begun is finished first.
    pub async fn run(self, stop: CancellationToken) {
        let mut nudge = self.nudges.subscribe();
        let mut held_back = HELD_BACK_PAUSE;
        let mut retry = RETRY_PAUSE;
        loop {
            // Nudges that came until now are answered by the look that follows.
            while nudge.try_recv().is_ok() {}
            let (pause, deaf) = match self.drain(&stop).await {
                Ok(Rest::Stopped) => return,
                Ok(Rest::CaughtUp) => {
                    (held_back, retry) = (HELD_BACK_PAUSE, RETRY_PAUSE);
                    (LOOK_AGAIN_AFTER, false)
                }
                Ok(Rest::HeldBack) => {
                    retry = RETRY_PAUSE;
                    let pause = held_back;
                    held_back = (held_back * 2).min(HELD_BACK_PAUSE_MAX);
                    (pause, false)
                }
                Err(error) => {
                    telemetry::failed(&self.pool, &error).await;
                    let pause = retry;
                    retry = (retry * 2).min(RETRY_PAUSE_MAX);
                    (pause, true)
                }
            };
            let wait = async {
                if deaf {
                    tokio::time::sleep(pause).await;
                } else {
                    Nudges::wait(&mut nudge, Topic::Events, None, pause).await;
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = wait => {}
            }
        }
    }

    /// Applies batch after batch until nothing more can be read.
    async fn drain(&self, stop: &CancellationToken) -> Result<Rest, ProjectionError> {
        let mut connection = self.pool.acquire().await?;
        while !stop.is_cancelled() {
            match pass(&mut connection, Target::Live, BATCH_EVENTS_LIVE).await? {
                Pass::Applied(applied) => telemetry::applied(&applied),
                Pass::HeldBack(oldest) => {
                    telemetry::waiting_since(oldest);
                    return Ok(Rest::HeldBack);
                }
                Pass::Idle => {
                    telemetry::caught_up();
                    return Ok(Rest::CaughtUp);
                }
                Pass::Busy => return Ok(Rest::CaughtUp),
            }
        }
        Ok(Rest::Stopped)
    }

    /// Applies what can be read now and returns how many events that were. For tools and tests; a
    /// server runs [`Projector::run`].
    pub async fn catch_up(&self) -> Result<u64, ProjectionError> {
        let mut connection = self.pool.acquire().await?;
        let mut events = 0;
        while let Pass::Applied(applied) =
            pass(&mut connection, Target::Live, BATCH_EVENTS_LIVE).await?
        {
            events += u64::try_from(applied.events).expect("a batch's size fits 64 bits");
        }
        Ok(events)
    }
}
