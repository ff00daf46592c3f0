//! The policy check of a run: judged for real, overridden by people, and read by the client.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::ids::RunId;
use stackship_domain::run::{
    Command, PolicyErrorCode, PolicyOutcome, PolicyResult, Refusal, Status, TerminalReason,
};
use stackship_domain::{Actor, Sha256Digest};
use stackship_policy::{Evaluation, Evaluator};
use stackship_projections::RunReview;
use stackship_runner_protocol::{PhaseResult, PlanEnd};
use stackship_store::log::{CommandError, Context};
use stackship_workflow::advance::check_policies;
use stackship_workflow::leasing::Leased;
use stackship_workflow::policy::{Checker, Patience};

use crate::documents::assert_described;
use crate::http::{Answer, Call};
use crate::v2::edge::create_run;
use crate::v2::http::{get, send};
use crate::v2::world::Served;
use crate::world::policies::bundle;
use crate::world::until;

const DENIES: &str = "deny contains \"no such plan\"";
const REASON: &str = "because of this test";

impl Served {
    /// A set of one soft-mandatory policy with these rules, which applies to acme's workspace.
    async fn judge(&self, rules: &str) -> String {
        let set = self.policy_set("baseline").await;
        self.upload(&set, bundle("1", rules)).await.data(201);
        let scope = json!({"kind": "workspace", "workspace": self.acme.workspace});
        self.place("attachments", &set, &scope).await.data(201);
        set
    }

    /// A run whose plan has changes and is now being judged.
    async fn planned_run(&self, speculative: bool) -> RunId {
        let run = create_run(self, speculative).await.parse().unwrap();
        let leased = self.lease().await;
        let report = self.planned(b"plan", 1).await;
        self.report(&leased.attempt, &report).await;
        run
    }

    async fn override_as(&self, token: &str, run: RunId, body: &Value) -> Answer {
        let path = format!("/v1/runs/{run}/policy-override");
        let answer = Call::new("POST", path, token)
            .json(body)
            .send(&self.router)
            .await;
        if answer.status.is_success() {
            assert_described("POST", "/v1/runs/{run}/policy-override", &answer);
        }
        answer
    }

    /// The stored result of a run, whose bytes are what their digest says.
    async fn result(&self, run: RunId, review: &RunReview) -> Evaluation {
        let path = format!("/v1/runs/{run}/policy-result");
        let answer = Call::new("GET", path, &self.acme.reader.token).send(&self.router);
        let answer = answer.await;
        assert_eq!(answer.status, 200, "{}", answer.json);
        assert_described("GET", "/v1/runs/{run}/policy-result", &answer);
        let recorded = review.policy.result.as_ref().unwrap();
        assert_eq!(Sha256Digest::of(&answer.bytes), recorded.digest);
        Evaluation::from_bytes(&answer.bytes).unwrap()
    }

    async fn ended_by_error(&self, run: RunId, code: PolicyErrorCode) -> Evaluation {
        let review = self.until(run, Status::Failed).await;
        let end = review.ended.as_ref().unwrap();
        assert_eq!(end.reason, TerminalReason::PolicyError);
        let detail = end.detail.as_deref().unwrap_or_default();
        assert!(detail.contains(code.as_str()), "{detail}");
        let result = self.result(run, &review).await;
        assert_eq!(
            (result.outcome, result.error_code),
            (PolicyOutcome::Error, Some(code))
        );
        assert_eq!(result.findings.len(), 1);
        result
    }

    async fn check(&self, run: RunId, token: &str) -> Value {
        let id = run.to_string().replacen("run-", "polchk-", 1);
        let url = format!("{}/api/v2/policy-checks/{id}", self.url);
        get(&url, token).await.json()["data"].clone()
    }
}

fn word(review: &RunReview, lasts: i64) -> Value {
    let digest = review.policy.result.as_ref().unwrap().digest;
    json!({"result_sha256": digest, "reason": REASON, "duration_seconds": lasts})
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_override_is_for_the_reviewed_result_by_whom_it_is_for_and_bounded(pool: PgPool) {
    let world = Served::new(pool).await;
    world.judge(DENIES).await;
    let run = world.planned_run(false).await;
    let review = world.until(run, Status::OverrideRequired).await;
    let owner = &world.acme.owner.token;
    let good = word(&review, 600);
    for (changed, code) in [
        (
            json!({"result_sha256": Sha256Digest::of(b"another")}),
            "POLICY_RESULT_STALE",
        ),
        (json!({"reason": "short"}), "REASON_INVALID"),
        (json!({"duration_seconds": 0}), "POLICY_OVERRIDE_TIME"),
        (json!({"duration_seconds": 86_401}), "POLICY_OVERRIDE_TIME"),
    ] {
        let mut body = good.clone();
        body.as_object_mut()
            .unwrap()
            .extend(changed.as_object().unwrap().clone());
        let refused = world.override_as(owner, run, &body).await;
        assert_eq!(refused.code(), code, "{}", refused.json);
    }
    for person in [&world.acme.planner, &world.acme.operator] {
        let refused = world.override_as(&person.token, run, &good).await;
        assert_eq!(refused.code(), "PERMISSION_MISSING");
    }
    let shown = world.override_as(owner, run, &good).await.data(200);
    assert_eq!(shown["status"], "awaiting_approval");
    let given = &shown["policy"]["overrides"][0];
    assert_eq!(given["result_sha256"], good["result_sha256"]);
    assert_eq!(given["reason"], REASON);
    assert_eq!(shown["policy"]["overrides_truncated"], false);
    assert_eq!(
        shown["approval"]["evidence"]["policy_result"],
        good["result_sha256"]
    );
    let again = world.override_as(owner, run, &good).await;
    assert_eq!(again.code(), "RUN_STATUS_CONFLICT");
    let result = world.result(run, &review).await;
    assert_eq!(result.findings[0].message, "no such plan");
    let plan = review.plan.record.as_ref().unwrap();
    assert_eq!(
        (result.plan_digest, result.redacted_plan_digest),
        (plan.plan, plan.policy_input)
    );
    assert_eq!(result.bundle_digest, review.facts.pins.policies.digest());
}

/// A server that stood still has evaluated the same plan and found something else. It names the step as
/// the first one did, if it read the run at the same event, and otherwise as nobody did.
#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_result_that_comes_after_an_override_takes_nothing_from_it(pool: PgPool) {
    let world = Served::new(pool).await;
    world.judge(DENIES).await;
    let run = world.planned_run(false).await;
    let review = world.until(run, Status::OverrideRequired).await;
    let owner = &world.acme.owner.token;
    let given = world.override_as(owner, run, &word(&review, 600)).await;
    given.data(200);
    let decided = world.store.runs.load(run).await.unwrap();

    let first: String = sqlx::query_scalar(
        "select command_id from log.events where aggregate_id = $1 and event_type = 'policy_evaluated'",
    )
    .bind(run.to_string())
    .fetch_one(&world.owner)
    .await
    .unwrap();
    let found = Command::RecordPolicy {
        result: PolicyResult {
            outcome: PolicyOutcome::Pass,
            digest: Sha256Digest::of(b"found by another server"),
            ..review.policy.result.unwrap()
        },
        approval_expires_at: review.policy.decide_by.unwrap(),
    };
    let step = |command_id: &str| Context {
        organization: world.acme.organization,
        actor: Actor::System,
        request_id: "another-server".to_owned(),
        command_id: command_id.to_owned(),
    };
    let runs = &world.store.runs;
    let doubled = runs.execute(run, found.clone(), &step(&first)).await;
    assert!(!doubled.unwrap().appended);
    let late = runs.execute(run, found, &step("another step")).await;
    assert!(
        matches!(
            late,
            Err(CommandError::Refused(Refusal::WrongStatus { .. }))
        ),
        "{late:?}"
    );
    let nowhere = Checker::new(Evaluator::new("/nowhere/stackship".into()));
    check_policies(&world.store, &nowhere, run).await.unwrap();
    assert_eq!(world.store.runs.load(run).await.unwrap(), decided);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_override_that_ran_out_before_the_apply_began_ends_the_run(pool: PgPool) {
    let world = Served::new(pool).await;
    world.judge(DENIES).await;
    let run = world.planned_run(false).await;
    let review = world.until(run, Status::OverrideRequired).await;
    let owner = &world.acme.owner.token;
    let shown = world.override_as(owner, run, &word(&review, 2)).await;
    let shown = shown.data(200);
    let binding = &shown["approval"]["binding_digest"];
    let path = format!("/v1/runs/{run}/approve");
    let body = json!({"binding_digest": binding});
    world.send("POST", &path, &body).await.data(200);
    // Nobody leases the apply meanwhile.
    let review = world.until(run, Status::Expired).await;
    let end = review.ended.unwrap();
    assert_eq!(end.reason, TerminalReason::PolicyOverrideExpired);
    assert!(review.apply.attempts.is_empty());
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_pinned_bundle_that_is_not_what_was_pinned_judges_nothing(pool: PgPool) {
    let world = Served::new(pool).await;
    world.judge("deny contains \"x\" if false").await;
    sqlx::query(
        "update record.objects set sha256 = sha256('another') where kind = 'policy_bundle'",
    )
    .execute(&world.owner)
    .await
    .unwrap();
    let run = world.planned_run(false).await;
    let code = PolicyErrorCode::PolicyBundle;
    let result = world.ended_by_error(run, code).await;
    assert!(
        result.findings[0]
            .message
            .contains("`baseline` cannot be read"),
        "{:?}",
        result.findings
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_policies_cannot_see_does_not_pass(pool: PgPool) {
    let world = Served::new(pool).await;
    let report = async |leased: &Leased, change: fn(&mut PlanEnd)| {
        let PhaseResult::Plan { mut end } = world.planned(b"plan", 1).await else {
            panic!("a plan was asked for")
        };
        change(&mut end);
        world
            .report(&leased.attempt, &PhaseResult::Plan { end })
            .await;
    };
    let doubtful: fn(&mut PlanEnd) = |end| {
        if let PlanEnd::Planned { json, .. } = end {
            json.doubtful = 1;
        }
    };
    let missing: fn(&mut PlanEnd) = |end| {
        if let PlanEnd::Planned { policy_input, .. } = end {
            *policy_input = None;
        }
    };
    // Where no policy is asked, what it would not see matters to nobody.
    let unjudged: RunId = create_run(&world, true).await.parse().unwrap();
    report(&world.lease().await, doubtful).await;
    world.until(unjudged, Status::SpeculativeFinished).await;

    world.judge("deny contains \"x\" if false").await;
    for change in [doubtful, missing] {
        let run: RunId = create_run(&world, true).await.parse().unwrap();
        report(&world.lease().await, change).await;
        world
            .ended_by_error(run, PolicyErrorCode::PolicyInput)
            .await;
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_machine_without_room_for_a_process_is_asked_a_few_times(pool: PgPool) {
    let patience = Patience {
        starts_max: 3,
        first_pause: Duration::from_millis(1),
        pause_max: Duration::from_millis(2),
    };
    let nowhere = Evaluator::new("/nowhere/stackship".into());
    let world = Served::judged_by(pool, Checker::with_patience(nowhere, patience)).await;
    world.judge("deny contains \"x\" if false").await;
    let run = world.planned_run(true).await;
    let code = PolicyErrorCode::PolicyUnavailable;
    let result = world.ended_by_error(run, code).await;
    assert!(
        result.findings[0].message.contains("tried 3 times"),
        "{:?}",
        result.findings
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_client_reads_a_check_and_overrides_it(pool: PgPool) {
    let world = Served::new(pool).await;
    let (owner, operator) = (&world.acme.owner.token, &world.acme.operator.token);
    let relation = async |run: RunId| {
        let url = format!("{}/api/v2/runs/{run}", world.url);
        let run = get(&url, operator).await.json();
        run["data"]["relationships"]["policy-checks"]["data"].clone()
    };
    let unjudged = world.planned_run(true).await;
    world.until(unjudged, Status::SpeculativeFinished).await;
    assert_eq!(relation(unjudged).await, json!([]), "nothing to print");

    world.judge(DENIES).await;
    let run = world.planned_run(false).await;
    world.until(run, Status::OverrideRequired).await;
    let id = run.to_string().replacen("run-", "polchk-", 1);
    assert_eq!(
        relation(run).await,
        json!([{"id": id, "type": "policy-checks"}])
    );
    let check = world.check(run, operator).await;
    let attributes = &check["attributes"];
    assert_eq!(attributes["status"], "soft_failed");
    assert_eq!(attributes["actions"]["is-overridable"], true);
    assert_eq!(attributes["permissions"]["can-override"], false);
    assert_eq!(attributes["result"]["soft-failed"], 1);
    let of_owner = world.check(run, owner).await;
    assert_eq!(of_owner["attributes"]["permissions"]["can-override"], true);
    let url = format!("{}/api/v2/policy-checks/{id}", world.url);
    let output = get(&format!("{url}/output"), operator).await;
    let output = String::from_utf8(output.body).unwrap();
    assert!(output.contains("no such plan"), "{output}");

    let override_url = format!("{url}/actions/override");
    assert_eq!(send("POST", &override_url, operator, "").await.status, 403);
    let given = send("POST", &override_url, owner, "").await;
    assert_eq!(given.status, 200);
    assert_eq!(given.json()["data"]["attributes"]["status"], "overridden");
    // The client sends it again when its answer was lost.
    assert_eq!(send("POST", &override_url, owner, "").await.status, 200);
    let review = world.until(run, Status::AwaitingApproval).await;
    let given = &review.policy.overrides[..];
    assert_eq!(given.len(), 1);
    let result = review.policy.result.as_ref().unwrap();
    assert_eq!(given[0].result, result.digest);
    let list = format!("{}/api/v2/runs/{run}/policy-checks", world.url);
    let listed = get(&list, operator).await.json();
    assert_eq!(listed["data"][0]["attributes"]["status"], "overridden");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_run_keeps_what_it_has_pinned(pool: PgPool) {
    let world = Served::new(pool).await;
    let set = world.judge("deny contains \"x\" if false").await;
    let run: RunId = create_run(&world, false).await.parse().unwrap();
    world.upload(&set, bundle("2", DENIES)).await.data(201);
    let pinned = "select count(*) from record.runs where policies -> 0 ->> 'version' = '1'";
    let pinned: i64 = sqlx::query_scalar(pinned)
        .fetch_one(&world.owner)
        .await
        .unwrap();
    assert_eq!(pinned, 1);
    let leased = world.lease().await;
    let report = world.planned(b"plan", 1).await;
    world.report(&leased.attempt, &report).await;
    let review = world.until(run, Status::AwaitingApproval).await;
    assert_eq!(review.facts.pins.policies.sets()[0].version, 1);
    let shown = world.seen_run(run).await;
    assert_eq!(shown["pins"]["policies"]["sets"][0]["name"], "baseline");
    until("its policy log is closed", async || {
        let path = format!("/v1/runs/{run}/logs/policy");
        world.send("GET", &path, &json!({})).await.data(200)["closed"] == true
    })
    .await;
}
