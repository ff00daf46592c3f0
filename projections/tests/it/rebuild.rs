//! Making the read models anew: the same bytes, never seen in part, and no way to rewrite the past.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::PgPool;
use stackship_projections::{BATCH_EVENTS_LIVE, Projector, RebuildError, checkpoint, rebuild};
use tokio_util::sync::CancellationToken;

use crate::world::{Tenant, World, pool_as, until};

async fn some_history(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let other = world.tenant().await;
    for tenant in [&tenant, &other] {
        world.applied_run(tenant).await;
        world.unchanged_run(tenant).await;
        world.speculative_run(tenant).await;
        world.fact(tenant).await;
        world.holding_run(tenant).await;
    }
    tenant
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_rebuild_gives_the_same_bytes(pool: PgPool) {
    let world = World::new(pool);
    let tenant = some_history(&world).await;
    // More than one batch of the projector, and more than one of the rebuild; cut within a
    // transaction, and a transaction that is longer than a batch.
    for events in [BATCH_EVENTS_LIVE * 3 / 2, 700, 700, 700, 700, 700, 700] {
        facts(&world, &tenant, events).await;
    }
    world.settle().await;
    world.speculative_run(&tenant).await;
    world.settle().await;
    let incremental = world.dump().await;
    let before = checkpoint(&world.owner).await.unwrap().unwrap();
    assert!(incremental.len() > 20);

    let report = rebuild(&world.owner).await.unwrap();
    assert_eq!(world.dump().await, incremental);
    let after = checkpoint(&world.owner).await.unwrap().unwrap();
    assert!(report.batches > 1, "{report:?}");
    assert_eq!(report.generation, before.generation + 1);
    assert_eq!(after.generation, report.generation);
    assert_eq!(i64::try_from(report.events).unwrap(), world.events().await);
    assert_eq!(
        (after.position, after.applied, after.updated_at),
        (before.position, before.applied, before.updated_at)
    );
}

/// This many facts in one transaction.
async fn facts(world: &World, tenant: &Tenant, count: u16) {
    sqlx::query(
        "insert into log.events (aggregate_type, aggregate_id, sequence, event_type, event_version, payload, metadata) \
         select 'fact', 'fact-' || gen_random_uuid(), 1, 'noted', '1.0', jsonb_build_object('number', number), \
             jsonb_build_object('organization_id', $1::text, 'actor', 'system', 'request_id', 'r', 'command_id', 'c') \
         from generate_series(1, $2::int) as number",
    )
    .bind(tenant.organization.to_string())
    .bind(i32::from(count))
    .execute(&world.owner)
    .await
    .unwrap();
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn event_by_event_equals_a_rebuild(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    for _ in 0..3 {
        world.applied_run(&tenant).await;
        world.settle().await;
        world.speculative_run(&tenant).await;
        world.settle().await;
    }
    let incremental = world.dump().await;
    rebuild(&world.owner).await.unwrap();
    assert_eq!(world.dump().await, incremental);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_rebuild_leaves_the_same_schema(pool: PgPool) {
    let world = World::new(pool);
    some_history(&world).await;
    world.settle().await;
    let before = schema(&world).await;
    rebuild(&world.owner).await.unwrap();
    rebuild(&world.owner).await.unwrap();
    assert_eq!(schema(&world).await, before);
    let remnants = "select count(*) from pg_namespace where nspname = 'view_next'";
    assert_eq!(world.number(remnants).await, 0);
}

/// Indexes, constraints, triggers, rights and storage parameters of the read models.
async fn schema(world: &World) -> Vec<String> {
    sqlx::query_scalar(
        "select 'index ' || indexdef from pg_indexes where schemaname = 'view' \
         union all select 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) \
             from pg_constraint where connamespace = 'view'::regnamespace \
         union all select 'trigger ' || pg_get_triggerdef(trigger.oid) from pg_trigger as trigger \
             join pg_class as class on class.oid = trigger.tgrelid where class.relnamespace = 'view'::regnamespace \
         union all select 'table ' || relname || ' ' || coalesce(reloptions::text, '') || ' ' || relacl::text \
             from pg_class where relnamespace = 'view'::regnamespace and relkind = 'r' \
         union all select 'column ' || table_name || ' ' || column_name || ' ' || data_type || ' ' || is_nullable \
             || ' ' || ordinal_position from information_schema.columns where table_schema = 'view' \
         order by 1",
    )
    .fetch_all(&world.owner)
    .await
    .unwrap()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn readers_and_writers_go_on_while_everything_is_rebuilt(pool: PgPool) {
    const REBUILDS: i64 = 5;
    let world = World::new(pool);
    let tenant = some_history(&world).await;
    world.settle().await;
    let stop = CancellationToken::new();
    let listening = tokio::spawn(
        world
            .nudges
            .clone()
            .listen(world.owner.clone(), stop.clone()),
    );
    let projector_pool = pool_as(&world.owner, "stackship_projector", 2);
    let projecting =
        tokio::spawn(Projector::new(projector_pool, world.nudges.clone()).run(stop.clone()));
    let enough = Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn({
        let (world, enough) = (world.clone(), enough.clone());
        async move {
            while !enough.load(Ordering::Relaxed) {
                world.speculative_run(&tenant).await;
            }
        }
    });
    let reading = tokio::spawn({
        let (world, enough) = (world.clone(), enough.clone());
        async move {
            let mut most = 0;
            while !enough.load(Ordering::Relaxed) {
                let seen = seen(&world).await;
                assert!(
                    seen >= most,
                    "readers saw {seen} events after they had seen {most}"
                );
                most = seen;
            }
        }
    });
    for _ in 0..REBUILDS {
        rebuild(&world.owner).await.unwrap();
    }
    enough.store(true, Ordering::Relaxed);
    writing.await.unwrap();
    reading.await.unwrap();
    until(
        "the live projector follows the rebuilt tables",
        async || world.applied().await == world.events().await,
    )
    .await;
    stop.cancel();
    projecting.await.unwrap();
    listening.await.unwrap();
    assert_eq!(
        world
            .number("select generation from view.checkpoints where name = 'live'")
            .await,
        1 + REBUILDS
    );
    assert_eq!(
        world
            .number("select count(*) from view.audit_entries")
            .await,
        world.events().await
    );
}

/// How many events a reader sees; the audit has one entry for each.
async fn seen(world: &World) -> i64 {
    world
        .number("select coalesce(sum(number), 0)::bigint from view.audit_heads")
        .await
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_log_that_was_tampered_with_is_not_rebuilt_from(pool: PgPool) {
    let world = World::new(pool);
    let tenant = some_history(&world).await;
    world.settle().await;
    let honest = world.dump().await;
    for statement in [
        "alter table log.events disable trigger events_append_only",
        "update log.events set payload = payload || '{\"at\": \"2020-01-01T00:00:00Z\"}' \
         where event_type = 'run_approved'",
        "alter table log.events enable trigger events_append_only",
    ] {
        sqlx::query(statement).execute(&world.owner).await.unwrap();
    }

    match rebuild(&world.owner).await {
        Err(RebuildError::AuditDiffers { .. }) => {}
        other => panic!("not refused: {other:?}"),
    }
    assert_eq!(world.dump().await, honest);
    // The read models go on from where they were.
    world.speculative_run(&tenant).await;
    world.settle().await;
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_rebuild_that_died_leaves_nothing_in_the_way(pool: PgPool) {
    let world = World::new(pool);
    some_history(&world).await;
    world.settle().await;
    let before = world.dump().await;
    // The swap waits for a reader that does not end, until the rebuild is given up.
    let mut reader = world.owner.begin().await.unwrap();
    sqlx::query("select from view.run_review")
        .execute(&mut *reader)
        .await
        .unwrap();
    let dying = tokio::spawn({
        let owner = world.owner.clone();
        async move { rebuild(&owner).await }
    });
    until("the rebuild waits for its tables", async || {
        let waiting = "select count(*) from pg_locks where not granted and mode = 'AccessExclusiveLock' \
                       and database = (select oid from pg_database where datname = current_database())";
        world.number(waiting).await > 0
    })
    .await;
    dying.abort();
    assert!(dying.await.unwrap_err().is_cancelled());
    reader.rollback().await.unwrap();
    assert_eq!(world.dump().await, before);

    until("another rebuild gets its turn", async || {
        match rebuild(&world.owner).await {
            Ok(_) => true,
            Err(RebuildError::Running) => false,
            Err(other) => panic!("{other}"),
        }
    })
    .await;
    assert_eq!(world.dump().await, before);
}
