//! Applies are leased before plans, and neither keeps the other waiting for ever.

use std::collections::BTreeSet;

use sqlx::PgPool;
use stackship_domain::ids::{AttemptId, RunId, RunnerId, WorkspaceId};
use stackship_domain::run::{Command, Facts, NewRun, Phase, RunKind};
use stackship_domain::workspace;
use stackship_store::attempts::{self, APPLIES_IN_A_ROW_MAX, AttemptRow, Offer};
use stackship_store::clock;
use stackship_store::notify::Topic;
use stackship_store::records::{runners, workspaces};

use crate::support::{LEASE_SECONDS, World, new_workspace};

async fn runner(world: &World) -> RunnerId {
    let created = runners::create(&world.store, &clock::fresh_text()).await;
    created.unwrap().0
}

async fn lease_in(world: &World, runner: RunnerId, region: &str) -> Option<AttemptRow> {
    attempts::lease_next(&world.store, runner, region, "linux_amd64", LEASE_SECONDS)
        .await
        .unwrap()
        .map(|leased| leased.attempt)
}

/// Offers the plan of a speculative run.
async fn offer_plan(world: &World, region: &str) -> RunId {
    let run = world.run(RunKind::Speculative).await;
    let offer = Offer {
        phase: Phase::Plan,
        region: region.to_owned(),
        fence: None,
        binding: None,
        ..world.apply_offer(run, stackship_domain::Fence::NEVER)
    };
    attempts::offer(&world.store, &offer).await.unwrap();
    run
}

/// Offers the apply of a run that holds the lock of a workspace of its own.
async fn offer_apply(world: &World) -> RunId {
    let context = world.context();
    let new = new_workspace(world.project, &clock::fresh_text());
    let place: WorkspaceId = workspaces::create(&world.store, &context, &new)
        .await
        .unwrap();
    let facts = Facts {
        workspace: place,
        ..world.facts(RunKind::PlanAndApply).await
    };
    let run: RunId = clock::fresh();
    let create = Command::Create(Box::new(NewRun {
        facts,
        auto_apply: false,
        destroy: false,
    }));
    world.command_run(run, create).await;
    for command in [
        workspace::Command::Enqueue { run },
        workspace::Command::AcquireForRun { run },
    ] {
        let context = world.context();
        let log = &world.store.workspaces;
        log.execute(place, command, &context).await.unwrap();
    }
    let offer = Offer {
        workspace: place,
        ..world.apply_offer(run, stackship_domain::Fence::NEVER.next())
    };
    attempts::offer(&world.store, &offer).await.unwrap();
    run
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_flood_of_applies_lets_a_plan_through_now_and_then(pool: PgPool) {
    let world = World::new(pool).await;
    let (mut plans, mut applies) = (Vec::new(), Vec::new());
    for _ in 0..12 {
        plans.push(offer_plan(&world, "local").await);
        applies.push(offer_apply(&world).await);
    }
    let runner = runner(&world).await;
    let mut order = String::new();
    let (mut planned, mut applied) = (Vec::new(), Vec::new());
    while let Some(row) = lease_in(&world, runner, "local").await {
        match row.offer.phase {
            Phase::Plan => planned.push(row.offer.run),
            Phase::Apply => applied.push(row.offer.run),
        }
        order.push(if row.offer.phase == Phase::Apply {
            'a'
        } else {
            'p'
        });
    }
    assert_eq!(APPLIES_IN_A_ROW_MAX, 4);
    assert_eq!(order, "aaaapaaaapaaaapppppppppp");
    assert_eq!((planned, applied), (plans, applies), "the oldest first");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_flood_of_plans_lets_the_next_apply_through_at_once(pool: PgPool) {
    let world = World::new(pool).await;
    for _ in 0..40 {
        offer_plan(&world, "local").await;
    }
    let runner = runner(&world).await;
    for _ in 0..8 {
        let row = lease_in(&world, runner, "local").await.unwrap();
        assert_eq!(row.offer.phase, Phase::Plan);
        let apply = offer_apply(&world).await;
        assert_eq!(
            lease_in(&world, runner, "local").await.unwrap().offer.run,
            apply
        );
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_other_regions_lease_takes_no_turn(pool: PgPool) {
    let world = World::new(pool).await;
    let runner = runner(&world).await;
    for _ in 0..APPLIES_IN_A_ROW_MAX {
        offer_apply(&world).await;
        lease_in(&world, runner, "local").await.unwrap();
    }
    // It is a plan's turn here, and an apply's where nothing was leased; but nobody idles.
    let apply = offer_apply(&world).await;
    assert_eq!(
        lease_in(&world, runner, "north").await.map(|row| row.id),
        None
    );
    let north = offer_plan(&world, "north").await;
    assert_eq!(
        lease_in(&world, runner, "north").await.unwrap().offer.run,
        north
    );
    assert_eq!(
        lease_in(&world, runner, "local").await.unwrap().offer.run,
        apply
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn runners_that_ask_at_once_get_one_offer_each(pool: PgPool) {
    let world = World::new(pool).await;
    for _ in 0..8 {
        offer_plan(&world, "local").await;
        offer_apply(&world).await;
    }
    let one = async || {
        let runner = runner(&world).await;
        lease_in(&world, runner, "local").await.map(|row| row.id)
    };
    let leased = futures::future::join_all((0..16).map(|_| one())).await;
    let leased: BTreeSet<AttemptId> = leased.into_iter().flatten().collect();
    assert_eq!(leased.len(), 16, "nobody goes away with nothing");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_stop_is_asked_for_once_and_nudges_once(pool: PgPool) {
    let world = World::new(pool).await;
    let run = offer_plan(&world, "local").await;
    let asked = async || {
        attempts::request_cancel(&world.store, run).await.unwrap();
        let rows = attempts::of_run(&world.store.pool, run).await.unwrap();
        rows[0].cancel_requested_at
    };
    assert_eq!(asked().await, None, "nobody works on it");
    let runner = runner(&world).await;
    lease_in(&world, runner, "local").await.unwrap();
    let mut listener = sqlx::postgres::PgListener::connect_with(&world.owner)
        .await
        .unwrap();
    let channel = Topic::Attempts.channel();
    listener.listen(channel).await.unwrap();
    let first = asked().await;
    assert!(first.is_some());
    assert_eq!(asked().await, first);
    // A marker behind whatever was sent: what comes before it is all there was.
    sqlx::query("select pg_notify($1, 'the end')")
        .bind(channel)
        .execute(&world.owner)
        .await
        .unwrap();
    let mut heard = 0;
    while listener.recv().await.unwrap().payload() != "the end" {
        heard += 1;
    }
    assert_eq!(heard, 1);
}
