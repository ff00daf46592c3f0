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

pub const PASSWORD: &str = "correct horse battery";
pub const PLAN: &[u8] = b"a plan with a secret in clear";
pub const REASON: &str = "Looking for the drift of ticket 4711";

pub struct Guarded {
    pub served: Served,
    pub run: RunId,
}

impl Guarded {
    /// A run whose plan waits for a person, and an owner with a password.
    pub async fn new(pool: PgPool) -> Self {
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

    pub fn path(&self, kind: &str) -> String {
        format!("/v1/runs/{}/{kind}", self.run)
    }

    async fn call(&self, method: &str, path: &str, token: &str, body: &Value) -> Answer {
        Call::new(method, path, token)
            .json(body)
            .header("content-type", "application/json")
            .send(&self.served.router)
            .await
    }

    pub async fn step_up(&self, token: &str) -> Answer {
        let body = json!({"password": PASSWORD});
        self.call("POST", "/v1/user/step-up", token, &body).await
    }

    pub async fn raw_plan(&self, query: &str, reason: &str) -> Answer {
        let path = format!("{}{query}", self.path("raw-plan"));
        let owner = &self.served.acme.owner.token;
        self.call("POST", &path, owner, &json!({"reason": reason}))
            .await
    }

    pub async fn releases(&self) -> Vec<Value> {
        let told = "select payload from log.events where event_type = 'guarded_artifact_released'";
        sqlx::query_scalar(told)
            .fetch_all(&self.served.owner)
            .await
            .unwrap()
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
async fn what_is_never_kept_takes_no_name(pool: PgPool) {
    let guarded = Guarded::new(pool).await;
    let owner = &guarded.served.acme.owner.token;
    guarded.step_up(owner).await.data(200);
    let raw_plan = format!("/v1/runs/{}/raw-plan", guarded.run);
    for (path, body) in [
        ("/v1/user/step-up".to_owned(), json!({"password": PASSWORD})),
        (raw_plan.clone(), json!({"reason": REASON})),
        (raw_plan, json!({"reason": "another reason altogether"})),
    ] {
        let answer = Call::new("POST", path, owner)
            .json(&body)
            .header("idempotency-key", "once")
            .send(&guarded.served.router)
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, "IDEMPOTENCY_KEY_UNSUPPORTED")
        );
        assert_eq!(answer.json["error"]["details"]["field"], "idempotency-key");
    }
    assert!(guarded.releases().await.is_empty());
    assert_eq!(guarded.served.count("record.answers").await, 0);
}

#[test]
fn the_document_offers_a_name_where_one_is_taken_and_nowhere_else() {
    let document: Value = serde_json::from_str(&stackship_api::openapi_json()).unwrap();
    let takes_name = |path: &str| {
        let parameters = document["paths"][path]["post"]["parameters"].as_array();
        let parameters = parameters.map_or(&[][..], Vec::as_slice);
        parameters
            .iter()
            .any(|parameter| parameter["name"] == "Idempotency-Key")
    };
    assert!(takes_name("/v1/runs/{run}/approve"));
    for path in [
        "/v1/user/step-up",
        "/v1/runs/{run}/raw-plan",
        "/v1/runs/{run}/emergency-state",
        "/v1/workspaces/{workspace}/state-versions/{state}/download",
    ] {
        assert!(document["paths"][path]["post"].is_object(), "{path}");
        assert!(!takes_name(path), "{path}");
    }
}
