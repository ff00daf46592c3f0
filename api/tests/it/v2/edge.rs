//! Requests of the client, one by one.

use serde_json::json;
use sqlx::PgPool;
use stackship_domain::run::Status;

use crate::v2::http::{get, send};
use crate::v2::world::Served;

/// Uploads something that looks like a configuration and makes a run of it.
pub async fn create_run(world: &Served, speculative: bool) -> String {
    let configuration = upload(world, speculative).await;
    let url = format!("{}/api/v2/runs", world.url);
    let run = send(
        "POST",
        &url,
        &world.acme.operator.token,
        body(&configuration),
    )
    .await;
    assert_eq!(run.status, 201, "{}", String::from_utf8_lossy(&run.body));
    run.json()["data"]["id"].as_str().unwrap().to_owned()
}

fn body(configuration: &str) -> String {
    json!({"data": {"type": "runs", "attributes": {"auto-apply": false, "refresh": true, "save-plan": false},
        "relationships": {"configuration-version": {"data": {"type": "configuration-versions", "id": configuration}}}}})
    .to_string()
}

async fn upload(world: &Served, speculative: bool) -> String {
    let url = format!(
        "{}/api/v2/workspaces/{}/configuration-versions",
        world.url, world.acme.workspace
    );
    let body = json!({"data": {"type": "configuration-versions", "attributes": {
        "auto-queue-runs": false, "speculative": speculative, "provisional": false}}});
    let created = send("POST", &url, &world.acme.operator.token, body.to_string())
        .await
        .json();
    let upload = created["data"]["attributes"]["upload-url"]
        .as_str()
        .unwrap()
        .to_owned();
    let refused = send("PUT", &upload, "", "not gzip").await;
    assert_eq!(refused.status, 422);
    assert_eq!(
        send("PUT", &upload, "", vec![0x1f, 0x8b, 8]).await.status,
        200
    );
    assert_eq!(
        send("PUT", &upload, "", vec![0x1f, 0x8b, 8]).await.status,
        200,
        "again"
    );
    assert_eq!(
        send("PUT", &upload, "", vec![0x1f, 0x8b, 9]).await.status,
        409,
        "other bytes"
    );
    let id = created["data"]["id"].as_str().unwrap().to_owned();
    let read = format!("{}/api/v2/configuration-versions/{id}", world.url);
    let read = get(&read, &world.acme.operator.token).await.json();
    assert_eq!(read["data"]["attributes"]["status"], "uploaded");
    id
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn everybody_is_told_the_version_and_nobody_needs_a_credential_for_it(pool: PgPool) {
    let world = Served::new(pool).await;
    let ping = get(&format!("{}/api/v2/ping", world.url), "").await;
    assert_eq!(ping.headers["tfp-api-version"], "2.6");
    assert_eq!(ping.headers["tfp-appname"], "StackShip");
    let discovery = get(&format!("{}/.well-known/terraform.json", world.url), "").await;
    assert_eq!(discovery.headers["content-type"], "application/json");
    assert_eq!(discovery.json()["tfe.v2"], "/api/v2/");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn one_run_is_made_of_a_configuration_however_often_it_is_asked_for(pool: PgPool) {
    let world = Served::new(pool).await;
    let configuration = upload(&world, true).await;
    let url = format!("{}/api/v2/runs", world.url);
    let first = send(
        "POST",
        &url,
        &world.acme.operator.token,
        body(&configuration),
    )
    .await;
    let second = send(
        "POST",
        &url,
        &world.acme.operator.token,
        body(&configuration),
    )
    .await;
    assert_eq!(first.json()["data"]["id"], second.json()["data"]["id"]);
    assert_eq!(second.status, 201);
    let attributes = &first.json()["data"]["attributes"];
    assert_eq!(attributes["message"], "Triggered from the tofu CLI");
    assert_eq!(attributes["plan-only"], true);
    assert_eq!(world.runs().await, 1);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_runs_document_has_what_the_client_does_not_survive_without(pool: PgPool) {
    let world = Served::new(pool).await;
    let run = create_run(&world, false).await;
    let url = format!("{}/api/v2/runs/{run}", world.url);
    let plain = get(
        &format!("{url}?include=task_stages"),
        &world.acme.reader.token,
    )
    .await
    .json();
    assert!(plain["data"]["attributes"]["actions"].is_object());
    assert!(plain.get("included").is_none());
    for name in ["plan", "apply", "workspace"] {
        assert!(
            plain["data"]["relationships"][name]["data"]["id"].is_string(),
            "{name}"
        );
    }
    let with = get(
        &format!("{url}?include=plan%2Cworkspace"),
        &world.acme.reader.token,
    )
    .await
    .json();
    let kinds: Vec<&str> = with["included"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["plans", "workspaces"]);
    let events = get(&format!("{url}/run-events"), &world.acme.reader.token).await;
    assert!(events.json()["data"].is_array());
    let stranger = get(&url, &world.umbrella.owner.token).await;
    assert_eq!(stranger.status, 404);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_decision_needs_its_permission_and_its_moment(pool: PgPool) {
    let world = Served::new(pool).await;
    let run = create_run(&world, false).await;
    let action = |name: &str| format!("{}/api/v2/runs/{run}/actions/{name}", world.url);
    let early = send("POST", &action("apply"), &world.acme.operator.token, "{}").await;
    assert_eq!(early.status, 409);
    assert!(
        early.refusal().contains("not possible"),
        "{}",
        early.refusal()
    );
    let planner = send("POST", &action("cancel"), &world.acme.planner.token, "{}").await;
    assert_eq!(planner.status, 403);
    assert!(
        planner.refusal().contains("run:cancel"),
        "{}",
        planner.refusal()
    );
    for _ in 0..2 {
        let canceled = send("POST", &action("cancel"), &world.acme.operator.token, "{}").await;
        assert_eq!(canceled.status, 202);
    }
    world.until(run.parse().unwrap(), Status::Canceled).await;
    let read = get(
        &format!("{}/api/v2/runs/{run}", world.url),
        &world.acme.operator.token,
    )
    .await
    .json();
    assert_eq!(
        read["data"]["attributes"]["status"], "canceled",
        "never discarded before its plan"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_older_backend_and_tags_are_refused_with_a_text(pool: PgPool) {
    let world = Served::new(pool).await;
    let configuration = upload(&world, false).await;
    let body = json!({"data": {"attributes": {"refresh": true}, "relationships": {
        "configuration-version": {"data": {"id": configuration}}}}});
    let older = format!("{}/api/v2/runs", world.url);
    let older = send("POST", &older, &world.acme.operator.token, body.to_string()).await;
    assert_eq!(older.status, 422);
    assert!(
        older.refusal().contains("cloud block"),
        "{}",
        older.refusal()
    );
    let base = format!("{}/api/v2/workspaces/{}", world.url, world.acme.workspace);
    let tags = format!("{base}/relationships/tags");
    let tags = send("POST", &tags, &world.acme.operator.token, "{\"data\":[]}").await;
    assert_eq!(tags.status, 422);
    let version = json!({"data": {"attributes": {"terraform-version": "1.11.0"}}}).to_string();
    let version = send("PATCH", &base, &world.acme.operator.token, version).await;
    assert_eq!(version.status, 422);
    assert!(
        version.refusal().contains("1.12.6"),
        "{}",
        version.refusal()
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_project_is_found_by_its_name_and_made_by_an_owner_alone(pool: PgPool) {
    let world = Served::new(pool).await;
    let url = format!("{}/api/v2/organizations/acme/projects", world.url);
    let found = get(
        &format!("{url}?filter%5Bnames%5D=default"),
        &world.acme.reader.token,
    )
    .await
    .json();
    assert_eq!(found["data"][0]["id"], world.acme.project.to_string());
    let none = get(
        &format!("{url}?filter%5Bnames%5D=none"),
        &world.acme.reader.token,
    )
    .await
    .json();
    assert_eq!(none["data"], json!([]));
    let new = json!({"data": {"type": "projects", "attributes": {"name": "new"}}}).to_string();
    let refused = send("POST", &url, &world.acme.operator.token, new).await;
    assert!(
        refused.refusal().contains("project:write"),
        "{}",
        refused.refusal()
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_setting_that_is_not_there_is_refused_and_not_ignored(pool: PgPool) {
    let world = Served::new(pool).await;
    let change = format!("{}/api/v2/workspaces/{}", world.url, world.acme.workspace);
    let create = format!("{}/api/v2/organizations/acme/workspaces", world.url);
    for (method, url) in [("PATCH", &change), ("POST", &create)] {
        for (name, value) in [
            ("auto-apply", json!(true)),
            ("allow-destroy-plan", json!(true)),
            ("queue-all-runs", json!(true)),
            ("execution-mode", json!("local")),
            ("execution-mode", json!("agent")),
            ("operations", json!(false)),
        ] {
            let mut attributes = json!({});
            if method == "POST" {
                attributes["name"] = json!("refused");
            }
            attributes[name] = value;
            let body = json!({"data": {"type": "workspaces", "attributes": attributes}});
            let answer = send(method, url, &world.acme.operator.token, body.to_string()).await;
            assert_eq!(answer.status, 422, "{method} {body}");
            let is_named = answer.refusal().contains(name);
            assert!(is_named || name == "auto-apply", "{}", answer.refusal());
        }
    }
    let body = json!({"data": {"type": "workspaces", "attributes": {"name": "made", "auto-apply": false}}});
    let made = send(
        "POST",
        &create,
        &world.acme.operator.token,
        body.to_string(),
    )
    .await;
    assert_eq!(made.status, 201);
    let read = format!(
        "{}/v1/workspaces/{}",
        world.url,
        made.json()["data"]["id"].as_str().unwrap()
    );
    let read = get(&read, &world.acme.operator.token).await.json();
    assert_eq!(
        read["data"]["approval_seconds"],
        stackship_api::APPROVAL_SECONDS_DEFAULT
    );
    assert_eq!(read["data"]["platform"], "linux_amd64");
    let missing = get(&format!("{create}/refused"), &world.acme.operator.token).await;
    assert_eq!(missing.status, 404, "nothing was created");
}
