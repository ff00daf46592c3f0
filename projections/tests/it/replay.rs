//! A run's review is made again from the log, as of any event, and is the stored one.

use sqlx::PgPool;
use stackship_projections::{AsOf, Comparison, replay};
use stackship_store::clock;

use crate::world::{World, pool_as};

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_newest_replay_is_the_stored_review_and_earlier_ones_were_once(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    let (run, _) = world.holding_run(&tenant).await;
    world.settle().await;
    let auditor = pool_as(&world.owner, "stackship_auditor", 1);
    let then = world.views.review(tenant.organization, run).await.unwrap();
    let then = then.unwrap();
    world
        .plan(&tenant, run, stackship_domain::run::samples::plan())
        .await;
    world.settle().await;

    let newest = replay(&auditor, run, AsOf::Newest).await.unwrap().unwrap();
    assert_eq!(newest.comparison, Comparison::Same);
    let stored = world.views.review(tenant.organization, run).await.unwrap();
    assert_eq!(Some(&newest.review), stored.as_ref());
    assert!(newest.review.last_sequence > then.last_sequence);

    let sequence = AsOf::Sequence(then.last_sequence);
    let position: i64 = sqlx::query_scalar(
        "select number from view.audit_entries where aggregate_id = $1 and sequence = $2",
    )
    .bind(run.to_string())
    .bind(then.last_sequence)
    .fetch_one(&world.owner)
    .await
    .unwrap();
    for as_of in [sequence, AsOf::Position(position)] {
        let earlier = replay(&auditor, run, as_of).await.unwrap().unwrap();
        assert_eq!(earlier.comparison, Comparison::Earlier);
        assert_eq!(earlier.review, then, "{as_of:?}");
    }
    assert!(
        replay(&auditor, run, AsOf::Position(0))
            .await
            .unwrap()
            .is_none()
    );
    let nobody = replay(&auditor, clock::fresh(), AsOf::Newest).await;
    assert!(nobody.unwrap().is_none());
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_stored_review_that_does_not_follow_from_the_log_is_named(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    let run = world.applied_run(&tenant).await;
    world.settle().await;
    sqlx::query(
        "update view.run_review set doc = jsonb_set(doc, '{facts,message}', '\"another\"')",
    )
    .execute(&world.owner)
    .await
    .unwrap();
    let auditor = pool_as(&world.owner, "stackship_auditor", 1);
    let found = replay(&auditor, run, AsOf::Newest).await.unwrap().unwrap();
    let Comparison::Differs(difference) = found.comparison else {
        panic!("{:?}", found.comparison);
    };
    assert_eq!(difference.field, "/facts/message");
    assert_eq!(difference.stored, Some("another".into()));
    let message = found.review.facts.message;
    assert_eq!(difference.replayed, Some(message.into()));
}
