//! The organization's history over HTTP.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::Timestamp;
use stackship_domain::run::RunKind;
use stackship_projections::audit::{HeadLog, verify_export};

use crate::http::Call;
use crate::world::{Tenant, World, until};

/// Waits until the read models hold every event that is there.
async fn settle(world: &World) {
    until("every event is in the history", async || {
        let (events, entries) = (
            world.count("log.events").await,
            world.count("view.audit_entries").await,
        );
        events == entries
    })
    .await;
}

async fn get(world: &World, tenant: &Tenant, rest: &str) -> Value {
    let path = tenant.path(&format!("audit-events{rest}"));
    let answer = Call::new("GET", path, &tenant.owner.token)
        .send(&world.router)
        .await;
    assert_eq!(answer.status, 200, "{rest}: {}", answer.json);
    answer.json
}

/// Every entry of a list, page by page.
async fn walk(world: &World, filter: &str, limit: usize) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let rest = format!("?limit={limit}{filter}{cursor}");
        let mut page = get(world, &world.acme, &rest).await;
        let entries = std::mem::take(page["data"].as_array_mut().unwrap());
        assert!(entries.len() <= limit);
        found.extend(entries);
        match page["meta"]["page"]["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

fn time(entry: &Value) -> Timestamp {
    entry["recorded_at"].as_str().unwrap().parse().unwrap()
}

fn positions(entries: &[Value]) -> Vec<i64> {
    let positions = entries.iter().map(|entry| entry["position"].as_i64());
    positions.map(Option::unwrap).collect()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_whole_history_is_walked_newest_first_and_is_chained(pool: PgPool) {
    let world = World::new(pool).await;
    world.run_that_asks().await;
    settle(&world).await;
    let entries = walk(&world, "", 7).await;
    let all = entries.len();
    assert!(all > 14, "more than two pages");
    let distinct: BTreeSet<i64> = positions(&entries).into_iter().collect();
    assert_eq!(distinct.len(), all, "none comes twice");
    assert_eq!(
        distinct.last().copied(),
        i64::try_from(all).ok(),
        "none is skipped"
    );
    assert!(entries.is_sorted_by_key(|entry| std::cmp::Reverse(time(entry))));
    for entry in &entries {
        let before = entry["position"].as_i64().unwrap() - 1;
        let before = entries.iter().find(|other| other["position"] == before);
        let zeros = json!("0".repeat(64));
        assert_eq!(
            entry["previous_hash"],
            before.map_or(&zeros, |before| &before["hash"]).clone()
        );
        assert!(entry["payload"].is_object() && entry["request_id"].is_string());
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn each_filter_shows_exactly_its_entries(pool: PgPool) {
    let world = World::new(pool).await;
    let other = world.run(RunKind::Speculative).await;
    let (run, _) = world.run_that_asks().await;
    let body = json!({"key": "k", "value": "v", "category": "terraform"});
    let variables = format!("/v1/workspaces/{}/variables", world.acme.workspace);
    world.send("POST", &variables, &body).await.data(201);
    settle(&world).await;
    let all = walk(&world, "", 100).await;
    let expect = async |filter: String, is_in: &dyn Fn(&Value) -> bool| {
        let wanted: Vec<Value> = all.iter().filter(|entry| is_in(entry)).cloned().collect();
        assert!(
            !wanted.is_empty() && wanted.len() < all.len(),
            "{filter} filters nothing"
        );
        assert_eq!(walk(&world, &filter, 2).await, wanted, "{filter}");
    };
    let (run, other) = (run.to_string(), other.to_string());
    let about =
        |id: &str, entry: &Value| entry["aggregate"]["id"] == id || entry["payload"]["run"] == id;
    expect(format!("&run={run}"), &|entry| about(&run, entry)).await;
    expect(format!("&run={other}"), &|entry| about(&other, entry)).await;
    expect("&type=variable_created".to_owned(), &|entry| {
        entry["event_type"] == "variable_created"
    })
    .await;
    let workspace = world.acme.workspace.to_string();
    expect(format!("&workspace={workspace}"), &|entry| {
        entry["workspace"] == workspace.as_str()
    })
    .await;
    for entry in &all {
        let is_of_it = entry["aggregate"]["type"] != "fact"
            || entry["payload"]["workspace"] == workspace.as_str();
        assert_eq!(
            is_of_it,
            entry["workspace"] == workspace.as_str(),
            "{entry}"
        );
    }
    let middle = time(&all[all.len() / 2]);
    let since = |entry: &Value| time(entry) >= middle;
    expect(format!("&from={middle}"), &since).await;
    expect(format!("&to={middle}"), &|entry| !since(entry)).await;
    let filter = format!("&from={middle}&workspace={workspace}&run={run}");
    expect(filter, &|entry| since(entry) && about(&run, entry)).await;
    assert!(walk(&world, "&actor=system", 100).await.is_empty());
    let reader = world.acme.reader.user.to_string();
    expect(format!("&actor={reader}"), &|entry| {
        entry["actor"] == reader.as_str()
    })
    .await;
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn cursors_of_other_lists_and_filters_that_say_nothing_are_refused(pool: PgPool) {
    let world = World::new(pool).await;
    for _ in 0..2 {
        let run = world.run(RunKind::Speculative).await;
        world.seen_run(run).await;
    }
    settle(&world).await;
    let next = |page: &Value| {
        page["meta"]["page"]["next_cursor"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let cursor = next(&get(&world, &world.acme, "?limit=1").await);
    let of_umbrella = next(&get(&world, &world.umbrella, "?limit=1").await);
    let runs = world
        .send("GET", &world.acme.path("runs?limit=1"), &json!({}))
        .await;
    let mut forged = cursor.clone().into_bytes();
    forged[30] = if forged[30] == b'A' { b'B' } else { b'A' };
    let forged = String::from_utf8(forged).unwrap();
    let actor = world.acme.owner.user;
    for (query, code) in [
        (format!("cursor={forged}"), "AUDIT_CURSOR_INVALID"),
        (format!("cursor={of_umbrella}"), "AUDIT_CURSOR_INVALID"),
        (
            format!("cursor={}", next(&runs.json)),
            "AUDIT_CURSOR_INVALID",
        ),
        (
            format!("cursor={cursor}&actor={actor}"),
            "AUDIT_CURSOR_INVALID",
        ),
        ("cursor=".to_owned(), "AUDIT_CURSOR_INVALID"),
        (
            "cursor=2026-01-01T00:00:00Z".to_owned(),
            "AUDIT_CURSOR_INVALID",
        ),
        ("limit=0".to_owned(), "LIST_LIMIT_INVALID"),
        ("limit=101".to_owned(), "LIST_LIMIT_INVALID"),
        ("type=Run%20Approved".to_owned(), "AUDIT_TYPE_INVALID"),
        ("type=".to_owned(), "AUDIT_TYPE_INVALID"),
        ("from=yesterday".to_owned(), "QUERY_INVALID"),
        ("actor=ada".to_owned(), "QUERY_INVALID"),
        ("run=run-1".to_owned(), "QUERY_INVALID"),
        ("workspace=net".to_owned(), "QUERY_INVALID"),
        ("user=ada".to_owned(), "QUERY_INVALID"),
        (
            "from=2026-01-02T00:00:00Z&to=2026-01-02T00:00:00Z".to_owned(),
            "AUDIT_TIME_INVALID",
        ),
    ] {
        let path = world.acme.path(&format!("audit-events?{query}"));
        let answer = world.send("GET", &path, &json!({})).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, code),
            "{query}: {}",
            answer.json
        );
    }
    let all = walk(&world, "", 100).await;
    let rest = walk(&world, &format!("&cursor={cursor}"), 100).await;
    assert_eq!(rest, all[1..], "the cursor itself is good");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_export_holds_the_whole_chain_of_one_organization(pool: PgPool) {
    let world = World::new(pool).await;
    world.run_that_asks().await;
    settle(&world).await;
    let path = world.acme.path("audit-events/export");
    let answer = Call::new("GET", path, &world.acme.owner.token)
        .send(&world.router)
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "application/x-ndjson");
    assert_eq!(
        answer.headers["content-disposition"],
        "attachment; filename=\"acme-audit.ndjson\""
    );
    let verified = verify_export(&answer.bytes[..], None::<&mut HeadLog<&[u8]>>).unwrap();
    let listed = walk(&world, "", 100).await;
    assert_eq!(positions(&listed).into_iter().max(), Some(verified.entries));
    assert_eq!(verified.organization, world.acme.organization.to_string());
    let text = std::str::from_utf8(&answer.bytes).unwrap();
    assert!(!text.contains(&world.umbrella.organization.to_string()));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_export_that_cannot_go_on_is_cut_and_not_ended(pool: PgPool) {
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;
    let world = World::new(pool).await;
    settle(&world).await;
    let mut transaction = world.owner.begin().await.unwrap();
    for statement in [
        "set local session_replication_role = replica",
        "delete from view.audit_entries where number = 2",
    ] {
        sqlx::query(statement)
            .execute(&mut *transaction)
            .await
            .unwrap();
    }
    transaction.commit().await.unwrap();
    let request = http::Request::builder()
        .uri(world.acme.path("audit-events/export"))
        .header("host", "ship.test")
        .header(
            "authorization",
            format!("Bearer {}", world.acme.owner.token),
        )
        .body(axum::body::Body::empty())
        .unwrap();
    let response = world.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200, "by then the status has been sent");
    assert!(response.into_body().collect().await.is_err());
}

/// What nobody may find in the history.
const PLANTED: &str = "planted-5e1d-correct-horse-battery";

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn no_secret_is_in_the_history(pool: PgPool) {
    let world = World::new(pool).await;
    let variables = format!("/v1/workspaces/{}/variables", world.acme.workspace);
    for (key, hcl) in [("a", false), ("b", true)] {
        let value = if hcl {
            format!("\"{PLANTED}\"")
        } else {
            PLANTED.to_owned()
        };
        let body = json!({"key": key, "value": value, "category": "terraform", "hcl": hcl,
            "sensitive": true, "description": "d"});
        let made = world.send("POST", &variables, &body).await.data(201);
        let one = format!("{variables}/{}", made["id"].as_str().unwrap());
        let change = json!({"value": format!("{value}")});
        assert!(world.send("PATCH", &one, &change).await.status.is_success());
    }
    let token = json!({"description": "d"});
    let token = world
        .send("POST", &world.acme.path("tokens"), &token)
        .await
        .data(201);
    let token = token["token"].as_str().unwrap();
    let configuration = world.configuration(false).await;
    let run = json!({"configuration_version": configuration, "message": "m", "variables": [
        {"key": "c", "value": PLANTED, "sensitive": true}]});
    let runs = format!("/v1/workspaces/{}/runs", world.acme.workspace);
    world.send("POST", &runs, &run).await.data(201);
    settle(&world).await;
    let path = world.acme.path("audit-events/export");
    let answer = Call::new("GET", path, token).send(&world.router).await;
    let text = std::str::from_utf8(&answer.bytes).unwrap();
    assert!(
        text.contains("variable_created") && text.contains("token_created"),
        "{text}"
    );
    assert!(text.contains("run_queued"), "{text}");
    let (_, secret) = token.split_once('_').unwrap();
    for planted in [PLANTED, secret, &world.acme.owner.token] {
        assert!(!text.contains(planted), "the history holds {planted}");
    }
}
