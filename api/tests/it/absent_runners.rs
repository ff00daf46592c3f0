//! A run that no runner will take does not wait in silence.

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::ids::RunId;
use stackship_domain::run::RunKind;
use stackship_store::records::runners;

use crate::http::Call;
use crate::world::World;

/// What the run waits for, what its review advises, and what `tofu` prints of it.
async fn seen(world: &World, run: RunId) -> (Value, Value, String) {
    let waiting = world.seen_run(run).await["waiting_for"].clone();
    let path = format!("/v1/runs/{run}/review");
    let review = world.send("GET", &path, &json!(null)).await.data(200);
    assert_eq!(review["waiting_for"]["reason"], waiting["reason"]);
    let path = format!("/api/v2/runs/{run}/run-events");
    let events = world.send("GET", &path, &json!(null)).await;
    assert_eq!(waiting["kind"], "runner");
    let code = review["guidance"]["code"].clone();
    (waiting["reason"].clone(), code, events.json.to_string())
}

async fn asks_for_work(world: &World, token: &str, region: &str) {
    let request = json!({"region": region, "platform": "linux_amd64", "release": "1", "isolation": "none", "wait_ms": 0});
    let answer = Call::new("POST", "/runner/v1/leases", token).json(&request);
    assert_eq!(answer.send(&world.router).await.status, 204);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_run_says_that_no_runner_is_there(pool: PgPool) {
    let world = World::new(pool).await;
    let run = world.run(RunKind::PlanAndApply).await;
    let never = "no runner of the region `local` (linux_amd64) has ever been seen";
    let (_, runner) = runners::create(&world.store, "one").await.unwrap();
    for region in ["", "eu-west-9"] {
        if !region.is_empty() {
            asks_for_work(&world, runner.expose(), region).await;
        }
        let (reason, code, printed) = seen(&world, run).await;
        assert_eq!((&reason, &code), (&json!(never), &json!("start_runner")));
        assert!(printed.contains(never), "{printed}");
    }
    asks_for_work(&world, runner.expose(), "local").await;
    let (reason, code, printed) = seen(&world, run).await;
    assert_eq!((reason, code), (Value::Null, json!("wait_for_runner")));
    assert!(!printed.contains("Waits for a runner"), "{printed}");

    let earlier = "update record.runner_places set asked_at = asked_at - interval '3 minutes'";
    sqlx::query(earlier).execute(&world.owner).await.unwrap();
    let (reason, code, _) = seen(&world, run).await;
    let reason = reason.as_str().unwrap();
    let silent = "no runner of the region `local` (linux_amd64) has been heard since 20";
    assert!(reason.starts_with(silent), "{reason}");
    assert_eq!(code, "start_runner");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_runner_with_its_hands_full_is_there(pool: PgPool) {
    let world = World::new(pool).await;
    let (busy, fence) = world.run_that_asks().await;
    world.lease(busy, Some(fence)).await;
    let run = world.run(RunKind::Speculative).await;
    let (reason, code, _) = seen(&world, run).await;
    assert_eq!((reason, code), (Value::Null, json!("wait_for_runner")));
}
