//! The plan-diff: served as it was stored, or not at all.

use sqlx::PgPool;
use stackship_domain::Sha256Digest;
use stackship_domain::run::{PlanRecord, RunKind};
use stackship_store::objects::ObjectKind;

use crate::http::{Answer, Call};
use crate::world::World;
use crate::world::runs::PLAN_DIFF;

async fn plan_changes(world: &World, run: impl std::fmt::Display) -> Answer {
    let path = format!("/v1/runs/{run}/plan-changes");
    Call::new("GET", path, &world.acme.reader.token)
        .send(&world.router)
        .await
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_reader_gets_the_plan_diff_byte_by_byte(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, _) = world.run_that_asks().await;
    world.seen_run(run).await;
    let answer = plan_changes(&world, run).await;
    assert_eq!(answer.status, 200, "{}", answer.json);
    assert_eq!(answer.bytes, PLAN_DIFF);
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.headers["cache-control"], "private, no-store");
    let length = PLAN_DIFF.len().to_string();
    assert_eq!(answer.headers["content-length"], length.as_str());
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_run_without_a_recorded_plan_has_none(pool: PgPool) {
    let world = World::new(pool).await;
    let run = world.run(RunKind::Speculative).await;
    world.seen_run(run).await;
    let answer = plan_changes(&world, run).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code()),
        (404, "PLAN_CHANGES_NOT_RECORDED"),
        "{}",
        answer.json
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_object_that_is_not_the_recorded_one_is_not_served(pool: PgPool) {
    let world = World::new(pool).await;
    let good = world.plan().await;
    let other_kind = world
        .object(Some(world.acme.workspace), ObjectKind::PlanJson)
        .await;
    let elsewhere = world.object(None, ObjectKind::PlanDiff).await;
    for (what, plan) in [
        ("the recorded one", good.clone()),
        (
            "another digest",
            PlanRecord {
                plan_diff: Sha256Digest::of(b"another"),
                ..good.clone()
            },
        ),
        (
            "another kind",
            PlanRecord {
                plan_diff_object: other_kind.id,
                ..good.clone()
            },
        ),
        (
            "of no workspace",
            PlanRecord {
                plan_diff_object: elsewhere.id,
                ..good.clone()
            },
        ),
        (
            "not there",
            PlanRecord {
                plan_diff_object: good.plan_object,
                ..good.clone()
            },
        ),
    ] {
        let is_good = plan == good;
        let run = world.speculative_run(plan).await;
        world.seen_run(run).await;
        let answer = plan_changes(&world, run).await;
        if is_good {
            assert_eq!(answer.bytes, PLAN_DIFF, "{what}");
        } else {
            let told = (answer.status.as_u16(), answer.code());
            assert_eq!(told, (500, "INTERNAL"), "{what}");
        }
    }
}
