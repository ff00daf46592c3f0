//! Saying the same thing twice is harmless, and only the same thing.

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::run::RunKind;
use stackship_store::clock;

use crate::http::Call;
use crate::support::World;

async fn post(world: &World, path: &str, token: &str, key: &str, body: &Value) -> u16 {
    let call = Call::new("POST", path, token)
        .json(body)
        .header("idempotency-key", key);
    call.send(&world.router).await.status.as_u16()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_command_said_twice_under_one_key_happens_once(pool: PgPool) {
    let world = World::new(pool).await;
    let run = world.run(RunKind::PlanAndApply).await;
    world.seen_run(run).await;
    let (path, key) = (format!("/v1/runs/{run}/cancel"), clock::fresh_text());
    let body = json!({"reason": "not needed"});
    let owner = &world.acme.owner.token;
    assert_eq!(post(&world, &path, owner, &key, &body).await, 200);
    let events = world.count("log.events").await;
    assert_eq!(post(&world, &path, owner, &key, &body).await, 200);
    assert_eq!(
        world.count("log.events").await,
        events,
        "nothing is written twice"
    );
    let other = post(&world, &path, owner, "another", &body).await;
    assert_eq!(other, 409, "the run is over");
    let someone = post(&world, &path, &world.acme.operator.token, &key, &body).await;
    assert_eq!(someone, 409, "a key is its caller's own");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn one_run_is_made_of_a_configuration_version(pool: PgPool) {
    let world = World::new(pool).await;
    let configuration = world.configuration(false).await;
    let path = format!("/v1/workspaces/{}/runs", world.acme.workspace);
    let body = json!({"configuration_version": configuration, "message": "Grow"});
    for _ in 0..2 {
        world.send("POST", &path, &body).await;
    }
    assert_eq!(world.count("record.runs").await, 1);
    let call = Call::new("POST", &path, &world.acme.planner.token).json(&body);
    let other = call.send(&world.router).await;
    assert_eq!(
        (other.status.as_u16(), other.code()),
        (409, "CONFIGURATION_USED")
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_key_has_bounds(pool: PgPool) {
    let world = World::new(pool).await;
    let path = world.acme.path("projects");
    for key in [String::new(), "x".repeat(129)] {
        let call = Call::new("POST", &path, &world.acme.owner.token).header("idempotency-key", key);
        let answer = call
            .json(&json!({"name": "data"}))
            .send(&world.router)
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, "IDEMPOTENCY_KEY_INVALID")
        );
    }
}
