//! A heartbeat that listens for an order.

use std::time::Duration;

use axum::Extension;
use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_api::serving::Draining;
use stackship_runner_protocol::{HEARTBEAT_WAIT_MS_MAX, LEASE_WAIT_MS_MAX};
use stackship_store::records::runners;
use stackship_store::{DbTime, attempts};
use tokio_util::sync::CancellationToken;

use crate::http::{Answer, Call};
use crate::world::{World, until};

/// A third of the lease of these tests, to which a longer wait is cut.
const WAIT_SECONDS: u64 = 10;
/// Far less than a heartbeat would wait for an order that does not come.
const AT_ONCE: Duration = Duration::from_secs(WAIT_SECONDS / 2);

async fn beat(world: &World, leased: &attempts::LeasedAttempt, wait_ms: u64) -> Answer {
    let path = format!("/runner/v1/attempts/{}/heartbeat", leased.attempt.id);
    let body = json!({"tofu_started": false, "wait_ms": wait_ms});
    Call::new("POST", path, &leased.lease_token)
        .json(&body)
        .header("content-type", "application/json")
        .send(&world.router)
        .await
}

/// Waits until a heartbeat has renewed the lease and so has begun to wait for an order.
async fn is_waiting(world: &World, leased: &attempts::LeasedAttempt) {
    until("the lease is shorter than it was leased for", async || {
        let shortened = "select lease_expires_at < $2 from record.attempts where attempt_id = $1";
        sqlx::query_scalar::<_, bool>(shortened)
            .bind(leased.attempt.id.to_string())
            .bind(DbTime(leased.attempt.lease_expires_at.unwrap()))
            .fetch_one(&world.owner)
            .await
            .unwrap()
    })
    .await;
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_waiting_heartbeat_is_answered_when_the_run_is_asked_to_stop(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.holding_run().await;
    let (_, leased) = world.lease(run, Some(fence)).await;
    let waiting = beat(&world, &leased, HEARTBEAT_WAIT_MS_MAX);
    let asking = async {
        is_waiting(&world, &leased).await;
        attempts::request_cancel(&world.store, run).await
    };
    let both = async { tokio::join!(waiting, asking) };
    let (answer, asked) = tokio::time::timeout(AT_ONCE, both)
        .await
        .expect("the order came while the heartbeat waited");
    asked.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.json["cancel"]),
        (200, &json!(true))
    );

    // Whoever missed that answer hears it again at once.
    let again = tokio::time::timeout(AT_ONCE, beat(&world, &leased, HEARTBEAT_WAIT_MS_MAX));
    assert_eq!(again.await.unwrap().json["cancel"], json!(true));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_waiting_heartbeat_is_answered_when_its_attempt_is_over(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.holding_run().await;
    let (_, leased) = world.lease(run, Some(fence)).await;
    let waiting = beat(&world, &leased, HEARTBEAT_WAIT_MS_MAX);
    let ending = async {
        is_waiting(&world, &leased).await;
        attempts::hand_back(&world.store, leased.attempt.id).await
    };
    let both = async { tokio::join!(waiting, ending) };
    let (answer, ended) = tokio::time::timeout(AT_ONCE, both)
        .await
        .expect("the end came while the heartbeat waited");
    assert!(ended.unwrap());
    assert_eq!(answer.status, 410);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_heartbeat_waits_no_longer_than_it_asked(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.holding_run().await;
    let (_, leased) = world.lease(run, Some(fence)).await;
    let answer = tokio::time::timeout(AT_ONCE, beat(&world, &leased, 20))
        .await
        .unwrap();
    assert_eq!(answer.json["cancel"], Value::Bool(false));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn who_waits_is_answered_when_the_server_goes_away(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.holding_run().await;
    let (_, leased) = world.lease(run, Some(fence)).await;
    let stop = CancellationToken::new();
    let draining = Extension(Draining(stop.clone()));
    let router = world.router.clone().layer(draining);
    let path = format!("/runner/v1/attempts/{}/heartbeat", leased.attempt.id);
    let beat = json!({"tofu_started": false, "wait_ms": HEARTBEAT_WAIT_MS_MAX});
    let beat = Call::new("POST", path, &leased.lease_token).json(&beat);
    let going = async {
        is_waiting(&world, &leased).await;
        stop.cancel();
    };
    let both = async { tokio::join!(beat.send(&router), going) };
    let (answer, ()) = tokio::time::timeout(AT_ONCE, both)
        .await
        .expect("the heartbeat was answered");
    assert_eq!(answer.json["cancel"], Value::Bool(false));

    let (_, runner) = runners::create(&world.store, "local").await.unwrap();
    let ask = json!({"region": "local", "platform": "linux_amd64", "release": "1", "isolation": "none",
        "wait_ms": LEASE_WAIT_MS_MAX});
    let ask = Call::new("POST", "/runner/v1/leases", runner.expose()).json(&ask);
    let asked = tokio::time::timeout(AT_ONCE, ask.send(&router)).await;
    assert_eq!(asked.expect("nothing is handed out").status, 204);
}
