//! Each event counts exactly once, whatever dies and whoever works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use sqlx::PgPool;
use stackship_domain::Sha256Digest;
use stackship_domain::run::{Event, RunKind, samples};
use stackship_projections::audit::{CHAIN_START, link};
use stackship_projections::{ProjectionError, Projector, checkpoint, rebuild};
use stackship_store::clock;
use stackship_store::log::{FeedPosition, feed_read};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::world::{SOON, Tenant, World, pool_as, until};

const KILLS: u32 = 20;
const WRITERS: usize = 8;
const EVENTS_MIN: i64 = 500;
const PROJECTORS: usize = 3;
/// Keeps a slow machine from writing without end; never reached on an ordinary one.
const RUNS_PER_WRITER_MAX: u32 = 2_000;

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn delivered_twice_equals_once(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    world.applied_run(&tenant).await;
    world.speculative_run(&tenant).await;
    world.fact(&tenant).await;
    world.settle().await;
    let once = world.dump().await;
    let before = checkpoint(&world.owner).await.unwrap().unwrap();

    sqlx::query("update view.checkpoints set epoch = 0, transaction_id = 0, global_position = 0")
        .execute(&world.owner)
        .await
        .unwrap();
    until("the checkpoint is back where it was", async || {
        world.projector.catch_up().await.unwrap();
        checkpoint(&world.owner).await.unwrap().unwrap().position == before.position
    })
    .await;

    assert_eq!(world.dump().await, once);
    assert_eq!(checkpoint(&world.owner).await.unwrap(), Some(before));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn twenty_kills_under_load_lose_and_double_nothing(pool: PgPool) {
    let world = World::new(pool);
    let stop = CancellationToken::new();
    let listening = tokio::spawn(
        world
            .nudges
            .clone()
            .listen(world.owner.clone(), stop.clone()),
    );
    let enough = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let tenant = world.tenant().await;
        writers.push(tokio::spawn(write(world.clone(), tenant, enough.clone())));
    }
    let mut projectors: Vec<JoinHandle<()>> =
        (0..PROJECTORS).map(|_| start(&world, &stop)).collect();

    let mut random = StdRng::seed_from_u64(20);
    for kill in 0..KILLS {
        let applied = world.applied().await;
        until("the projectors go on", async || {
            world.applied().await > applied
        })
        .await;
        if kill % 2 == 0 {
            let victim = random.random_range(0..PROJECTORS);
            projectors[victim].abort();
            projectors[victim] = start(&world, &stop);
        } else {
            until("a working session is ended", async || {
                end_working_sessions(&world).await > 0
            })
            .await;
        }
    }
    until("there are enough events to prove something", async || {
        world.events().await > EVENTS_MIN
    })
    .await;
    enough.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    until("everything written is applied", async || {
        world.applied().await == world.events().await
    })
    .await;
    stop.cancel();
    for projector in projectors {
        projector.await.unwrap();
    }
    listening.await.unwrap();

    nothing_lost_nothing_doubled(&world).await;
    the_chain_is_whole(&world).await;
    let incremental = world.dump().await;
    rebuild(&world.owner).await.unwrap();
    assert_eq!(world.dump().await, incremental);
}

/// A projector with connections of its own, as in another process.
fn start(world: &World, stop: &CancellationToken) -> JoinHandle<()> {
    let pool = pool_as(&world.owner, "stackship_projector", 2);
    tokio::spawn(Projector::new(pool, world.nudges.clone()).run(stop.clone()))
}

async fn write(world: World, tenant: Tenant, enough: Arc<AtomicBool>) {
    for _ in 0..RUNS_PER_WRITER_MAX {
        if enough.load(Ordering::Relaxed) {
            return;
        }
        world.speculative_run(&tenant).await;
        world.applied_run(&tenant).await;
        world.fact(&tenant).await;
    }
    panic!("the kills took too long");
}

/// Ends the sessions of projectors that are in the middle of a batch.
async fn end_working_sessions(world: &World) -> i64 {
    world
        .number(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity \
             where datname = current_database() and application_name = 'stackship_projector' \
             and xact_start is not null",
        )
        .await
}

async fn nothing_lost_nothing_doubled(world: &World) {
    let events = world.events().await;
    assert_eq!(world.applied().await, events);
    for (what, query) in [
        (
            "events without an audit entry, or entries without their event",
            "select count(*) from log.events as event full join view.audit_entries as entry \
             using (aggregate_type, aggregate_id, sequence) \
             where event.event_type is distinct from entry.event_type",
        ),
        (
            "organizations whose numbers are not dense",
            "select count(*) from (select organization_id from view.audit_entries group by organization_id \
             having count(*) <> max(number) or min(number) <> 1) as holes",
        ),
        (
            "heads that do not name the last entry",
            "select count(*) from view.audit_heads as head where not exists (select from view.audit_entries as entry \
             where entry.organization_id = head.organization_id and entry.number = head.number and entry.hash = head.hash) \
             or head.number <> (select max(number) from view.audit_entries as entry \
                 where entry.organization_id = head.organization_id)",
        ),
        (
            "stale reviews",
            "select count(*) from (select aggregate_id, max(sequence) as newest from log.events \
             where aggregate_type = 'run' group by aggregate_id) as run \
             left join view.run_review as review on review.run_id = run.aggregate_id \
             left join view.run_inventory as row on row.run_id = run.aggregate_id \
             where review.last_sequence is distinct from run.newest or row.last_sequence is distinct from run.newest",
        ),
        (
            "stale workspaces",
            "select count(*) from (select aggregate_id, max(sequence) as newest from log.events \
             where aggregate_type = 'workspace' group by aggregate_id) as workspace \
             left join view.workspace_status as status on status.workspace_id = workspace.aggregate_id \
             where status.last_sequence is distinct from workspace.newest",
        ),
    ] {
        assert_eq!(world.number(query).await, 0, "{what}");
    }
}

/// Hashes everything again, in the order of the feed.
async fn the_chain_is_whole(world: &World) {
    let mut connection = world.owner.acquire().await.unwrap();
    let events = feed_read(&mut connection, FeedPosition::default(), i64::MAX)
        .await
        .unwrap();
    let mut heads = std::collections::HashMap::<String, (i64, Sha256Digest)>::new();
    for event in &events {
        let head = heads
            .entry(event.organization_id.clone())
            .or_insert((0, CHAIN_START));
        *head = (head.0 + 1, link(head.1, head.0 + 1, event));
    }
    let stored: Vec<(String, i64, Vec<u8>)> =
        sqlx::query_as("select organization_id, number, hash from view.audit_heads")
            .fetch_all(&world.owner)
            .await
            .unwrap();
    assert_eq!(stored.len(), heads.len());
    for (organization, number, hash) in stored {
        let (expected_number, expected) = heads[&organization];
        assert_eq!(number, expected_number);
        assert_eq!(hash, expected.as_bytes());
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_long_transaction_delays_the_projector_and_loses_nothing(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    world.speculative_run(&tenant).await;
    world.settle().await;
    let applied = world.applied().await;

    // Any transaction that has an id holds back what begins after it.
    let mut older = world.owner.begin().await.unwrap();
    sqlx::query("select pg_current_xact_id()::text")
        .execute(&mut *older)
        .await
        .unwrap();
    let run = world.speculative_run(&tenant).await;
    assert_eq!(world.projector.catch_up().await.unwrap(), 0);
    assert_eq!(world.applied().await, applied);
    let review = world.views.review(tenant.organization, run).await.unwrap();
    assert_eq!(review, None);

    older.rollback().await.unwrap();
    world.settle().await;
    let review = world.views.review(tenant.organization, run).await.unwrap();
    assert!(review.unwrap().ended.is_some());
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_event_of_an_older_transaction_that_commits_last_is_not_lost(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    let late = world.facts(&tenant, RunKind::Speculative).await;
    let late_run = clock::fresh();

    let mut older = world.owner.begin().await.unwrap();
    insert(&mut older, &tenant, late_run, 1, &queued(late)).await;
    let newer_run = world.speculative_run(&tenant).await;
    world.projector.catch_up().await.unwrap();
    older.commit().await.unwrap();
    world.settle().await;

    for run in [late_run, newer_run] {
        let review = world.views.review(tenant.organization, run).await.unwrap();
        assert!(review.is_some(), "{run} was lost");
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_gap_stops_the_projector_and_nothing_of_its_batch_is_seen(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    world.speculative_run(&tenant).await;
    world.settle().await;
    let (before, position) = (world.dump().await, checkpoint(&world.owner).await.unwrap());

    let facts = world.facts(&tenant, RunKind::Speculative).await;
    let run = clock::fresh();
    let started = Event::PlanStarted {
        attempt: samples::attempt(1),
    };
    // In one transaction with the first event, so that the batch that is refused holds a good one too.
    let mut transaction = world.owner.begin().await.unwrap();
    insert(&mut transaction, &tenant, run, 1, &queued(facts)).await;
    insert(&mut transaction, &tenant, run, 3, &started).await;
    transaction.commit().await.unwrap();

    let mut refusal = None;
    until("the gap is met", async || {
        refusal = world.projector.catch_up().await.err();
        refusal.is_some()
    })
    .await;
    match refusal {
        Some(ProjectionError::Gap {
            aggregate,
            expected,
            found,
        }) => assert_eq!((aggregate, expected, found), (run.to_string(), 2, 3)),
        other => panic!("not refused as a gap: {other:?}"),
    }
    assert_eq!(world.dump().await, before);
    assert_eq!(checkpoint(&world.owner).await.unwrap(), position);

    // It is not passed later either: what comes behind it stays behind it.
    let behind = world.speculative_run(&tenant).await;
    assert!(world.projector.catch_up().await.is_err());
    let review = world
        .views
        .review(tenant.organization, behind)
        .await
        .unwrap();
    assert_eq!(review, None);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_look_that_finds_nothing_leaves_the_checkpoint_to_others_at_once(pool: PgPool) {
    let world = World::new(pool);
    for _ in 0..50 {
        assert_eq!(world.projector.catch_up().await.unwrap(), 0);
        let mut taken = world.owner.begin().await.unwrap();
        let row = sqlx::query("select from view.checkpoints for update skip locked")
            .fetch_optional(&mut *taken)
            .await
            .unwrap();
        assert!(row.is_some());
        taken.rollback().await.unwrap();
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_projector_that_met_an_error_goes_on_when_the_cause_is_gone(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    // The projector may not write: the cause is outside of the log, so it can be mended.
    sqlx::query("revoke insert on view.run_review from stackship_projector")
        .execute(&world.owner)
        .await
        .unwrap();
    let run = world.speculative_run(&tenant).await;
    let stop = CancellationToken::new();
    let working = start(&world, &stop);
    until("it fails", async || {
        world.projector.catch_up().await.is_err()
    })
    .await;
    assert_eq!(world.applied().await, 0);
    sqlx::query("grant insert on view.run_review to stackship_projector")
        .execute(&world.owner)
        .await
        .unwrap();
    let waiter = stackship_projections::ViewWaiter::new(world.owner.clone(), world.nudges.clone());
    let waited = waiter.wait_run(run, 6, SOON).await.unwrap();
    assert_eq!(waited, stackship_projections::Waited::Caught);
    stop.cancel();
    working.await.unwrap();
}

fn queued(facts: stackship_domain::run::Facts) -> Event {
    Event::RunQueued {
        facts,
        auto_apply: false,
    }
}

/// Appends an event past the log's own door.
async fn insert(
    connection: &mut sqlx::PgConnection,
    tenant: &Tenant,
    run: stackship_domain::ids::RunId,
    sequence: i64,
    event: &Event,
) {
    let metadata = serde_json::json!({
        "organization_id": tenant.organization, "actor": "system", "request_id": "r", "command_id": clock::fresh_text(),
    });
    sqlx::query(
        "insert into log.events (aggregate_type, aggregate_id, sequence, event_type, event_version, payload, metadata) \
         values ('run', $1, $2, $3, '1.0', $4, $5)",
    )
    .bind(run.to_string())
    .bind(sequence)
    .bind(event.name())
    .bind(serde_json::to_value(event).unwrap())
    .bind(metadata)
    .execute(connection)
    .await
    .unwrap();
}
