//! What a refusal looks like, and that it leaves nothing behind.

use insta::assert_json_snapshot;
use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::Sha256Digest;
use stackship_domain::run::RunKind;
use stackship_store::clock;

use crate::http::Call;
use crate::world::World;

async fn error(world: &World, status: u16, method: &str, path: &str, body: Value) -> Value {
    let answer = world.send(method, path, &body).await;
    assert_eq!(answer.status, status, "{method} {path}: {}", answer.json);
    assert!(!answer.request_id.is_empty());
    answer.json["error"].clone()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_apply_without_approval_is_refused_and_creates_nothing(pool: PgPool) {
    const TABLES: [&str; 4] = [
        "log.events",
        "record.runs",
        "record.input_snapshots",
        "record.objects",
    ];
    let world = World::new(pool).await;
    let configuration = world.configuration(false).await;
    let path = format!("/v1/workspaces/{}/runs", world.acme.workspace);
    let count = async || {
        let mut counts = Vec::new();
        for table in TABLES {
            counts.push(world.count(table).await);
        }
        counts
    };
    let before = count().await;
    for (field, code) in [
        ("auto_apply", "AUTO_APPLY_UNSUPPORTED"),
        ("is_destroy", "DESTROY_UNSUPPORTED"),
    ] {
        let body = json!({"configuration_version": configuration, "message": "m", field: true});
        let refused = error(&world, 422, "POST", &path, body).await;
        assert_eq!(
            (&refused["code"], &refused["details"]["field"]),
            (&json!(code), &json!(field))
        );
    }
    assert_eq!(count().await, before, "{TABLES:?}");
    let body = json!({"name": "w", "project": "default", "auto_apply": true});
    let refused = error(&world, 400, "POST", &world.acme.path("workspaces"), body).await;
    assert_eq!(
        refused["details"]["field"], "auto_apply",
        "a workspace has no such setting at all"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn requests_that_cannot_be_read_name_the_field(pool: PgPool) {
    let world = World::new(pool).await;
    let (projects, workspaces) = (world.acme.path("projects"), world.acme.path("workspaces"));
    let variables = format!("/v1/workspaces/{}/variables", world.acme.workspace);
    let runs = world.acme.path("runs");
    let mut errors = Vec::new();
    for (status, method, path, body) in [
        (400, "POST", projects.as_str(), json!({})),
        (400, "POST", &projects, json!({"name": "a b"})),
        (400, "POST", &projects, json!({"name": "a", "nmae": "b"})),
        (400, "POST", &projects, json!([])),
        (409, "POST", &projects, json!({"name": "default"})),
        (
            400,
            "POST",
            &workspaces,
            json!({"name": "w", "project": "default", "tofu_version": "latest"}),
        ),
        (
            422,
            "POST",
            &workspaces,
            json!({"name": "w", "project": "default", "working_directory": "../up"}),
        ),
        (
            422,
            "POST",
            &workspaces,
            json!({"name": "w", "project": "default", "approval_seconds": 5}),
        ),
        (
            404,
            "POST",
            &workspaces,
            json!({"name": "w", "project": "nowhere"}),
        ),
        (
            400,
            "POST",
            &variables,
            json!({"key": "a", "value": "b", "category": "file"}),
        ),
        (
            422,
            "POST",
            &variables,
            json!({"key": "TF_LOG", "value": "b", "category": "env"}),
        ),
        (400, "GET", &format!("{runs}?status=done"), json!({})),
        (400, "GET", &format!("{runs}?sort=up"), json!({})),
        (400, "GET", &format!("{runs}?limit=0"), json!({})),
        (400, "GET", &format!("{runs}?cursor=AAAA"), json!({})),
        (400, "GET", &format!("{projects}?cursor=AAAA"), json!({})),
        (404, "GET", "/v1/nowhere", json!({})),
        (405, "DELETE", &projects, json!({})),
    ] {
        let error = error(&world, status, method, path, body.clone()).await;
        let path = path.replace(&world.acme.workspace.to_string(), "ws-…");
        errors.push(
            json!({"request": format!("{method} {path} {body}"), "status": status, "error": error}),
        );
    }
    assert_json_snapshot!("requests_that_cannot_be_read", errors);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn decisions_that_do_not_fit_say_why(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, _) = world.run_that_asks().await;
    let queued = world.run(RunKind::PlanAndApply).await;
    let workspace = world.acme.workspace;
    let other = json!({"binding_digest": Sha256Digest::of(b"another plan")});
    let mut errors = Vec::new();
    for (status, path, body) in [
        (409, format!("/v1/runs/{run}/approve"), other.clone()),
        (409, format!("/v1/runs/{queued}/approve"), other),
        (
            400,
            format!("/v1/runs/{run}/approve"),
            json!({"binding_digest": "abc"}),
        ),
        (
            422,
            format!("/v1/runs/{run}/discard"),
            json!({"reason": ""}),
        ),
        (409, format!("/v1/workspaces/{workspace}/lock"), json!({})),
        (409, format!("/v1/workspaces/{workspace}/unlock"), json!({})),
        (
            409,
            format!("/v1/workspaces/{workspace}/force-unlock"),
            json!({"reason": "gone"}),
        ),
        (
            422,
            format!("/v1/workspaces/{workspace}/force-unlock"),
            json!({"reason": ""}),
        ),
    ] {
        let error = error(&world, status, "POST", &path, body).await;
        let known = [
            (run.to_string(), "run-holder"),
            (queued.to_string(), "run-queued"),
            (workspace.to_string(), "ws-…"),
        ];
        let mut text = json!({"request": path, "status": status, "error": error}).to_string();
        for (id, name) in known {
            text = text.replace(&id, name);
        }
        errors.push(serde_json::from_str::<Value>(&text).unwrap());
    }
    assert_json_snapshot!("decisions_that_do_not_fit", errors);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn who_does_not_get_through_is_told_what_to_do(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.holding_run().await;
    let run_token = world.run_token(run, fence).await;
    let path = world.acme.path("projects");
    let body = json!({"name": "data"});
    let mut errors = Vec::new();
    for (who, token) in [
        ("nobody", ""),
        ("a reader", world.acme.reader.token.as_str()),
        ("a foreign owner", &world.umbrella.owner.token),
        ("a run", &run_token),
    ] {
        let mut call = Call::new("POST", &path, token).json(&body);
        call.token = call.token.filter(|token| !token.is_empty());
        let answer = call.send(&world.router).await;
        errors.push(
            json!({"who": who, "status": answer.status.as_u16(), "error": answer.json["error"]}),
        );
    }
    assert_json_snapshot!("who_does_not_get_through", errors);
    assert_eq!(
        world.count("record.projects").await,
        2,
        "one of each tenant, as before"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_failure_of_ours_tells_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let broken = "alter table record.projects rename to elsewhere";
    sqlx::query(broken).execute(&world.owner).await.unwrap();
    let answer = world
        .send("GET", &world.acme.path("projects"), &json!({}))
        .await;
    assert_eq!(answer.status, 500);
    let text = answer.json.to_string();
    assert!(
        answer.code() == "INTERNAL" && !text.contains("projects"),
        "{text}"
    );
    let named = Call::new("GET", "/healthz", "")
        .header("x-request-id", "mine-1")
        .send(&world.router)
        .await;
    assert_eq!(named.request_id, "mine-1");
    let odd = Call::new("GET", "/healthz", "")
        .header("x-request-id", "a b")
        .send(&world.router)
        .await;
    assert_ne!(odd.request_id, "a b");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_sensitive_value_goes_in_and_never_comes_out(pool: PgPool) {
    let world = World::new(pool).await;
    let path = format!("/v1/workspaces/{}/variables", world.acme.workspace);
    let secret = clock::fresh_text();
    let body =
        json!({"key": "password", "value": secret, "category": "terraform", "sensitive": true});
    let created = world.send("POST", &path, &body).await;
    let id = created.json["data"]["id"].as_str().unwrap().to_owned();
    let one = format!("{path}/{id}");
    let weaker = error(&world, 422, "PATCH", &one, json!({"sensitive": false})).await;
    assert_eq!(weaker["code"], "VARIABLE_SENSITIVE");
    let answers = [
        created.json,
        world.send("GET", &path, &json!({})).await.json,
        world
            .send("PATCH", &one, &json!({"description": "d"}))
            .await
            .json,
        weaker,
    ];
    assert!(
        answers
            .iter()
            .all(|answer| !answer.to_string().contains(&secret))
    );
    let told: i64 = sqlx::query_scalar(
        "select count(*) from log.events where payload::text like '%' || $1 || '%'",
    )
    .bind(&secret)
    .fetch_one(&world.owner)
    .await
    .unwrap();
    assert_eq!(told, 0);
}
