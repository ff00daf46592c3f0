//! The review: everything that a reviewer needs, from what was written down, and nothing that must
//! stay behind the edge.

mod world;

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::run::{Command, PlanFailure, TerminalReason, samples};
use stackship_store::phase_logs::LogPhase;

use crate::http::Call;
use crate::world::World;
use world::Reviewed;

const ROLES: [&str; 4] = ["reader", "planner", "operator", "owner"];

fn actions(seen: &Value) -> Vec<&str> {
    let actions = seen["available_actions"].as_array().unwrap().iter();
    actions
        .map(|action| action["action"].as_str().unwrap())
        .collect()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn nothing_that_must_stay_behind_the_edge_is_in_anybodys_review(pool: PgPool) {
    let world = World::new(pool).await;
    let mut reviewed = Reviewed::soft_failed(&world).await;
    let mut documents = Vec::new();
    for step in 0..3 {
        match step {
            0 => {}
            1 => reviewed.overridden().await,
            _ => reviewed.doubtful().await,
        }
        for role in ROLES {
            documents.push((role, reviewed.seen(role).await.to_string()));
        }
    }
    let unspeakable = reviewed.unspeakable().await;
    assert!(unspeakable.len() > 20, "the world has what could be told");
    for (role, document) in documents {
        for text in &unspeakable {
            assert!(!document.contains(text), "{role} sees {text}: {document}");
        }
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_soft_failure_shows_its_findings_and_who_may_override(pool: PgPool) {
    let world = World::new(pool).await;
    let reviewed = Reviewed::soft_failed(&world).await;
    let seen = reviewed.seen("reader").await;
    let policy = &seen["stages"]["policy"];
    assert_eq!(policy["stage"]["status"], "waiting", "{seen:#}");
    assert_eq!(policy["stage"]["opens"], true);
    assert_eq!(policy["outcome"], "soft_failed");
    assert_eq!(
        policy["findings"],
        json!({"kind": "recorded", "value": {"found": 1, "truncated": false, "items": [{
            "title": "Node groups span three zones", "message": "It lists two subnets.",
            "resource_address": "aws_eks_node_group.green", "level": "soft_mandatory", "policy": "zones",
        }]}})
    );
    assert_eq!(actions(&seen), [""; 0], "a reader decides nothing");
    assert_eq!(
        actions(&reviewed.seen("operator").await),
        ["discard", "cancel"]
    );
    let owner = reviewed.seen("owner").await;
    assert_eq!(actions(&owner), ["discard", "cancel", "override"]);
    let digest = reviewed.evaluation.digest().to_string();
    assert_eq!(owner["available_actions"][2]["digest"], digest.as_str());

    reviewed.overridden().await;
    let seen = reviewed.seen("operator").await;
    let given = &seen["stages"]["policy"]["overrides"];
    assert_eq!(given["truncated"], false);
    assert_eq!(given["records"][0]["active"], true, "{given:#}");
    assert_eq!(
        given["records"][0]["by"]["display_name"]["value"],
        "Somebody"
    );
    assert_eq!(given["records"][0]["result_digest"], digest.as_str());
    assert_eq!(actions(&seen), ["approve", "discard", "cancel"]);
    assert_eq!(
        seen["available_actions"][0]["confirmation"],
        "restate_counts"
    );
    assert_eq!(seen["guidance"]["code"], "decide_on_plan");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_doubt_shows_its_evidence_and_who_may_end_it(pool: PgPool) {
    let world = World::new(pool).await;
    let mut reviewed = Reviewed::soft_failed(&world).await;
    reviewed.overridden().await;
    reviewed.doubtful().await;
    let seen = reviewed.seen("owner").await;
    let recovery = &seen["recovery"];
    assert_eq!(recovery["unresolved"], true, "{seen:#}");
    assert_eq!(recovery["has_errored_state"], true);
    assert_eq!(recovery["choices"]["adopt"]["possible"], false);
    assert_eq!(actions(&seen), ["recovery_no_change"]);
    assert_eq!(actions(&reviewed.seen("operator").await), [""; 0]);
    assert_eq!(seen["stages"]["apply"]["stage"]["status"], "waiting");
    assert_eq!(seen["stages"]["apply"]["phase"], "interrupted");
    assert_eq!(seen["ended"], Value::Null);
    let evidence = &seen["evidence"];
    assert_eq!(evidence["sandbox_base_profile"]["value"], "confined/3");
    assert_eq!(evidence["runner_release"]["value"], "0.1.0");
    assert_eq!(evidence["runner_protocol"]["value"], "runner/v1");
    let attempts = evidence["attempts"].as_array().unwrap();
    let told = |index: usize, name: &str| attempts[index][name]["value"].clone();
    assert_eq!(attempts.len(), 2);
    assert_eq!(told(1, "classification"), "apply_killed");
    assert_eq!(told(1, "region"), "north");
    assert_eq!(
        attempts[0]["classification"],
        json!({"kind": "unavailable"}),
        "a report that this release cannot read"
    );
    let there = |index: usize| seen["downloads"][index]["availability"]["kind"].clone();
    assert_eq!(seen["downloads"][3]["artifact"], "emergency_state");
    assert_eq!(there(3), "available");
    assert_eq!(seen["downloads"][4]["artifact"], "state");
    assert_eq!(there(4), "not_yet");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_is_damaged_is_unavailable_and_the_rest_is_shown(pool: PgPool) {
    let world = World::new(pool).await;
    let reviewed = Reviewed::soft_failed(&world).await;
    for change in [
        "update record.objects set sha256 = decode(repeat('00', 32), 'hex') where kind = 'policy_result'",
        "update record.objects set workspace_id = null where kind = 'plan'",
        "delete from record.objects where kind = 'plan_diff'",
    ] {
        sqlx::query(change).execute(&world.owner).await.unwrap();
    }
    let seen = reviewed.seen("owner").await;
    let unavailable = json!({"kind": "unavailable"});
    assert_eq!(seen["stages"]["policy"]["findings"], unavailable);
    for (index, kind) in ["unavailable", "available", "unavailable"]
        .iter()
        .enumerate()
    {
        assert_eq!(
            seen["downloads"][index]["availability"]["kind"], *kind,
            "{index}"
        );
    }
    assert_eq!(seen["stages"]["plan"]["summary"]["counts"]["destroy"], 2);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_review_that_cannot_be_read_is_an_error_and_never_empty(pool: PgPool) {
    let world = World::new(pool).await;
    let reviewed = Reviewed::soft_failed(&world).await;
    reviewed.seen("owner").await;
    let path = format!("/v1/runs/{}/review", reviewed.run);
    for (change, status, code) in [
        (
            "update view.run_review set doc = doc - 'plan'",
            500,
            "INTERNAL",
        ),
        ("delete from view.run_review", 503, "READ_MODELS_BEHIND"),
    ] {
        sqlx::query(change).execute(&world.owner).await.unwrap();
        let answer = Call::new("GET", &path, &world.acme.owner.token)
            .send(&world.router)
            .await;
        let told = (answer.status.as_u16(), answer.code());
        assert_eq!(told, (status, code), "{change}");
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_failed_run_ends_with_the_last_eight_lines_of_its_log(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, _) = world.holding_run().await;
    let attempt = samples::attempt(1);
    let failed = Command::FailPlan {
        attempt: attempt.id,
        failure: PlanFailure {
            reason: TerminalReason::PlanFailed,
            detail: "tofu plan ended with exit code 1.".to_owned(),
        },
    };
    world.run_command(run, Command::StartPlan { attempt }).await;
    world.run_command(run, failed).await;
    let reviewed = Reviewed::of(&world, run);
    let ended = &reviewed.seen("reader").await["ended"];
    assert_eq!(ended["reason"], "plan_failed");
    assert_eq!(ended["log_tail"], json!({"kind": "not_recorded"}), "no log");
    let lines: Vec<String> = (1..=12).map(|line| format!("line {line}")).collect();
    reviewed.log(LogPhase::Plan, &lines.join("\n")).await;
    let ended = &reviewed.seen("reader").await["ended"];
    assert_eq!(
        ended["log_tail"],
        json!({"kind": "recorded", "value": {"log": "plan", "lines": lines[4..]}})
    );
}
