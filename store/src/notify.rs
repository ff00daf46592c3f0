//! Nudges between processes: one LISTEN session, many waiters. A nudge may be lost or doubled; it
//! only ever means "look again", and every waiter also looks by itself from time to time.

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgListener;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::StoreError;

/// How many nudges a slow waiter may fall behind before it is told only that it missed some.
const BACKLOG_MAX: usize = 4096;
/// How long to wait before the listening session is opened again.
const RECONNECT_AFTER: Duration = Duration::from_millis(500);

/// What a nudge is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// Events were appended; the payload is the aggregate id.
    Events,
    /// An attempt was offered, closed or asked to stop; the payload is the run id.
    Attempts,
    /// A phase log grew or was closed; the payload is the run id.
    Logs,
    /// Projections moved; the payload is empty.
    Projected,
}

impl Topic {
    const ALL: [Self; 4] = [Self::Events, Self::Attempts, Self::Logs, Self::Projected];

    /// The channel's name.
    pub const fn channel(self) -> &'static str {
        match self {
            Self::Events => "stackship_events",
            Self::Attempts => "stackship_attempts",
            Self::Logs => "stackship_logs",
            Self::Projected => "stackship_projected",
        }
    }

    fn from_channel(channel: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|topic| topic.channel() == channel)
    }
}

/// One nudge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nudge {
    /// What it is about.
    pub topic: Topic,
    /// Which run, workspace or nothing.
    pub subject: Arc<str>,
}

/// Hands nudges to whoever waits in this process.
#[derive(Debug, Clone)]
pub struct Nudges {
    sender: broadcast::Sender<Nudge>,
}

impl Default for Nudges {
    fn default() -> Self {
        Self {
            sender: broadcast::channel(BACKLOG_MAX).0,
        }
    }
}

impl Nudges {
    /// Begins to receive. A receiver that falls behind gets `Lagged` and should look at everything.
    pub fn subscribe(&self) -> broadcast::Receiver<Nudge> {
        self.sender.subscribe()
    }

    /// Waits for a nudge on `topic` about `subject` (any subject when `None`) or about everything, or
    /// until `limit` has passed; either way it is time to look again.
    pub async fn wait(
        receiver: &mut broadcast::Receiver<Nudge>,
        topic: Topic,
        subject: Option<&str>,
        limit: Duration,
    ) {
        let matching = async {
            loop {
                match receiver.recv().await {
                    Ok(nudge)
                        if nudge.topic == topic
                            && (nudge.subject.is_empty()
                                || subject.is_none_or(|wanted| *nudge.subject == *wanted)) =>
                    {
                        return;
                    }
                    Ok(_) => {}
                    Err(broadcast::error::RecvError::Lagged(_)) => return,
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        // Running out of time is as good a reason to look again as a nudge.
        drop(tokio::time::timeout(limit, matching).await);
    }

    /// Keeps one LISTEN session open until `stop`, and opens it again when it breaks.
    pub async fn listen(self, pool: PgPool, stop: CancellationToken) {
        loop {
            let outcome = tokio::select! {
                () = stop.cancelled() => return,
                outcome = self.listen_once(&pool) => outcome,
            };
            if let Err(error) = outcome {
                tracing::warn!(error = %error, "The session that listens for nudges ended; opening it again");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(RECONNECT_AFTER) => {}
            }
        }
    }

    async fn listen_once(&self, pool: &PgPool) -> Result<(), sqlx::Error> {
        let mut listener = PgListener::connect_with(pool).await?;
        listener.listen_all(Topic::ALL.map(Topic::channel)).await?;
        // Whatever happened while nobody listened: everybody looks once.
        for topic in Topic::ALL {
            self.pass_on(topic, "");
        }
        while let Some(notification) = listener.try_recv().await? {
            if let Some(topic) = Topic::from_channel(notification.channel()) {
                self.pass_on(topic, notification.payload());
            }
        }
        Ok(())
    }

    fn pass_on(&self, topic: Topic, subject: &str) {
        // Nobody waiting is no error: a nudge has no meaning without a waiter.
        drop(self.sender.send(Nudge {
            topic,
            subject: subject.into(),
        }));
    }
}

/// Nudges every process. Said after the commit, in a statement of its own, so that it never holds
/// back another writer's commit; nor does its own wait for the disk, for a crash loses a nudge anyway.
pub async fn send(pool: &PgPool, topic: Topic, subject: &str) -> Result<(), StoreError> {
    sqlx::query("select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)")
        .bind(topic.channel())
        .bind(subject)
        .execute(pool)
        .await?;
    Ok(())
}
