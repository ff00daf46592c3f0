//! A run that applies without approval cannot come into being (S-RUN-6): the rules refuse it, and so
//! does every layer below that something else might write through.

use sqlx::PgPool;
use stackship_domain::run::{Command, Event, NewRun, Refusal, Run, RunKind};
use stackship_store::log::CommandError;
use stackship_store::{Violation, clock, error};

use crate::support::{CHECK, DENIED, NOT_NOW, World, code, refusal};

/// Writes an event past the rules.
pub async fn insert_raw(
    world: &World,
    pool: &PgPool,
    place: (&str, String, i64),
    event_type: &str,
    payload: serde_json::Value,
) -> Result<(), sqlx::Error> {
    let metadata = serde_json::json!({
        "organization_id": world.organization, "actor": "system", "request_id": "request", "command_id": "command",
    });
    sqlx::query(
        "insert into log.events (aggregate_type, aggregate_id, sequence, event_type, event_version, payload, metadata) \
         values ($1, $2, $3, $4, '1.0', $5, $6)",
    )
    .bind(place.0)
    .bind(place.1)
    .bind(place.2)
    .bind(event_type)
    .bind(payload)
    .bind(metadata)
    .execute(pool)
    .await
    .map(drop)
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_rules_refuse_an_automatic_apply_and_write_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let facts = world.facts(RunKind::PlanAndApply).await;
    let before = world.event_count().await;
    let id = clock::fresh();
    let create = Command::Create(Box::new(NewRun {
        facts,
        auto_apply: true,
        destroy: false,
    }));
    let outcome = world.store.runs.execute(id, create, &world.context()).await;
    assert!(
        matches!(outcome, Err(CommandError::Refused(Refusal::AutoApply))),
        "{outcome:?}"
    );
    assert_eq!(world.event_count().await, before);
    assert_eq!(world.store.runs.load(id).await.unwrap(), (Run::Unborn, 0));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_database_refuses_an_event_that_asks_for_an_automatic_apply(pool: PgPool) {
    let world = World::new(pool).await;
    let facts = world.facts(RunKind::PlanAndApply).await;
    let before = world.event_count().await;
    let queued = serde_json::to_value(Event::RunQueued {
        facts: facts.clone(),
        auto_apply: true,
    })
    .unwrap();
    for pool in [&world.store.pool, &world.owner] {
        let place = (
            "run",
            clock::fresh::<stackship_domain::ids::RunId>().to_string(),
            1,
        );
        let error = insert_raw(&world, pool, place, "run_queued", queued.clone())
            .await
            .unwrap_err();
        assert_eq!(code(&error), CHECK);
        assert_eq!(error::violation(&error), Some(Violation::AutoApply));
    }
    // Leaving the word out is no way around it.
    let mut silent = queued;
    silent.as_object_mut().unwrap().remove("auto_apply");
    let place = (
        "run",
        clock::fresh::<stackship_domain::ids::RunId>().to_string(),
        1,
    );
    insert_raw(&world, &world.store.pool, place, "run_queued", silent)
        .await
        .unwrap_err();
    assert_eq!(world.event_count().await, before);
    let runs: i64 = sqlx::query_scalar("select count(*) from record.runs")
        .fetch_one(&world.owner)
        .await
        .unwrap();
    assert_eq!(runs, 0);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn no_workspace_can_be_set_to_apply_by_itself(pool: PgPool) {
    let world = World::new(pool).await;
    let statement = "update record.workspaces set auto_apply = true";
    assert_eq!(refusal(&world.store.pool, statement).await, DENIED);
    assert_eq!(refusal(&world.owner, statement).await, CHECK);
    let insert = format!(
        "insert into record.workspaces (workspace_id, organization_id, project_id, name, tofu_version, region, auto_apply) \
         values ('ws-1', '{}', '{}', 'automatic', '1.12.6', 'local', true)",
        world.organization, world.project
    );
    assert_eq!(refusal(&world.store.pool, &insert).await, CHECK);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_run_begins_in_the_log_and_nowhere_else(pool: PgPool) {
    let world = World::new(pool).await;
    let run = world.run(RunKind::PlanAndApply).await;
    let copy = "insert into record.runs select 'run-x', organization_id, project_id, workspace_id, kind, \
         configuration_version_id, input_snapshot_id, configuration_digest, inputs_digest, tofu_version, region, \
         platform, auto_apply, null, created_at from record.runs";
    assert_eq!(refusal(&world.store.pool, copy).await, DENIED);
    let orphan = ("run", "run-unborn".to_owned(), 1);
    let started = serde_json::json!({"type": "policy_check_started"});
    let error = insert_raw(
        &world,
        &world.store.pool,
        orphan,
        "policy_check_started",
        started,
    )
    .await
    .unwrap_err();
    assert_eq!(code(&error), NOT_NOW, "an event of a run that never began");
    assert!(
        world
            .store
            .runs
            .load(run)
            .await
            .unwrap()
            .0
            .status()
            .is_some()
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_event_of_another_organization_is_refused(pool: PgPool) {
    let world = World::new(pool).await;
    let run = world.run(RunKind::PlanAndApply).await;
    let (other, ..) = world.other_tenant().await;
    let theirs = crate::support::origin(world.user).within(other);
    let cancel = Command::Cancel {
        by: theirs.actor,
        reason: None,
        at: clock::now(),
    };
    let outcome = world.store.runs.execute(run, cancel, &theirs).await;
    assert!(
        matches!(outcome, Err(CommandError::Violated(Violation::NotNow))),
        "{outcome:?}"
    );
    let lock = stackship_domain::workspace::Command::LockByPerson {
        by: world.user,
        reason: None,
    };
    let outcome = world
        .store
        .workspaces
        .execute(world.workspace, lock, &theirs)
        .await;
    assert!(
        matches!(outcome, Err(CommandError::Violated(Violation::NotNow))),
        "{outcome:?}"
    );
}
