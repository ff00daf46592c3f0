//! A reader of the feed sees every event once, in one order, whatever commits late.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use stackship_domain::workspace::Command;
use stackship_store::clock;
use stackship_store::log::{
    Fact, FeedPosition, LoggedEvent, fact_append, feed_read, feed_safe_end,
};

use crate::support::World;

/// Far longer than any reader here needs; a reader that never gets there is a failure.
const PATIENCE: Duration = Duration::from_mins(2);
/// Small, so that a reader stops between events of one transaction.
const BATCH: i64 = 7;

/// Reads on from `after` until `count` events have come.
pub async fn follow(
    connection: &mut PgConnection,
    after: FeedPosition,
    count: usize,
) -> Vec<LoggedEvent> {
    let reading = async {
        let mut seen: Vec<LoggedEvent> = Vec::new();
        while seen.len() < count {
            let position = seen.last().map_or(after, |event| event.at);
            seen.extend(feed_read(connection, position, BATCH).await.unwrap());
            tokio::task::yield_now().await;
        }
        seen
    };
    tokio::time::timeout(PATIENCE, reading)
        .await
        .expect("the feed ends before all events have come")
}

async fn tell(world: &World, connection: &mut PgConnection, number: usize) {
    let detail = serde_json::json!({"number": number});
    fact_append(
        connection,
        &world.context(),
        &Fact {
            name: "something_happened",
            detail,
        },
    )
    .await
    .unwrap();
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn nothing_is_skipped_while_eight_writers_append(pool: PgPool) {
    const WRITERS: usize = 8;
    const TRANSACTIONS: usize = 25;
    let world = Arc::new(World::new(pool).await);
    let before = usize::try_from(world.event_count().await).unwrap();
    let writer = async |world: Arc<World>, writer: usize| {
        for number in 0..TRANSACTIONS {
            let mut transaction = world.store.pool.begin().await.unwrap();
            tell(&world, &mut transaction, writer).await;
            tell(&world, &mut transaction, number).await;
            // Positions are handed out by now; others overtake this transaction before it commits.
            tokio::task::yield_now().await;
            transaction.commit().await.unwrap();
        }
    };
    let writers = (0..WRITERS).map(|number| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { writer(world, number).await })
    });
    let writers: Vec<_> = writers.collect();
    let mut connection = world.owner.acquire().await.unwrap();
    let expected = before + WRITERS * TRANSACTIONS * 2;
    let seen = follow(&mut connection, FeedPosition::default(), expected).await;
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(seen.len(), expected, "an event came twice");
    assert!(
        seen.windows(2).all(|pair| pair[0].at < pair[1].at),
        "the order went back"
    );
    let mut ids: Vec<&str> = seen
        .iter()
        .map(|event| event.aggregate_id.as_str())
        .collect();
    ids.sort_unstable();
    let written: Vec<String> = sqlx::query_scalar(
        "select aggregate_id from log.events order by aggregate_id collate \"C\"",
    )
    .fetch_all(&world.owner)
    .await
    .unwrap();
    assert!(
        ids.iter().eq(written.iter()),
        "the feed and the log hold other events"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_transaction_that_stays_open_delays_and_loses_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let mut connection = world.owner.acquire().await.unwrap();
    let count = usize::try_from(world.event_count().await).unwrap();
    let start = follow(&mut connection, FeedPosition::default(), count)
        .await
        .last()
        .unwrap()
        .at;

    let mut open = world.store.pool.begin().await.unwrap();
    tell(&world, &mut open, 1).await;
    for _ in 0..3 {
        world
            .command_workspace(Command::Enqueue {
                run: clock::fresh(),
            })
            .await;
    }
    assert_eq!(
        feed_read(&mut connection, start, 100).await.unwrap(),
        vec![],
        "later events overtook an open one"
    );
    assert_eq!(feed_safe_end(&mut connection).await.unwrap(), start);
    tell(&world, &mut open, 2).await;
    open.commit().await.unwrap();

    let seen = follow(&mut connection, start, 5).await;
    let kinds: Vec<&str> = seen
        .iter()
        .map(|event| event.aggregate_type.as_str())
        .collect();
    assert_eq!(
        kinds,
        ["fact", "fact", "workspace", "workspace", "workspace"]
    );
    assert_eq!(
        (&seen[0].payload["number"], &seen[1].payload["number"]),
        (&1.into(), &2.into())
    );
    assert_eq!(feed_safe_end(&mut connection).await.unwrap(), seen[4].at);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_aborted_transaction_leaves_no_hole_that_anybody_waits_for(pool: PgPool) {
    let world = World::new(pool).await;
    let mut aborted = world.store.pool.begin().await.unwrap();
    tell(&world, &mut aborted, 1).await;
    aborted.rollback().await.unwrap();
    world
        .command_workspace(Command::Enqueue {
            run: clock::fresh(),
        })
        .await;
    let mut connection = world.owner.acquire().await.unwrap();
    let count = usize::try_from(world.event_count().await).unwrap();
    let seen = follow(&mut connection, FeedPosition::default(), count).await;
    assert_eq!(seen.last().unwrap().aggregate_type, "workspace");
}
