//! The `tofu` inside a sandbox, and what its token opens.

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::ids::StateVersionId;
use stackship_domain::run::Status;
use stackship_workflow::leasing::Leased;

use crate::v2::http::{Answer, get, send};
use crate::v2::tofu::Tofu;
use crate::v2::world::Served;

/// A run whose apply was leased, reached by `tofu apply` in a terminal that was answered.
async fn applying(world: &Served) -> Leased {
    let run = planned(world).await;
    let approve = format!("{}/api/v2/runs/{run}/actions/apply", world.url);
    assert_eq!(
        send("POST", &approve, &world.acme.operator.token, "{}")
            .await
            .status,
        202
    );
    assert_eq!(
        send("POST", &approve, &world.acme.operator.token, "{}")
            .await
            .status,
        202,
        "again"
    );
    world.lease().await
}

/// A run that waits for an approval.
async fn planned(world: &Served) -> String {
    let run = crate::v2::edge::create_run(world, false).await;
    let leased = world.lease().await;
    world
        .report(&leased.attempt, &world.planned(b"plan", 1).await)
        .await;
    world
        .until(run.parse().unwrap(), Status::AwaitingApproval)
        .await;
    run
}

fn announcement(run: &str, serial: i64, lineage: &str, bytes: &[u8]) -> String {
    use md5::Digest as _;
    json!({"data": {"type": "state-versions", "attributes": {
        "serial": serial, "lineage": lineage, "md5": hex::encode(md5::Md5::digest(bytes)), "force": false,
        "json-state-outputs": "e30="},
        "relationships": {"run": {"data": {"type": "runs", "id": run}}}}})
    .to_string()
}

fn state(serial: i64, lineage: &str) -> Vec<u8> {
    json!({"version": 4, "serial": serial, "lineage": lineage, "outputs": {}, "resources": []})
        .to_string()
        .into_bytes()
}

async fn announce(world: &Served, leased: &Leased, body: String) -> Answer {
    let url = format!(
        "{}/api/v2/workspaces/{}/state-versions",
        world.url, world.acme.workspace
    );
    send("POST", &url, &leased.run_token, body).await
}

fn url(answer: &Value, name: &str) -> String {
    answer["data"]["attributes"][name]
        .as_str()
        .unwrap()
        .to_owned()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_applying_run_stages_states_and_reads_its_newest_back(pool: PgPool) {
    let world = Served::new(pool).await;
    let leased = applying(&world).await;
    let run = leased.attempt.offer.run.to_string();
    let current = format!(
        "{}/api/v2/workspaces/{}/current-state-version",
        world.url, world.acme.workspace
    );
    let nothing = get(&current, &leased.run_token).await;
    assert_eq!(nothing.status, 404);
    assert_eq!(nothing.headers["x-terraform-snapshot-interval"], "20");

    let bytes = state(1, "lin");
    let begun = announce(&world, &leased, announcement(&run, 1, "lin", &bytes)).await;
    assert_eq!(
        begun.status,
        201,
        "{}",
        String::from_utf8_lossy(&begun.body)
    );
    let begun = begun.json();
    let again = announce(&world, &leased, announcement(&run, 1, "lin", &bytes))
        .await
        .json();
    assert_eq!(
        again["data"]["id"], begun["data"]["id"],
        "the same announcement again"
    );
    for body in [state(2, "lin"), state(1, "other"), b"{}".to_vec()] {
        let put = send("PUT", &url(&begun, "hosted-state-upload-url"), "", body).await;
        assert_eq!(put.status, 409, "other bytes than the announced ones");
    }
    for _ in 0..2 {
        let put = send(
            "PUT",
            &url(&begun, "hosted-state-upload-url"),
            "",
            bytes.clone(),
        )
        .await;
        assert_eq!(put.status, 200);
        let put = send(
            "PUT",
            &url(&begun, "hosted-json-state-upload-url"),
            "",
            "{}",
        )
        .await;
        assert_eq!(put.status, 200);
    }

    let own = get(&current, &leased.run_token).await.json();
    assert_eq!(own["data"]["id"], begun["data"]["id"]);
    let read = get(&url(&own, "hosted-state-download-url"), &leased.run_token).await;
    assert_eq!(read.body, bytes);
    let others = get(&current, &world.acme.operator.token).await;
    assert_eq!(others.status, 404, "staged is not published");
    let others = get(
        &url(&own, "hosted-state-download-url"),
        &world.acme.operator.token,
    )
    .await;
    assert_eq!(others.status, 404, "not even by its id");

    let next = state(2, "lin");
    for (serial, lineage, words) in [
        (2, "other", "another lineage"),
        (1, "lin", "has 1 already"),
        (0, "lin", "at least 1"),
        (i64::MAX, "lin", "at most 10001"),
    ] {
        let refused = announce(&world, &leased, announcement(&run, serial, lineage, &next)).await;
        assert!(refused.status.is_client_error());
        assert!(refused.refusal().contains(words), "{}", refused.refusal());
    }
    let foreign = announce(&world, &leased, announcement("run-1", 2, "lin", &next)).await;
    assert_eq!(foreign.status, 403);
    assert_eq!(
        announce(&world, &leased, announcement(&run, 2, "lin", &next))
            .await
            .status,
        201
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_planning_run_and_a_person_write_no_state(pool: PgPool) {
    let world = Served::new(pool).await;
    let run = crate::v2::edge::create_run(&world, false).await;
    let leased = world.lease().await;
    let refused = announce(&world, &leased, announcement(&run, 1, "lin", b"{}")).await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.refusal().contains("a plan does not"),
        "{}",
        refused.refusal()
    );
    let url = format!(
        "{}/api/v2/workspaces/{}/state-versions",
        world.url, world.acme.workspace
    );
    let body = announcement(&run, 1, "lin", b"{}");
    let refused = send("POST", &url, &world.acme.operator.token, body).await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.refusal().contains("written by runs"),
        "{}",
        refused.refusal()
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_runs_token_opens_its_own_workspace_and_nothing_that_decides(pool: PgPool) {
    let world = Served::new(pool).await;
    let operator = Tofu::new(&world.url, &world.acme.operator.token, "other");
    operator.run(&["init"], "").await.ok();
    let run = crate::v2::edge::create_run(&world, false).await;
    let leased = world.lease().await;
    let base = format!("{}/api/v2", world.url);
    let own = get(
        &format!("{base}/organizations/acme/workspaces/net"),
        &leased.run_token,
    )
    .await;
    assert_eq!(own.status, 200);
    let other = get(
        &format!("{base}/organizations/acme/workspaces/other"),
        &leased.run_token,
    )
    .await;
    assert_eq!(
        other.status, 404,
        "another workspace of the same organization"
    );
    for path in [
        format!("runs/{run}/actions/apply"),
        format!("runs/{run}/actions/cancel"),
        "organizations/acme/workspaces".to_owned(),
    ] {
        let body = json!({"data": {"attributes": {"name": "x"}}}).to_string();
        let answer = send("POST", &format!("{base}/{path}"), &leased.run_token, body).await;
        assert!(
            [403, 404].contains(&answer.status.as_u16()),
            "{path}: {}",
            answer.status
        );
    }
    let lock = format!("{base}/workspaces/{}/actions/lock", world.acme.workspace);
    let answer = send("POST", &lock, &leased.run_token, "").await;
    assert_eq!(
        answer.json()["data"]["type"],
        "workspaces",
        "an answer, and nothing else"
    );
    let state: StateVersionId = stackship_store::clock::fresh();
    let unknown = get(&format!("{base}/state-versions/{state}"), &leased.run_token).await;
    assert_eq!(unknown.status, 404);
}
