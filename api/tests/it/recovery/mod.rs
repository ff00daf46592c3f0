//! A doubtful apply is resolved by an owner, with a reason, and by nobody and nothing else.

mod errored;
mod world;

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::run::Status;
use stackship_store::recoveries;

use crate::http::Call;
use crate::v2::world::Served;
use world::{Doubtful, LINEAGE, REASON, events, publish};

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_owner_adopts_what_the_apply_left(pool: PgPool) {
    let world = Served::new(pool).await;
    let doubtful = Doubtful::with_states(&world, &[(1, LINEAGE), (2, LINEAGE)]).await;
    let seen = doubtful.evidence(&world).await;
    assert_eq!(seen["doubt"]["reason"], "sandbox_lost", "{seen:#}");
    assert_eq!(seen["attempt"]["number"], 1);
    assert_eq!(seen["staged_state"]["serial"], 2, "the newest");
    assert_eq!(seen["staged_state"]["lineage"], LINEAGE);
    for absent in [
        "sandbox",
        "workspace_state",
        "predecessor_state",
        "resolved",
    ] {
        assert!(seen[absent].is_null(), "{absent}: {seen:#}");
    }
    assert_eq!(seen["choices"]["adopt"]["possible"], true, "{seen:#}");
    assert_eq!(seen["choices"]["no_change"]["possible"], true);

    let held = doubtful.lock(&world).await;
    assert!(!held.is_null());
    let adopted = doubtful.decide(&world, "adopt", REASON).await;
    let request_id = adopted.request_id.clone();
    assert_eq!(adopted.data(200)["status"], "recovered");
    doubtful.until_unlocked(&world).await;
    let detail = doubtful.workspace(&world).await;
    assert_eq!(detail["state"]["version"], seen["staged_state"]["version"]);

    let again = doubtful.decide(&world, "adopt", REASON).await;
    assert_eq!(again.status, 200, "the same decision again: {}", again.json);
    let other = doubtful.decide(&world, "no-change", REASON).await;
    assert_eq!(other.code(), "RUN_STATUS_CONFLICT");
    let seen = doubtful.evidence(&world).await;
    assert_eq!(seen["resolved"]["resolution"], "adopt_emergency_state");
    assert_eq!(seen["resolved"]["reason"], REASON);
    assert_eq!(
        seen["choices"]["no_change"]["refused_with"],
        "RUN_STATUS_CONFLICT"
    );

    let owner = world.acme.owner.user.to_string();
    for (name, count) in [("state_published", 1), ("recovery_resolved", 1)] {
        let found = events(&world, name).await;
        assert_eq!(found.len(), count, "{name}");
        assert_eq!(found[0].actor, owner, "{name}");
        assert_eq!(found[0].request_id, request_id, "{name}");
    }
    let resolved = &events(&world, "recovery_resolved").await[0];
    assert_eq!(resolved.payload["reason"], REASON);
    let published = events(&world, "state_published").await[0].position;
    let released = events(&world, "lock_released").await[0].position;
    assert!(published < resolved.position && resolved.position < released);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_decision_needs_its_permissions_and_a_reason(pool: PgPool) {
    let world = Served::new(pool).await;
    let doubtful = Doubtful::with_states(&world, &[(1, LINEAGE)]).await;
    for choice in ["adopt", "no-change"] {
        let path = doubtful.path(choice);
        let body = json!({"reason": REASON});
        for token in [&world.acme.operator.token, &world.acme.planner.token] {
            let call = Call::new("POST", path.clone(), token).json(&body);
            let refused = call.send(&world.router).await;
            assert_eq!(refused.status, 403);
            assert_eq!(
                refused.json["error"]["details"]["permission"],
                "run:recover"
            );
        }
        for reason in [
            json!("too short"),
            json!("r".repeat(1001)),
            json!("two\nlines of it"),
            json!(" ".repeat(10)),
            json!("     short     "),
        ] {
            let refused = world.send("POST", &path, &json!({"reason": reason})).await;
            assert_eq!(
                (refused.status.as_u16(), refused.code()),
                (422, "REASON_INVALID")
            );
        }
        for body in [json!({}), json!({"reason": REASON, "force": true})] {
            let refused = world.send("POST", &path, &body).await;
            assert!(refused.status.is_client_error(), "{}", refused.status);
        }
    }
    assert_eq!(doubtful.status(&world).await, Status::RecoveryRequired);
    assert!(!doubtful.lock(&world).await.is_null());
    assert!(events(&world, "state_published").await.is_empty());
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_apply_that_left_nothing_is_declared_to_have_changed_nothing(pool: PgPool) {
    let world = Served::new(pool).await;
    let doubtful = Doubtful::with_states(&world, &[]).await;
    let seen = doubtful.evidence(&world).await;
    assert!(seen["staged_state"].is_null(), "{seen:#}");
    assert_eq!(
        seen["choices"]["adopt"]["refused_with"],
        "RUN_EMERGENCY_STATE_MISSING"
    );
    let refused = doubtful.decide(&world, "adopt", REASON).await;
    assert_eq!(refused.code(), "RUN_EMERGENCY_STATE_MISSING");

    let deciding = recoveries::decide_alone(&world.store, doubtful.run)
        .await
        .unwrap()
        .unwrap();
    let second = doubtful.decide(&world, "no-change", REASON).await;
    assert_eq!((second.status.as_u16(), second.code()), (409, "CONTENDED"));
    deciding.end().await;

    assert!(!doubtful.lock(&world).await.is_null());
    for _ in 0..2 {
        let declared = doubtful.decide(&world, "no-change", REASON).await;
        assert_eq!(declared.data(200)["status"], "recovered");
    }
    doubtful.until_unlocked(&world).await;
    assert!(doubtful.workspace(&world).await["state"].is_null());
    assert_eq!(events(&world, "recovery_resolved").await.len(), 1);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_adoption_that_was_cut_off_can_only_be_finished(pool: PgPool) {
    let world = Served::new(pool).await;
    let doubtful = Doubtful::with_states(&world, &[(1, LINEAGE)]).await;
    // The first of the two commits; the process dies before the second.
    let publish = doubtful.publication(&world).await;
    world.workspace_command(publish).await;
    let seen = doubtful.evidence(&world).await;
    assert_eq!(seen["status"], "recovery_required");
    assert_eq!(seen["choices"]["adopt"]["possible"], true, "{seen:#}");
    assert_eq!(
        seen["choices"]["no_change"]["refused_with"],
        "RUN_STATE_PUBLISHED"
    );
    let refused = doubtful.decide(&world, "no-change", REASON).await;
    assert_eq!(
        (refused.status.as_u16(), refused.code()),
        (409, "RUN_STATE_PUBLISHED")
    );
    assert!(!doubtful.lock(&world).await.is_null());

    assert_eq!(doubtful.decide(&world, "adopt", REASON).await.status, 200);
    doubtful.until_unlocked(&world).await;
    assert_eq!(events(&world, "state_published").await.len(), 1);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_state_that_does_not_follow_is_not_adopted(pool: PgPool) {
    let world = Served::new(pool).await;
    let first = Doubtful::with_states(&world, &[(3, LINEAGE)]).await;
    assert_eq!(first.decide(&world, "adopt", REASON).await.status, 200);
    first.until_unlocked(&world).await;
    let head = first.workspace(&world).await["state"].clone();
    for staged in [(3, LINEAGE), (9, "another")] {
        let doubtful = Doubtful::with_states(&world, &[staged]).await;
        let seen = doubtful.evidence(&world).await;
        assert_eq!(seen["predecessor_state"]["serial"], 3, "{seen:#}");
        assert_eq!(
            seen["choices"]["adopt"]["refused_with"],
            "STATE_NOT_SUCCESSOR"
        );
        let refused = doubtful.decide(&world, "adopt", REASON).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (409, "STATE_NOT_SUCCESSOR")
        );
        assert_eq!(doubtful.status(&world).await, Status::RecoveryRequired);
        assert!(!doubtful.lock(&world).await.is_null());
        assert_eq!(
            doubtful.decide(&world, "no-change", REASON).await.status,
            200
        );
        doubtful.until_unlocked(&world).await;
        assert_eq!(doubtful.workspace(&world).await["state"], head);
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_state_is_not_adopted_over_one_that_the_plan_did_not_know(pool: PgPool) {
    let world = Served::new(pool).await;
    let applying = Doubtful::applying(&world).await;
    let early = applying.stage(&world, 1, LINEAGE).await;
    world.workspace_command(publish(&early)).await;
    applying.stage(&world, 2, LINEAGE).await;
    let doubtful = applying.killed(&world).await;
    let refused = doubtful.decide(&world, "adopt", REASON).await;
    assert_eq!(
        (refused.status.as_u16(), refused.code()),
        (409, "STATE_PREDECESSOR_MOVED")
    );
    assert_eq!(doubtful.status(&world).await, Status::RecoveryRequired);
    assert!(!doubtful.lock(&world).await.is_null());
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_run_that_never_was_in_doubt_has_nothing_to_resolve(pool: PgPool) {
    let world = Served::new(pool).await;
    let run = crate::v2::edge::create_run(&world, false).await;
    world.seen_run(run.parse().unwrap()).await;
    let path = format!("/v1/runs/{run}/recovery");
    let seen = world.send("GET", &path, &Value::Null).await.data(200);
    for absent in [
        "doubt",
        "attempt",
        "tofu_started_at",
        "staged_state",
        "resolved",
    ] {
        assert!(seen[absent].is_null(), "{absent}: {seen:#}");
    }
    for choice in ["adopt", "no_change"] {
        assert_eq!(
            seen["choices"][choice]["refused_with"],
            "RUN_STATUS_CONFLICT"
        );
    }
    let body = json!({"reason": REASON});
    for choice in ["adopt", "no-change"] {
        let refused = world.send("POST", &format!("{path}/{choice}"), &body).await;
        assert_eq!(refused.code(), "RUN_STATUS_CONFLICT");
    }
}
