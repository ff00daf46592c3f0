//! Whether the server calls itself ready.

use axum::Router;
use sqlx::PgPool;
use stackship_domain::run::RunKind;

use crate::http::{Answer, Call};
use crate::world::{World, until};

async fn readiness(router: &Router) -> Answer {
    Call::new("GET", "/readyz", "").send(router).await
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_server_whose_projector_stands_still_stops_being_ready(pool: PgPool) {
    let world = World::new(pool).await;
    let strict = &world.router_ready_without_lag;
    until("everything is in the read models", async || {
        readiness(strict).await.status == 200
    })
    .await;

    // Whoever has the checkpoint's row keeps every projector from its work.
    let mut standstill = world.owner.begin().await.unwrap();
    sqlx::query("select from view.checkpoints where name = 'live' for update")
        .execute(&mut *standstill)
        .await
        .unwrap();
    world.run(RunKind::Speculative).await;
    let behind = readiness(strict).await;
    assert_eq!(behind.status, 503);
    assert_eq!(
        behind.json["reason"],
        "the read models are too far behind the log; see the server's log"
    );
    assert_eq!(
        readiness(&world.router).await.status,
        200,
        "less than the bound is no reason"
    );

    standstill.rollback().await.unwrap();
    until("the read models have caught up", async || {
        readiness(strict).await.status == 200
    })
    .await;
}
