//! A yes is for exact evidence (S-RUN-7), given once and in time, and whoever says no is heard in
//! every status.

mod evidence;
mod statuses;

use std::collections::BTreeMap;

use futures::future::join_all;
use serde_json::json;
use sqlx::PgPool;
use stackship_domain::ids::RunId;
use stackship_domain::run::{Phase, Status};
use stackship_store::objects::ObjectKind;
use stackship_store::{attempts, clock};
use stackship_workflow::advance::advance;

use crate::http::Call;
use crate::v2::http::send;
use crate::v2::world::Served;
use crate::world::World;
use stackship_runner_protocol::{PhaseResult, PlanEnd};

/// How many people press the button at the same moment.
const APPROVALS: usize = 100;

/// A run whose plan has a lock file, waiting for a person.
async fn asked(world: &Served) -> RunId {
    let run: RunId = crate::v2::edge::create_run(world, false)
        .await
        .parse()
        .unwrap();
    let leased = world.lease().await;
    let mut planned = world.planned(b"plan", 1).await;
    let file = world.store_file(ObjectKind::LockFile, b"# locked\n").await;
    let PhaseResult::Plan {
        end: PlanEnd::Planned { lock_file, .. },
    } = &mut planned
    else {
        panic!("no plan: {planned:?}");
    };
    *lock_file = Some(file);
    world.report(&leased.attempt, &planned).await;
    world.until(run, Status::AwaitingApproval).await;
    run
}

async fn binding(world: &World, run: RunId) -> serde_json::Value {
    let seen = world.seen_run(run).await;
    json!({"binding_digest": seen["approval"]["binding_digest"]})
}

async fn events_of(world: &World, run: RunId, name: &str) -> Vec<serde_json::Value> {
    let query = "select payload from log.events where aggregate_id = $1 and event_type = $2";
    let query = sqlx::query_scalar(query).bind(run.to_string()).bind(name);
    query.fetch_all(&world.owner).await.unwrap()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn many_approvals_at_once_make_one_apply_and_every_answer_says_so(pool: PgPool) {
    let world = Served::new(pool).await;
    let run = asked(&world).await;
    let body = binding(&world, run).await.to_string();
    let url = format!("{}/v1/runs/{run}/approve", world.url);
    let people = [&world.acme.owner.token, &world.acme.operator.token];
    let all = (0..APPROVALS).map(|n| send("POST", &url, people[n % 2], body.clone()));
    let mut said = BTreeMap::<_, usize>::new();
    for answer in join_all(all).await {
        let code = answer.json()["error"]["code"].as_str().map(str::to_owned);
        *said.entry((answer.status.as_u16(), code)).or_default() += 1;
    }
    // The one who was first may say it again; the other is told who was.
    let clean = [
        (200, None),
        (409, Some("RUN_ALREADY_APPROVED".to_owned())),
        (409, Some("CONTENDED".to_owned())),
        (503, Some("READ_MODELS_BEHIND".to_owned())),
    ];
    assert!(said.keys().all(|answer| clean.contains(answer)), "{said:?}");
    assert_eq!(said.values().sum::<usize>(), APPROVALS);
    assert_eq!(events_of(&world, run, "run_approved").await.len(), 1);

    let leased = world.lease().await;
    assert_eq!(leased.attempt.offer.run, run);
    let attempts = attempts::of_run(&world.store.pool, run).await.unwrap();
    let applies = attempts
        .iter()
        .filter(|row| row.offer.phase == Phase::Apply);
    assert_eq!(applies.count(), 1);
    assert_eq!(events_of(&world, run, "apply_started").await.len(), 1);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_approval_comes_too_late_once_its_time_is_over_and_the_run_lapses(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, _) = world.run_that_asks_until(clock::now()).await;
    let body = binding(&world, run).await;
    let path = format!("/v1/runs/{run}/approve");
    let late = world.send("POST", &path, &body).await;
    assert_eq!(
        (late.status.as_u16(), late.code()),
        (409, "RUN_APPROVAL_EXPIRED")
    );
    advance(&world.store, run).await.unwrap();
    let seen = world.seen_run(run).await;
    assert_eq!(seen["status"], "expired", "{seen:#}");
    assert_eq!(seen["ended"]["reason"], "approval_expired", "{seen:#}");
    assert!(events_of(&world, run, "run_approved").await.is_empty());
    let late = world.send("POST", &path, &body).await;
    assert_eq!(late.code(), "RUN_STATUS_CONFLICT");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_plan_is_discarded_with_a_reason_that_stays_and_cannot_be_approved_after(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, _) = world.run_that_asks().await;
    let body = binding(&world, run).await;
    let path = |verb: &str| format!("/v1/runs/{run}/{verb}");
    let reason = json!({"reason": "The subnet is too small."});
    let planner = Call::new("POST", path("discard"), &world.acme.planner.token).json(&reason);
    assert_eq!(planner.send(&world.router).await.status, 403);
    let planner = Call::new("POST", path("approve"), &world.acme.planner.token).json(&body);
    let refused = planner.send(&world.router).await;
    assert_eq!(refused.status, 403, "who may plan may not approve");
    assert_eq!(
        refused.json["error"]["details"]["permission"],
        "run:approve"
    );

    let discarded = world.send("POST", &path("discard"), &reason).await;
    assert_eq!(discarded.data(200)["status"], "discarded");
    let told = events_of(&world, run, "run_discarded").await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["reason"], reason["reason"], "{told:?}");
    let late = world.send("POST", &path("approve"), &body).await;
    assert_eq!(late.code(), "RUN_STATUS_CONFLICT");
    assert!(events_of(&world, run, "run_approved").await.is_empty());
}
