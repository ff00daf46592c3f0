//! What a refusal says: the field at fault, how it is written, who is in the way.

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::run::RunKind;

use crate::http::Answer;
use crate::world::World;

fn told(answer: &Answer) -> (u16, &str, &str, &str) {
    let error = &answer.json["error"];
    let text = |value: &'static str| error.pointer(value).and_then(Value::as_str);
    (
        answer.status.as_u16(),
        answer.code(),
        text("/details/field").unwrap_or_default(),
        text("/message").unwrap_or_default(),
    )
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_refusal_names_the_field_and_how_it_is_written(pool: PgPool) {
    let world = World::new(pool).await;
    let acme = &world.acme;
    let run = world.run(RunKind::PlanAndApply).await;
    let over = format!("/v1/runs/{run}/policy-override");
    let lasts = |seconds: u32| json!({"result_sha256": "0".repeat(64), "reason": "it is only a test", "duration_seconds": seconds});
    let time = "write a time as in `2026-01-02T03:04:05Z`";
    for (method, path, body, status, code, field, words) in [
        (
            "POST",
            over.clone(),
            lasts(0),
            422,
            "POLICY_OVERRIDE_TIME",
            "duration_seconds",
            "is 1 to 86400",
        ),
        (
            "POST",
            over.clone(),
            lasts(86_401),
            422,
            "POLICY_OVERRIDE_TIME",
            "duration_seconds",
            "is 1 to 86400",
        ),
        (
            "POST",
            over,
            lasts(60),
            409,
            "RUN_STATUS_CONFLICT",
            "",
            "`override` is not possible while the run is `queued`",
        ),
        (
            "POST",
            acme.path("workspaces"),
            json!({"name": "n", "project": "nowhere"}),
            404,
            "NOT_FOUND",
            "project",
            "no such project",
        ),
        (
            "POST",
            acme.path("users"),
            json!({"login": "Ada L", "display_name": "Ada"}),
            422,
            "USER_INVALID",
            "login",
            "begins with a letter",
        ),
        (
            "POST",
            acme.path("tokens"),
            json!({"description": "d", "expires_at": "tomorrow"}),
            400,
            "BODY_INVALID",
            "expires_at",
            time,
        ),
        (
            "GET",
            acme.path("audit-events?from=yesterday"),
            json!(null),
            400,
            "QUERY_INVALID",
            "from",
            time,
        ),
        (
            "GET",
            acme.path("audit-events?to=2026-01-02"),
            json!(null),
            400,
            "QUERY_INVALID",
            "to",
            time,
        ),
        (
            "GET",
            format!("/v1/runs/{run}/logs/aply"),
            json!(null),
            404,
            "NOT_FOUND",
            "phase",
            "`plan`, `policy` and `apply`",
        ),
    ] {
        let answer = world.send(method, &path, &body).await;
        let (found, its_code, its_field, message) = told(&answer);
        assert_eq!(
            (found, its_code, its_field),
            (status, code, field),
            "{path}: {message}"
        );
        assert!(message.contains(words), "{path}: {message}");
    }
    let absent = json!({"description": "d", "expires_at": null});
    world
        .send("POST", &acme.path("tokens"), &absent)
        .await
        .data(201);
    let with_offset = acme.path("audit-events?from=2026-01-02T03:04:05%2B01:00");
    assert_eq!(
        world.send("GET", &with_offset, &json!(null)).await.status,
        200
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_lock_is_taken_once_and_keeps_its_reason(pool: PgPool) {
    let world = World::new(pool).await;
    let lock = format!("/v1/workspaces/{}/lock", world.acme.workspace);
    let reason = json!({"reason": "the network is being moved"});
    for body in [&reason, &reason, &json!({})] {
        let locked = world.send("POST", &lock, body).await.data(200);
        assert_eq!(locked["lock"]["reason"], reason["reason"]);
    }
    let refused = world
        .send("POST", &lock, &json!({"reason": "another"}))
        .await;
    assert_eq!(
        (refused.status.as_u16(), refused.code()),
        (409, "WORKSPACE_LOCKED")
    );
    let error = &refused.json["error"];
    assert_eq!(error["details"]["reason"], reason["reason"]);
    let holder = json!({"kind": "user", "user": world.acme.owner.user});
    assert_eq!(error["details"]["holder"], holder, "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.ends_with("who says: the network is being moved"),
        "{message}"
    );
}
