//! Saying the same thing twice is harmless, and only the same thing.

use serde_json::{Value, json};
use sqlx::PgPool;
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
    let workspace = format!("/v1/workspaces/{}", world.acme.workspace);
    let (lock, unlock, key) = (
        format!("{workspace}/lock"),
        format!("{workspace}/unlock"),
        clock::fresh_text(),
    );
    let (owner, operator) = (&world.acme.owner.token, &world.acme.operator.token);
    let nothing = json!({});
    assert_eq!(post(&world, &lock, owner, &key, &nothing).await, 200);
    assert_eq!(
        post(&world, &unlock, owner, &key, &nothing).await,
        200,
        "another route"
    );
    let events = world.count("log.events").await;
    assert_eq!(post(&world, &lock, owner, &key, &nothing).await, 200);
    assert_eq!(
        world.count("log.events").await,
        events,
        "it does not lock again"
    );
    assert_eq!(post(&world, &lock, operator, &key, &nothing).await, 200);
    assert_eq!(
        world.count("log.events").await,
        events + 1,
        "a key is its caller's own"
    );
    assert_eq!(post(&world, &lock, owner, "another", &nothing).await, 409);
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
