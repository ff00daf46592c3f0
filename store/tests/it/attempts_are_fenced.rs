//! A lock that has moved on makes every late write of its earlier holder harmless.

use serde_json::json;
use sqlx::PgPool;
use stackship_domain::ids::RunId;
use stackship_domain::run::{Event, samples};
use stackship_domain::workspace::{Event as WorkspaceEvent, Holder};
use stackship_domain::{Fence, workspace};
use stackship_store::attempts::{self, HeartbeatOutcome, ResultOutcome};
use stackship_store::records::{locks, runners};
use stackship_store::{Violation, clock};

use crate::no_apply_without_approval::insert_raw;
use crate::support::{
    CHECK, DENIED, LEASE_SECONDS, NOT_NOW, PINNED, STALE_FENCE, World, code, refusal, violation,
};

async fn next_sequence(world: &World, aggregate_id: &str) -> i64 {
    sqlx::query_scalar(
        "select coalesce(max(sequence), 0) + 1 from log.events where aggregate_id = $1",
    )
    .bind(aggregate_id)
    .fetch_one(&world.owner)
    .await
    .unwrap()
}

async fn run_event(world: &World, run: RunId, event: Event) -> Result<(), sqlx::Error> {
    let place = (
        "run",
        run.to_string(),
        next_sequence(world, &run.to_string()).await,
    );
    insert_raw(
        world,
        &world.store.pool,
        place,
        event.name(),
        serde_json::to_value(&event).unwrap(),
    )
    .await
}

async fn workspace_event(world: &World, event: WorkspaceEvent) -> Result<(), sqlx::Error> {
    let id = world.workspace.to_string();
    let place = ("workspace", id.clone(), next_sequence(world, &id).await);
    insert_raw(
        world,
        &world.store.pool,
        place,
        event.name(),
        serde_json::to_value(&event).unwrap(),
    )
    .await
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_fence_grows_with_every_acquisition(pool: PgPool) {
    let world = World::new(pool).await;
    let row = async || {
        locks::lock_row(&world.store.pool, world.organization, world.workspace)
            .await
            .unwrap()
    };
    assert_eq!(row().await, None);
    let (first, one) = world.run_with_lock().await;
    assert_eq!(
        (one.number(), row().await.unwrap().holder),
        (1, Some(Holder::Run { run: first }))
    );
    world.release(first, one).await;
    assert_eq!(
        (row().await.unwrap().fence, row().await.unwrap().holder),
        (one, None)
    );
    let reason = Some("migration".to_owned());
    world
        .command_workspace(workspace::Command::LockByPerson {
            by: world.user,
            reason: reason.clone(),
        })
        .await;
    let held = row().await.unwrap();
    assert_eq!(
        (held.fence.number(), held.holder, held.reason),
        (2, Some(Holder::User { user: world.user }), reason)
    );
    world
        .command_workspace(workspace::Command::UnlockByPerson { by: world.user })
        .await;
    let (_, three) = world.run_with_lock().await;
    assert_eq!(three.number(), 3);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_lock_row_takes_no_old_fence_and_no_second_holder(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.run_with_lock().await;
    let other = world
        .run(stackship_domain::run::RunKind::PlanAndApply)
        .await;
    let acquired = |run, fence| WorkspaceEvent::LockAcquired {
        holder: Holder::Run { run },
        fence,
        reason: None,
    };
    let taken = workspace_event(&world, acquired(other, fence.next()))
        .await
        .unwrap_err();
    assert_eq!(code(&taken), STALE_FENCE, "a held lock was acquired");
    world.release(run, fence).await;
    let error = workspace_event(&world, acquired(other, fence))
        .await
        .unwrap_err();
    assert_eq!(code(&error), STALE_FENCE, "a fence was used twice");
    let error = workspace_event(&world, acquired(other, Fence::NEVER))
        .await
        .unwrap_err();
    assert_eq!(code(&error), CHECK, "the fence of no holder was used");
    workspace_event(&world, acquired(other, fence.next()))
        .await
        .unwrap();
    for statement in [
        "update record.workspace_locks set fence = 1",
        "delete from record.workspace_locks",
        "insert into record.workspace_locks (workspace_id, fence) values ('ws-x', 1)",
    ] {
        assert_eq!(
            refusal(&world.store.pool, statement).await,
            DENIED,
            "{statement}"
        );
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_run_that_lost_its_lock_writes_no_plan_and_no_apply(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.run_with_lock().await;
    world.release(run, fence).await;
    world.run_with_lock().await;
    let before = world.event_count().await;
    for event in [
        Event::LockGranted {
            fence,
            warnings: Vec::new(),
        },
        Event::PlanStarted {
            attempt: samples::attempt(1),
        },
        Event::PlanRecorded {
            plan: samples::plan(),
        },
        Event::ApprovalRequested {
            evidence: samples::evidence(),
            binding: samples::evidence().binding(),
            expires_at: samples::at(10),
        },
        Event::RunApproved {
            by: samples::reviewer(),
            binding: samples::evidence().binding(),
            at: samples::at(5),
        },
        Event::ApplyStarted {
            attempt: samples::attempt(1),
            fence,
            binding: samples::evidence().binding(),
        },
        Event::ApplySucceeded {
            publication: samples::publication(),
        },
    ] {
        let name = event.name();
        let error = run_event(&world, run, event).await.expect_err(name);
        assert_eq!(code(&error), STALE_FENCE, "{name}");
    }
    assert_eq!(world.event_count().await, before);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_apply_starts_under_the_runs_own_fence_only(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.run_with_lock().await;
    let start = |fence| Event::ApplyStarted {
        attempt: samples::attempt(1),
        fence,
        binding: samples::evidence().binding(),
    };
    let error = run_event(&world, run, start(fence.next()))
        .await
        .unwrap_err();
    assert_eq!(code(&error), STALE_FENCE);
    let speculative = world.run(stackship_domain::run::RunKind::Speculative).await;
    let error = run_event(&world, speculative, start(fence))
        .await
        .unwrap_err();
    assert!(
        [STALE_FENCE, NOT_NOW].contains(&code(&error).as_str()),
        "a speculative run was applied"
    );
    run_event(&world, run, start(fence)).await.unwrap();
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_stale_fence_offers_and_leases_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.run_with_lock().await;
    let future = attempts::offer(&world.store, &world.apply_offer(run, fence.next())).await;
    assert_eq!(violation(future), Violation::StaleFence);
    let offered = attempts::offer(&world.store, &world.apply_offer(run, fence))
        .await
        .unwrap();
    assert_eq!(
        attempts::offer(&world.store, &world.apply_offer(run, fence))
            .await
            .unwrap(),
        offered
    );
    world.release(run, fence).await;
    let (runner, _) = runners::create(&world.store, "late").await.unwrap();
    let lease = format!(
        "update record.attempts set runner_id = '{runner}', leased_at = now(), lease_expires_at = now(), \
             lease_token_sha256 = 'x' where attempt_id = '{offered}'"
    );
    assert_eq!(refusal(&world.store.pool, &lease).await, STALE_FENCE);
    assert_eq!(refusal(&world.owner, &lease).await, STALE_FENCE);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_stale_fence_starts_nothing_and_records_no_result(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.run_with_lock().await;
    let attempt = world.leased_apply(run, fence).await.attempt.id;
    let beat = async |started| {
        attempts::heartbeat(&world.store, attempt, started, LEASE_SECONDS)
            .await
            .unwrap()
    };
    assert!(matches!(
        beat(false).await,
        HeartbeatOutcome::Alive { cancel: false, .. }
    ));
    world.release(run, fence).await;
    assert_eq!(beat(true).await, HeartbeatOutcome::Lost);
    let result = json!({"outcome": "applied"});
    assert_eq!(
        attempts::record_result(&world.store, attempt, &result)
            .await
            .unwrap(),
        ResultOutcome::Lost
    );
    let rows = attempts::of_run(&world.store.pool, run).await.unwrap();
    assert_eq!(
        (rows[0].tofu_started_at, &rows[0].result, rows[0].closed_at),
        (None, &None, None)
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_result_is_recorded_once(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.run_with_lock().await;
    let attempt = world.leased_apply(run, fence).await.attempt.id;
    let record = async |result| {
        attempts::record_result(&world.store, attempt, &result)
            .await
            .unwrap()
    };
    assert_eq!(record(json!({"a": 1})).await, ResultOutcome::Recorded);
    assert_eq!(record(json!({"a": 1})).await, ResultOutcome::Repeated);
    assert_eq!(record(json!({"a": 2})).await, ResultOutcome::Lost);
    assert_eq!(
        refusal(
            &world.owner,
            "update record.attempts set result = null, result_at = null"
        )
        .await,
        NOT_NOW
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_was_offered_does_not_change(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.run_with_lock().await;
    attempts::offer(&world.store, &world.apply_offer(run, fence))
        .await
        .unwrap();
    for change in [
        "fence = fence + 1",
        "binding = repeat('0', 64)",
        "phase = 'plan'",
        "number = 2",
        "predecessor = '{}'",
        "run_id = 'run-x'",
        "workspace_id = 'ws-x'",
        "organization_id = 'org-x'",
    ] {
        let statement = format!("update record.attempts set {change}");
        assert_eq!(
            refusal(&world.store.pool, &statement).await,
            PINNED,
            "{change}"
        );
        assert_eq!(refusal(&world.owner, &statement).await, PINNED, "{change}");
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_workspace_has_one_live_apply(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.run_with_lock().await;
    world.leased_apply(run, fence).await;
    let second = attempts::Offer {
        number: 2,
        ..world.apply_offer(run, fence)
    };
    assert_eq!(
        violation(attempts::offer(&world.store, &second).await),
        Violation::ApplyLive
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn two_runners_never_lease_the_same_attempt(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.run_with_lock().await;
    attempts::offer(&world.store, &world.apply_offer(run, fence))
        .await
        .unwrap();
    let lease = async || {
        let (runner, _) = runners::create(&world.store, &clock::fresh_text())
            .await
            .unwrap();
        attempts::lease_next(&world.store, runner, "local", "linux_amd64", LEASE_SECONDS)
            .await
            .unwrap()
    };
    let leases = futures::future::join_all((0..8).map(|_| lease())).await;
    assert_eq!(leases.iter().flatten().count(), 1);
}
