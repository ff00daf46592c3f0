//! Read-your-own-writes.

use std::time::Duration;

use sqlx::PgPool;
use stackship_domain::run::RunKind;
use stackship_projections::audit::AuditFilter;
use stackship_projections::{ViewWaiter, Waited};
use stackship_store::log::{FeedPosition, feed_safe_end};
use tokio_util::sync::CancellationToken;

use crate::world::{SOON, World};

/// Long enough to look, too short for anything to happen.
const AT_ONCE: Duration = Duration::from_millis(20);

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_writer_sees_its_own_write(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    let stop = CancellationToken::new();
    let listening = tokio::spawn(
        world
            .nudges
            .clone()
            .listen(world.owner.clone(), stop.clone()),
    );
    let projecting = tokio::spawn(world.projector.clone().run(stop.clone()));
    let waiter = ViewWaiter::new(world.owner.clone(), world.nudges.clone());

    for _ in 0..5 {
        let (run, _) = world.holding_run(&tenant).await;
        let (_, sequence) = world.runs.load(run).await.unwrap();
        let waited = waiter.wait_run(run, sequence, SOON).await.unwrap();
        assert_eq!(waited, Waited::Caught);
        let review = world.views.review(tenant.organization, run).await.unwrap();
        assert_eq!(review.unwrap().last_sequence, sequence);

        let (workspace, sequence) = world.workspaces.load(tenant.workspace).await.unwrap();
        let waited = waiter
            .wait_workspace(tenant.workspace, sequence, SOON)
            .await
            .unwrap();
        assert_eq!(waited, Waited::Caught);
        let fence = workspace.fence;
        let release = stackship_domain::workspace::Command::ReleaseByRun {
            run,
            fence,
            left_behind: None,
        };
        world.ask(&tenant, release).await;
    }
    stop.cancel();
    projecting.await.unwrap();
    listening.await.unwrap();
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn without_a_projector_the_wait_ends_at_its_limit(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    let facts = world.facts(&tenant, RunKind::Speculative).await;
    let run = world.create(&tenant, facts).await;
    let waiter = ViewWaiter::new(world.owner.clone(), world.nudges.clone());
    let waited = waiter.wait_run(run, 1, AT_ONCE).await.unwrap();
    assert_eq!(waited, Waited::TimedOut);

    world.settle().await;
    let waited = waiter.wait_run(run, 1, Duration::ZERO).await.unwrap();
    assert_eq!(waited, Waited::Caught, "it looks before it waits");
    let waited = waiter.wait_run(run, 2, AT_ONCE).await.unwrap();
    assert_eq!(waited, Waited::TimedOut, "a later event is not there");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn lost_nudges_only_delay(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    let stop = CancellationToken::new();
    // Nobody listens, so neither the projector nor the waiter is ever nudged.
    let projecting = tokio::spawn(world.projector.clone().run(stop.clone()));
    let waiter = ViewWaiter::new(world.owner.clone(), world.nudges.clone());
    let run = world.speculative_run(&tenant).await;
    let waited = waiter.wait_run(run, 6, SOON).await.unwrap();
    assert_eq!(waited, Waited::Caught);
    stop.cancel();
    projecting.await.unwrap();
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_fact_is_waited_for_by_its_place_in_the_feed(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    world.fact(&tenant).await;
    let waiter = ViewWaiter::new(world.owner.clone(), world.nudges.clone());
    let mut end = FeedPosition::default();
    crate::world::until("the fact can be read", async || {
        let mut connection = world.owner.acquire().await.unwrap();
        end = feed_safe_end(&mut connection).await.unwrap();
        end != FeedPosition::default()
    })
    .await;
    let waited = waiter.wait_position(end, AT_ONCE).await.unwrap();
    assert_eq!(waited, Waited::TimedOut);
    world.settle().await;
    let waited = waiter.wait_position(end, AT_ONCE).await.unwrap();
    assert_eq!(waited, Waited::Caught);
    let entry = &world
        .views
        .audit_page(tenant.organization, &AuditFilter::default(), None, 1)
        .await
        .unwrap()
        .entries[0];
    assert_eq!(entry.event_type, "token_created");
}
