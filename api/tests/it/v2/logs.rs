//! Following a log as the client does.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use stackship_domain::ids::RunId;
use stackship_domain::run::Status;
use stackship_store::phase_logs::{self, Chunk, LogPhase};

use crate::v2::edge::create_run;
use crate::v2::http::{get, send};
use crate::v2::world::Served;
use crate::world::until;

async fn log_url(world: &Served, run: &str, phase: &str, kind: &str) -> String {
    let url = format!(
        "{}/api/v2/{kind}/{}",
        world.url,
        run.replacen("run-", phase, 1)
    );
    let read = get(&url, &world.acme.reader.token).await.json();
    read["data"]["attributes"]["log-read-url"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Reads until the end, as the client does: again at once after text.
async fn follow(url: &str) -> Vec<u8> {
    let mut log = Vec::new();
    while log.last() != Some(&3) {
        let part = get(&format!("{url}?limit=65536&offset={}", log.len()), "").await;
        assert_eq!(part.status, 200);
        log.extend(part.body);
    }
    log
}

/// The whole log of a run's policy check, once nothing will be added to it.
async fn policy_log(served: &Served, run: RunId) -> String {
    let read = async || {
        let organization = served.acme.organization;
        let log = phase_logs::read(&served.store, organization, run, LogPhase::Policy, 0, 4096);
        log.await.unwrap()
    };
    until("the policy check's log is closed", async || {
        read().await.closed
    })
    .await;
    String::from_utf8(read().await.bytes).unwrap()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_policy_phase_says_what_was_evaluated(pool: PgPool) {
    let served = Served::new(pool).await;
    let run = create_run(&served, false).await.parse().unwrap();
    let leased = served.lease().await;
    let report = served.planned(b"plan", 1).await;
    served.report(&leased.attempt, &report).await;
    served.until(run, Status::AwaitingApproval).await;
    let log = policy_log(&served, run).await;
    let told = "No policy set is attached.\n\nPassed.\n0 policies, 0 denials, 0 warnings, ";
    assert!(log.starts_with(told), "{log}");
    assert!(log.ends_with(" s, regorus/0.14.1\n"), "{log}");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_evaluation_that_was_lost_with_its_server_stays_in_the_log(pool: PgPool) {
    let served = Served::new(pool).await;
    let run = create_run(&served, false).await.parse().unwrap();
    let leased = served.lease().await;
    // As a server leaves it that dies between the evaluation and its record.
    let lost = Chunk {
        attempt_number: 1,
        sequence: 0,
        bytes: b"What the lost one said.\n",
    };
    phase_logs::append(&served.store, run, LogPhase::Policy, lost)
        .await
        .unwrap();
    let report = served.planned(b"plan", 1).await;
    served.report(&leased.attempt, &report).await;
    served.until(run, Status::AwaitingApproval).await;
    let log = policy_log(&served, run).await;
    let told = "What the lost one said.\n\nEvaluated again: the server was lost before the result was \
                recorded.\nNo policy set is attached.\n";
    assert!(log.starts_with(told), "{log}");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_log_is_followed_to_its_end_without_a_gap_or_a_doubling(pool: PgPool) {
    let world = Served::new(pool).await;
    let run = create_run(&world, true).await;
    let url = log_url(&world, &run, "plan-", "plans").await;
    let leased = world.lease().await;
    let writing = async {
        for sequence in 0..20 {
            world
                .log(&leased.attempt, sequence, &format!("line {sequence}\n"))
                .await;
        }
        world
            .report(&leased.attempt, &world.planned(b"plan", 1).await)
            .await;
    };
    let (log, ()) = tokio::join!(follow(&url), writing);
    let expected = (0..20).fold(String::new(), |text, line| {
        text + &format!(
            "line {line}
"
        )
    });
    assert_eq!(
        String::from_utf8(log).unwrap(),
        format!("\u{2}{expected}\u{3}")
    );
    let plan = format!(
        "{}/api/v2/plans/{}",
        world.url,
        run.replacen("run-", "plan-", 1)
    );
    let plan = get(&plan, &world.acme.reader.token).await.json();
    assert_eq!(
        plan["data"]["attributes"]["status"], "finished",
        "for whoever asks after the end"
    );
    let beyond = get(&format!("{url}?limit=65536&offset=100000"), "").await;
    assert_eq!((beyond.status.as_u16(), beyond.body.len()), (200, 0));
    let foreign = get(&format!("{url}x"), "").await;
    assert_eq!(foreign.status, 404);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_read_without_anything_to_say_is_held_and_then_answered(pool: PgPool) {
    let world = Served::new(pool).await;
    let run = create_run(&world, true).await;
    let url = log_url(&world, &run, "plan-", "plans").await;
    let began = Instant::now();
    let first = get(&format!("{url}?limit=65536&offset=0"), "").await;
    assert_eq!(first.body, [2], "the mark alone");
    assert!(began.elapsed() >= Duration::from_secs(1), "it was not held");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_logs_of_a_run_that_never_started_say_why_and_end(pool: PgPool) {
    let world = Served::new(pool).await;
    let run = create_run(&world, false).await;
    let plan = log_url(&world, &run, "plan-", "plans").await;
    let apply = log_url(&world, &run, "apply-", "applies").await;
    let cancel = format!("{}/api/v2/runs/{run}/actions/cancel", world.url);
    crate::v2::http::send("POST", &cancel, &world.acme.operator.token, "{}").await;
    world.until(run.parse().unwrap(), Status::Canceled).await;
    let log = String::from_utf8(follow(&plan).await).unwrap();
    assert!(log.contains("canceled"), "{log:?}");
    let log = String::from_utf8(follow(&apply).await).unwrap();
    assert_eq!(
        log.lines().count(),
        4,
        "three lines to drop and the end: {log:?}"
    );
}

/// A token of the reader's own, with its id.
async fn own_token(world: &Served, token: &str) -> (String, String) {
    let url = format!("{}/v1/organizations/acme/tokens", world.url);
    let made = send("POST", &url, token, "{\"description\":\"terminal\"}").await;
    assert_eq!(made.status, 201);
    let made = made.json();
    let text = |name: &str| made["data"][name].as_str().unwrap().to_owned();
    (text("id"), text("token"))
}

async fn revoke(world: &Served, token: &str, id: &str) {
    let url = format!("{}/v1/organizations/acme/tokens/{id}", world.url);
    assert_eq!(send("DELETE", &url, token, "").await.status, 200);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_address_ends_with_the_token_it_was_given_to(pool: PgPool) {
    let world = Served::new(pool).await;
    let run = create_run(&world, true).await;
    let (id, token) = own_token(&world, &world.acme.reader.token).await;
    let read = get(
        &format!("{}/api/v2/runs/{run}?include=plan", world.url),
        &token,
    )
    .await
    .json();
    let own = read["included"][0]["attributes"]["log-read-url"]
        .as_str()
        .unwrap();
    let others = log_url(&world, &run, "plan-", "plans").await;
    let apply = log_url(&world, &run, "apply-", "applies").await;
    for url in [own, &others, &apply] {
        assert_eq!(get(url, "").await.status, 200);
    }
    revoke(&world, &world.acme.reader.token, &id).await;
    let absent = get(&format!("{}/api/v2/logs/wrong", world.url), "").await;
    let revoked = get(own, "").await;
    assert_eq!(revoked.status, 404);
    assert_eq!(
        revoked.body, absent.body,
        "it looks like one that never was"
    );
    assert_eq!(
        get(&others, "").await.status,
        200,
        "each address has its own token"
    );
    let run_sql = async |query: &str| {
        sqlx::query(query).execute(&world.owner).await.unwrap();
    };
    for (over, again) in [
        (
            "update record.tokens set expires_at = created_at",
            "update record.tokens set expires_at = null",
        ),
        (
            "update record.users set disabled_at = now()",
            "update record.users set disabled_at = null",
        ),
    ] {
        run_sql(over).await;
        assert_eq!(get(&others, "").await.status, 404, "{over}");
        run_sql(again).await;
        assert_eq!(get(&others, "").await.status, 200, "{again}");
    }
    run_sql("delete from record.role_grants where role = 'reader'").await;
    assert_eq!(get(&others, "").await.status, 404, "the role is gone");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_upload_ends_with_the_token_that_announced_it(pool: PgPool) {
    let world = Served::new(pool).await;
    let (id, token) = own_token(&world, &world.acme.operator.token).await;
    let url = format!(
        "{}/api/v2/workspaces/{}/configuration-versions",
        world.url, world.acme.workspace
    );
    let body = "{\"data\":{\"attributes\":{\"speculative\":true}}}";
    let created = send("POST", &url, &token, body).await.json();
    let upload = created["data"]["attributes"]["upload-url"]
        .as_str()
        .unwrap();
    let version = created["data"]["id"].as_str().unwrap();
    let read = format!("{}/api/v2/configuration-versions/{version}", world.url);
    let read = get(&read, &world.acme.reader.token).await.json();
    let readers = read["data"]["attributes"]["upload-url"].as_str().unwrap();
    assert_eq!(
        send("PUT", readers, "", vec![0x1f, 0x8b, 8]).await.status,
        404
    );
    revoke(&world, &world.acme.operator.token, &id).await;
    assert_eq!(
        send("PUT", upload, "", vec![0x1f, 0x8b, 8]).await.status,
        404
    );
}
