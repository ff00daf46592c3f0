//! Each part of the evidence is changed, one at a time, behind the product's back.

use std::path::PathBuf;

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::ids::RunId;
use stackship_domain::run::{EvidencePart, Status};
use stackship_workflow::leasing;

use super::{asked, binding, events_of};
use crate::recovery::world::{Doubtful, LINEAGE, REASON};
use crate::v2::http::send;
use crate::v2::world::Served;
use crate::world::until;

const PARTS: [EvidencePart; 4] = [
    EvidencePart::Plan,
    EvidencePart::Policy,
    EvidencePart::Predecessor,
    EvidencePart::Dependencies,
];
const LEASE_SECONDS: u32 = 600;

/// What was changed, to be changed back.
enum Changed {
    File(PathBuf),
    Head(Option<String>),
}

impl Changed {
    async fn of(world: &Served, part: EvidencePart) -> Self {
        let kind = match part {
            EvidencePart::Plan => "plan",
            EvidencePart::Policy => "policy_result",
            EvidencePart::Dependencies => "lock_file",
            EvidencePart::Predecessor => {
                let head = head(world).await;
                assert!(head.is_some(), "a state to take away");
                set_head(world, None).await;
                return Self::Head(head);
            }
            other => panic!("{other} is not changed here"),
        };
        let newest = "select storage_key from record.objects where kind = $1 \
            order by created_at desc limit 1";
        let key: String = sqlx::query_scalar(newest)
            .bind(kind)
            .fetch_one(&world.owner)
            .await
            .unwrap();
        let path = world.objects().join(key);
        change_a_byte(&path);
        Self::File(path)
    }

    async fn back(self, world: &Served) {
        match self {
            Self::File(path) => change_a_byte(&path),
            Self::Head(head) => set_head(world, head).await,
        }
    }
}

fn change_a_byte(path: &PathBuf) {
    let mut bytes = std::fs::read(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(path, bytes).unwrap();
}

async fn head(world: &Served) -> Option<String> {
    let query = "select current_state_version_id from record.workspaces where workspace_id = $1";
    let query = sqlx::query_scalar(query).bind(world.acme.workspace.to_string());
    query.fetch_one(&world.owner).await.unwrap()
}

async fn set_head(world: &Served, head: Option<String>) {
    let query =
        "update record.workspaces set current_state_version_id = $2 where workspace_id = $1";
    let query = sqlx::query(query).bind(world.acme.workspace.to_string());
    query.bind(head).execute(&world.owner).await.unwrap();
}

/// An installation whose workspace has a state.
async fn with_state(pool: PgPool) -> Served {
    let world = Served::new(pool).await;
    let first = Doubtful::with_states(&world, &[(1, LINEAGE)]).await;
    assert_eq!(first.decide(&world, "adopt", REASON).await.status, 200);
    first.until_unlocked(&world).await;
    world
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn whatever_changes_under_a_waiting_question_is_named_and_not_approved(pool: PgPool) {
    let world = with_state(pool).await;
    let run = asked(&world).await;
    let body = binding(&world, run).await;
    let path = format!("/v1/runs/{run}/approve");
    let terminal = format!("{}/api/v2/runs/{run}/actions/apply", world.url);
    for part in PARTS {
        let changed = Changed::of(&world, part).await;
        let refused = world.send("POST", &path, &body).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (409, "RUN_EVIDENCE_STALE"),
            "{part}"
        );
        assert_eq!(
            refused.json["error"]["details"],
            json!({"part": part.as_str()})
        );
        let refused = send("POST", &terminal, &world.acme.operator.token, "{}").await;
        assert_eq!(refused.status, 409, "{part}");
        assert!(
            refused.refusal().contains(part.as_str()),
            "{}",
            refused.refusal()
        );
        changed.back(&world).await;
    }
    assert!(events_of(&world, run, "run_approved").await.is_empty());
    let approved = world.send("POST", &path, &body).await;
    assert_eq!(approved.data(200)["status"], "approved", "as it was");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn whatever_changes_after_an_approval_is_named_and_not_applied(pool: PgPool) {
    let world = with_state(pool).await;
    for part in PARTS {
        let run = asked(&world).await;
        let body = binding(&world, run).await;
        let path = format!("/v1/runs/{run}/approve");
        assert_eq!(world.send("POST", &path, &body).await.status, 200);
        let changed = Changed::of(&world, part).await;
        until_refused(&world, run).await;
        let seen = world.seen_run(run).await;
        assert_eq!(seen["ended"]["reason"], "apply_refused", "{seen:#}");
        let detail = seen["ended"]["detail"].as_str().unwrap();
        assert!(detail.starts_with(part.as_str()), "{detail}");
        changed.back(&world).await;
        assert_nothing_was_started(&world, run).await;
    }
}

/// Asks for work as a runner does, and gets none.
async fn until_refused(world: &Served, run: RunId) {
    until("the apply is refused", async || {
        let leased = leasing::lease(
            &world.store,
            world.runner,
            "local",
            "linux_amd64",
            LEASE_SECONDS,
        );
        assert!(leased.await.unwrap().is_none(), "it was handed out");
        let review = world.review(run).await;
        review.is_some_and(|review| review.status == Status::Failed)
    })
    .await;
}

async fn assert_nothing_was_started(world: &Served, run: RunId) {
    let query = "select count(*) from record.attempts where run_id = $1 and phase = 'apply' \
        and (tofu_started_at is not null or closed_at is null)";
    let query = sqlx::query_scalar::<_, i64>(query).bind(run.to_string());
    assert_eq!(query.fetch_one(&world.owner).await.unwrap(), 0);
    let path = format!("/v1/workspaces/{}", world.acme.workspace);
    until("the lock is released", async || {
        let detail = world.send("GET", &path, &Value::Null).await;
        detail.data(200)["lock"].is_null()
    })
    .await;
}
