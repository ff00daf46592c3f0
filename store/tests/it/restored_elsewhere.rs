//! A log that was dumped and restored into another cluster, whose transaction ids begin anew, goes
//! on after one statement.

use sqlx::PgPool;
use stackship_domain::workspace::Command;
use stackship_store::clock;
use stackship_store::log::{FeedPosition, LoggedEvent, feed_read, written_here};

use crate::support::World;

/// How far the other cluster was ahead of this one.
const AHEAD: i64 = 1_000_000_000;

/// Makes the log look as a dump of a cluster that had seen many more transactions.
async fn restore_from_elsewhere(world: &World) {
    for statement in [
        "alter table log.events disable trigger events_append_only".to_owned(),
        format!(
            "update log.events set transaction_id = (transaction_id::text::bigint + {AHEAD})::text::xid8"
        ),
        "alter table log.events enable trigger events_append_only".to_owned(),
    ] {
        sqlx::query(&statement).execute(&world.owner).await.unwrap();
    }
}

async fn write(world: &World) {
    let run = clock::fresh();
    world.command_workspace(Command::Enqueue { run }).await;
}

/// What is written in this test is read once its transaction is older than all that run.
async fn read(world: &World, after: FeedPosition, count: usize) -> Vec<LoggedEvent> {
    let mut connection = world.owner.acquire().await.unwrap();
    crate::feed_never_skips::follow(&mut connection, after, count).await
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_restored_log_goes_on_in_order_after_one_statement(pool: PgPool) {
    let world = World::new(pool).await;
    assert!(written_here(&world.owner).await.unwrap());
    let restored = usize::try_from(world.event_count().await).unwrap();
    restore_from_elsewhere(&world).await;
    assert!(
        !written_here(&world.owner).await.unwrap(),
        "a log of another cluster was taken for one of this"
    );

    sqlx::query("update log.store_epoch set epoch = epoch + 1")
        .execute(&world.owner)
        .await
        .unwrap();
    assert!(written_here(&world.owner).await.unwrap());

    // Whatever was restored is complete, and can be read before anything new is written.
    let old = read(&world, FeedPosition::default(), restored).await;
    let end = old.last().unwrap().at;
    write(&world).await;
    write(&world).await;
    let new = read(&world, end, 2).await;
    assert_eq!(
        new.iter().map(|event| event.at.epoch).collect::<Vec<_>>(),
        [2, 2]
    );
    assert!(new[0].at.transaction < end.transaction, "nothing was tried");
    assert_eq!(
        read(&world, FeedPosition::default(), restored + 2).await,
        [old, new].concat()
    );
    assert!(written_here(&world.owner).await.unwrap());
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn without_that_statement_what_is_new_would_not_be_read(pool: PgPool) {
    let world = World::new(pool).await;
    restore_from_elsewhere(&world).await;
    let end: i64 = sqlx::query_scalar("select max(transaction_id::text::bigint) from log.events")
        .fetch_one(&world.owner)
        .await
        .unwrap();
    write(&world).await;
    let mut connection = world.owner.acquire().await.unwrap();
    let after = FeedPosition {
        epoch: 1,
        transaction: end,
        position: i64::MAX,
    };
    assert_eq!(feed_read(&mut connection, after, 10).await.unwrap(), vec![]);
    assert!(!written_here(&world.owner).await.unwrap());
}
