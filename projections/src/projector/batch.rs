//! One transaction of the projector: take the checkpoint, read, fold, write, move the checkpoint.

use sqlx::{Connection as _, PgConnection};
use stackship_domain::Timestamp;
use stackship_store::log::{LoggedEvent, feed_read};
use stackship_store::notify::Topic;

use super::apply::apply;
use super::checkpoint::{self, Checkpoint, first_after};
use super::progress::Progress;
use crate::ProjectionError;
use crate::target::Target;

/// What one transaction did.
#[derive(Debug)]
pub(crate) enum Pass {
    /// Another process has the checkpoint.
    Busy,
    /// There is nothing to read.
    Idle,
    /// There are events, since this time, but an older transaction may still write before them.
    HeldBack(Timestamp),
    /// Events were applied.
    Applied(Applied),
}

/// A committed batch.
#[derive(Debug)]
pub(crate) struct Applied {
    /// How many events.
    pub(crate) events: usize,
    /// When the last of them was recorded.
    pub(crate) newest: Timestamp,
}

/// Applies the next events, at most `limit`, in one transaction.
pub(crate) async fn pass(
    connection: &mut PgConnection,
    target: Target,
    limit: u16,
) -> Result<Pass, ProjectionError> {
    let mut transaction = connection.begin().await?;
    let pass = match checkpoint::lock(&mut transaction, target).await? {
        Some(checkpoint) => step(&mut transaction, target, checkpoint, limit).await?,
        None => Pass::Busy,
    };
    match pass {
        Pass::Applied(_) => {
            if target == Target::Live {
                // Nothing here waits for the disk: what a crash of the database takes away, checkpoint and
                // all, is made anew from the log, which does wait.
                sqlx::query(
                    "select set_config('synchronous_commit', 'off', true), pg_notify($1, '')",
                )
                .bind(Topic::Projected.channel())
                .execute(&mut *transaction)
                .await?;
            }
            transaction.commit().await?;
        }
        // At once: a transaction that is only dropped keeps the checkpoint until its connection is
        // used again, and whoever looks next finds it taken.
        Pass::Busy | Pass::Idle | Pass::HeldBack(_) => transaction.rollback().await?,
    }
    Ok(pass)
}

/// The same within a transaction that has the checkpoint.
pub(crate) async fn step(
    connection: &mut PgConnection,
    target: Target,
    checkpoint: Checkpoint,
    limit: u16,
) -> Result<Pass, ProjectionError> {
    let mut events = feed_read(connection, checkpoint.position, i64::from(limit)).await?;
    if events.len() >= usize::from(limit) {
        keep_whole_transactions(&mut events);
    }
    let Some(last) = events.last() else {
        let pending = first_after(connection, checkpoint.position).await?;
        return Ok(pending.map_or(Pass::Idle, Pass::HeldBack));
    };
    let mut progress = Progress::load(connection, target, &events).await?;
    let mut fresh = Vec::with_capacity(events.len());
    for event in &events {
        if progress.admit(event)? {
            fresh.push(event);
        }
    }
    apply(connection, target, &fresh).await?;
    checkpoint::advance(connection, target, last, fresh.len()).await?;
    Ok(Pass::Applied(Applied {
        events: events.len(),
        newest: last.recorded_at,
    }))
}

/// Drops the last transaction of a full batch, which the limit may have cut: what was decided at once
/// is seen at once. A transaction that fills the batch by itself is taken as it comes.
fn keep_whole_transactions(events: &mut Vec<LoggedEvent>) {
    let Some(last) = events
        .last()
        .map(|event| (event.at.epoch, event.at.transaction))
    else {
        return;
    };
    let begin = events.partition_point(|event| (event.at.epoch, event.at.transaction) < last);
    if begin > 0 {
        events.truncate(begin);
    }
}

#[cfg(test)]
mod tests {
    use stackship_store::log::FeedPosition;

    use super::*;

    /// Events of these transactions, in order.
    fn events(transactions: &[i64]) -> Vec<LoggedEvent> {
        let event = |(position, transaction): (i64, &i64)| LoggedEvent {
            at: FeedPosition {
                epoch: 1,
                transaction: *transaction,
                position,
            },
            aggregate_type: "fact".to_owned(),
            aggregate_id: format!("fact-{position}"),
            sequence: 1,
            event_type: "noted".to_owned(),
            event_version: "1.0".to_owned(),
            payload: serde_json::json!({}),
            stored_payload: serde_json::json!({}),
            organization_id: "org-1".to_owned(),
            actor: "system".to_owned(),
            request_id: "request".to_owned(),
            command_id: "command".to_owned(),
            recorded_at: Timestamp::UNIX_EPOCH,
        };
        (1..).zip(transactions).map(event).collect()
    }

    #[test]
    fn a_full_batch_ends_with_a_whole_transaction() {
        for (read, kept) in [
            (vec![1, 1, 2, 2], 2),
            (vec![1, 2, 3], 2),
            (vec![1, 2, 2, 2], 1),
            // Longer than a batch: waiting for its end would be waiting for ever.
            (vec![4, 4, 4], 3),
            (vec![], 0),
        ] {
            let mut batch = events(&read);
            keep_whole_transactions(&mut batch);
            assert_eq!(batch, events(&read[..kept]), "{read:?}");
        }
    }
}
