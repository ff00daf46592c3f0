//! What a run waits for and what it is given.

use serde_json::json;
use sqlx::PgPool;
use stackship_domain::run::RunKind;
use stackship_domain::workspace;
use stackship_store::records::{runs_record, snapshots};

use crate::world::{World, until};

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_run_that_nothing_is_before_waits_for_a_runner(pool: PgPool) {
    let world = World::new(pool).await;
    let (first, second) = (
        world.run(RunKind::PlanAndApply).await,
        world.run(RunKind::PlanAndApply).await,
    );
    let waits = async |run| world.seen_run(run).await["waiting_for"].clone();
    assert_eq!(waits(first).await["kind"], "runner", "not in line yet");
    for run in [first, second] {
        world
            .workspace_command(workspace::Command::Enqueue { run })
            .await;
    }
    until("the second stands behind the first", async || {
        waits(second).await["id"] == first.to_string()
    })
    .await;
    let (first, second) = (waits(first).await, waits(second).await);
    assert_eq!(
        (&first["kind"], &first["queue_position"]),
        (&json!("runner"), &json!(1))
    );
    assert_eq!(
        (&second["kind"], &second["queue_position"]),
        (&json!("run"), &json!(2))
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn another_value_for_a_sensitive_variable_stays_sensitive(pool: PgPool) {
    let world = World::new(pool).await;
    let acme = &world.acme;
    let variables = format!("/v1/workspaces/{}/variables", acme.workspace);
    for (key, sensitive) in [("password", true), ("size", false)] {
        let body =
            json!({"key": key, "value": "v", "category": "terraform", "sensitive": sensitive});
        world.send("POST", &variables, &body).await.data(201);
    }
    let runs = format!("/v1/workspaces/{}/runs", acme.workspace);
    for kind in [RunKind::PlanAndApply, RunKind::Speculative] {
        let given = json!([{"key": "password", "value": "other"}, {"key": "size", "value": "2"}]);
        let configuration = world.configuration(kind == RunKind::Speculative).await;
        let body = json!({"configuration_version": configuration, "message": "m", "kind": kind, "variables": given});
        world.send("POST", &runs, &body).await;
        let (pool, organization) = (&world.store.pool, acme.organization);
        let run = runs_record::run_of_configuration(pool, organization, configuration).await;
        let run = runs_record::by_id(pool, organization, run.unwrap().unwrap()).await;
        let snapshot = run.unwrap().unwrap().input_snapshot;
        let snapshot = snapshots::load(&world.store, organization, snapshot).await;
        let pinned: Vec<_> = snapshot.unwrap().unwrap().variables;
        let pinned: Vec<_> = pinned
            .iter()
            .map(|variable| {
                (
                    variable.key.as_str(),
                    variable.value.as_str(),
                    variable.sensitive,
                )
            })
            .collect();
        assert_eq!(
            pinned,
            [("password", "other", true), ("size", "2", false)],
            "{kind:?}"
        );
    }
}
