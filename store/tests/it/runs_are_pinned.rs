//! What a run pins is in its row from the first event on and changes for nobody.

use sqlx::PgPool;
use stackship_domain::run::{Command, NewRun, PolicyPins, RunKind, samples};
use stackship_store::log::CommandError;
use stackship_store::records::runs_record;
use stackship_store::{Violation, clock};

use crate::support::{DENIED, PINNED, World, refusal};

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_row_of_a_run_says_what_its_first_event_says(pool: PgPool) {
    let world = World::new(pool).await;
    let run = world.run(RunKind::PlanAndApply).await;
    let (aggregate, _) = world.store.runs.load(run).await.unwrap();
    let facts = aggregate.facts().unwrap();
    let record = runs_record::by_id(&world.store.pool, world.organization, run)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(record.pins, facts.pins);
    assert_eq!((record.kind, record.fence), (RunKind::PlanAndApply, None));
    assert_eq!(
        (record.workspace, record.project),
        (facts.workspace, facts.project)
    );
    assert_eq!(record.configuration_version, facts.configuration_version);
    assert_eq!(record.input_snapshot, facts.input_snapshot);
    assert_eq!(record.created_at, facts.created_at);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn no_pin_changes_for_anybody(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.run_with_lock().await;
    let before = runs_record::by_id(&world.store.pool, world.organization, run)
        .await
        .unwrap();
    assert_eq!(before.as_ref().and_then(|record| record.fence), Some(fence));
    for change in [
        "configuration_digest = repeat('0', 64)",
        "inputs_digest = repeat('0', 64)",
        "tofu_version = '9.9.9'",
        "region = 'elsewhere'",
        "platform = 'linux_arm64'",
        "policies = '[{}]'",
        "policies_digest = repeat('0', 64)",
        "kind = 'speculative'",
        "created_at = now()",
        "organization_id = 'org-x'",
        "workspace_id = 'ws-x'",
        "configuration_version_id = 'cv-x'",
        "input_snapshot_id = 'snap-x'",
        "fence = fence + 1",
        "fence = null",
        "auto_apply = true",
    ] {
        let statement = format!("update record.runs set {change}");
        assert_eq!(refusal(&world.owner, &statement).await, PINNED, "{change}");
        assert_eq!(
            refusal(&world.store.pool, &statement).await,
            DENIED,
            "{change}"
        );
    }
    assert_eq!(
        refusal(&world.owner, "delete from record.runs").await,
        PINNED
    );
    assert_eq!(
        refusal(&world.store.pool, "delete from record.runs").await,
        DENIED
    );
    assert_eq!(
        runs_record::by_id(&world.store.pool, world.organization, run)
            .await
            .unwrap(),
        before
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_run_pins_no_policies_that_are_not_there(pool: PgPool) {
    let world = World::new(pool).await;
    let mut facts = world.facts(RunKind::PlanAndApply).await;
    facts.pins.policies = PolicyPins::new(vec![samples::pinned_policies()]);
    let create = Command::Create(Box::new(NewRun {
        facts,
        auto_apply: false,
        destroy: false,
    }));
    let context = world.context();
    let created = world.store.runs.execute(clock::fresh(), create, &context);
    assert!(matches!(
        created.await,
        Err(CommandError::Violated(Violation::NotNow))
    ));
}
