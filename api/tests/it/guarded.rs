//! What is guarded leaves only for a reason, to somebody who has just shown who they are, and only as
//! the run recorded it.

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::ids::RunId;
use stackship_domain::run::Status;
use stackship_store::records::passwords::{self, Password};

use crate::http::{Answer, Call};
use crate::v2::edge::create_run;
use crate::v2::world::Served;
use crate::world::origin;

const PASSWORD: &str = "correct horse battery";
const PLAN: &[u8] = b"a plan with a secret in clear";
const REASON: &str = "Looking for the drift of ticket 4711";

struct Guarded {
    served: Served,
    run: RunId,
}

impl Guarded {
    /// A run whose plan waits for a person, and an owner with a password.
    async fn new(pool: PgPool) -> Self {
        let served = Served::new(pool).await;
        let run = create_run(&served, false).await.parse().unwrap();
        let leased = served.lease().await;
        let report = served.planned(PLAN, 1).await;
        served.report(&leased.attempt, &report).await;
        served.until(run, Status::AwaitingApproval).await;
        let context = origin(served.acme.owner.user).within(served.acme.organization);
        let password = Password::new(PASSWORD.to_owned()).unwrap();
        passwords::set(&served.store, &context, served.acme.owner.user, password)
            .await
            .unwrap();
        Self { served, run }
    }

    async fn call(&self, method: &str, path: &str, token: &str, body: &Value) -> Answer {
        Call::new(method, path, token)
            .json(body)
            .header("content-type", "application/json")
            .send(&self.served.router)
            .await
    }

    async fn step_up(&self, token: &str) -> Answer {
        let body = json!({"password": PASSWORD});
        self.call("POST", "/v1/user/step-up", token, &body).await
    }

    async fn raw_plan(&self, query: &str, reason: &str) -> Answer {
        let path = format!("/v1/runs/{}/raw-plan{query}", self.run);
        let owner = &self.served.acme.owner.token;
        self.call("POST", &path, owner, &json!({"reason": reason}))
            .await
    }

    async fn json_output(&self, plan: &str, token: &str) -> Answer {
        let path = format!("/api/v2/plans/{plan}/json-output");
        Call::new("GET", path, token)
            .send(&self.served.router)
            .await
    }

    fn plan_id(&self) -> String {
        self.run.to_string().replace("run-", "plan-")
    }

    async fn releases(&self) -> Vec<Value> {
        let told = "select payload from log.events where event_type = 'guarded_artifact_released'";
        sqlx::query_scalar(told)
            .fetch_all(&self.served.owner)
            .await
            .unwrap()
    }

    async fn damage(&self, change: &str) {
        let changed = sqlx::query(&format!("update record.objects set {change}"))
            .execute(&self.served.owner)
            .await
            .unwrap();
        assert!(changed.rows_affected() > 0, "{change}");
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_raw_plan_needs_a_proof_a_reason_and_no_query(pool: PgPool) {
    let guarded = Guarded::new(pool).await;
    let owner = &guarded.served.acme.owner.token;
    let unproven = guarded.raw_plan("", REASON).await;
    assert_eq!(
        (unproven.status.as_u16(), unproven.code()),
        (403, "STEP_UP_REQUIRED")
    );

    let wrong = guarded
        .call(
            "POST",
            "/v1/user/step-up",
            owner,
            &json!({"password": "not it at all"}),
        )
        .await;
    assert_eq!(
        (wrong.status.as_u16(), wrong.code()),
        (403, "PASSWORD_WRONG")
    );
    assert_eq!(guarded.raw_plan("", REASON).await.status, 403);

    guarded.step_up(owner).await.data(200);
    for query in ["?a=1", "?reason=x", "?&"] {
        let refused = guarded.raw_plan(query, REASON).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (400, "QUERY_REFUSED"),
            "{query}"
        );
    }
    for reason in [
        "",
        "             ",
        "    short    ",
        "a reason\u{1b}[2J with a sequence",
    ] {
        let refused = guarded.raw_plan("", reason).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (422, "REASON_INVALID")
        );
    }
    assert!(
        guarded.releases().await.is_empty(),
        "nothing was released so far"
    );

    let released = guarded.raw_plan("", REASON).await;
    assert_eq!(released.status, 200);
    assert_eq!(released.bytes, PLAN);
    assert_eq!(released.headers["cache-control"], "private, no-store");
    let told = guarded.releases().await;
    assert_eq!(told.len(), 1);
    assert_eq!(
        (&told[0]["reason"], &told[0]["artifact"], &told[0]["run"]),
        (&json!(REASON), &json!("raw_plan"), &json!(guarded.run))
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_named_request_keeps_neither_a_password_nor_a_plan(pool: PgPool) {
    let guarded = Guarded::new(pool).await;
    let owner = &guarded.served.acme.owner.token;
    for (path, body) in [
        ("/v1/user/step-up".to_owned(), json!({"password": PASSWORD})),
        (
            format!("/v1/runs/{}/raw-plan", guarded.run),
            json!({"reason": REASON}),
        ),
    ] {
        let answer = Call::new("POST", path, owner)
            .json(&body)
            .header("idempotency-key", "once")
            .send(&guarded.served.router)
            .await;
        assert_eq!(answer.status, 200);
    }
    assert_eq!(guarded.served.count("record.answers").await, 0);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_was_not_left_behind_and_what_was_changed_look_the_same(pool: PgPool) {
    let guarded = Guarded::new(pool).await;
    guarded
        .step_up(&guarded.served.acme.owner.token)
        .await
        .data(200);
    let path = format!("/v1/runs/{}/emergency-state", guarded.run);
    let owner = &guarded.served.acme.owner.token;
    let absent = guarded
        .call("POST", &path, owner, &json!({"reason": REASON}))
        .await;
    assert_eq!(absent.status, 404);

    guarded
        .damage("sha256 = decode(repeat('00', 32), 'hex') where kind = 'plan'")
        .await;
    let changed = guarded.raw_plan("", REASON).await;
    assert_eq!(
        (changed.status, &changed.bytes),
        (absent.status, &absent.bytes)
    );
    assert!(guarded.releases().await.is_empty());
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_plan_as_json_is_given_whole_or_refused_in_the_same_words(pool: PgPool) {
    let guarded = Guarded::new(pool).await;
    let reader = &guarded.served.acme.reader.token;
    let whole = guarded.json_output(&guarded.plan_id(), reader).await;
    assert_eq!((whole.status.as_u16(), &whole.bytes[..]), (200, &b"{}"[..]));
    assert_eq!(whole.headers["content-type"], "application/json");
    assert_eq!(whole.headers["cache-control"], "private, no-store");

    let missing = guarded
        .json_output("plan-00000000000000000000000000", reader)
        .await;
    assert_eq!(missing.status, 404);
    let foreign = &guarded.served.umbrella.owner.token;
    let unauthorized = guarded.json_output(&guarded.plan_id(), foreign).await;
    assert_eq!(unauthorized.bytes, missing.bytes);
    for change in [
        "workspace_id = null where kind = 'plan_json'",
        "bytes = 104857601 where kind = 'plan_json'",
        "sha256 = decode(repeat('00', 32), 'hex') where kind = 'plan_json'",
        "kind = 'plan' where kind = 'plan_json'",
    ] {
        guarded.damage(change).await;
        let inconsistent = guarded.json_output(&guarded.plan_id(), reader).await;
        assert_eq!(
            (inconsistent.status, &inconsistent.bytes),
            (missing.status, &missing.bytes),
            "{change}"
        );
    }
}
