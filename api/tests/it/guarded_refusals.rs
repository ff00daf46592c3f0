//! Whoever may not download, and whoever may and finds nothing, get the same bytes. What a request lacks is
//! told to those alone who may.

use std::path::Path;

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::Role;
use stackship_domain::ids::ObjectId;
use stackship_store::clock;
use stackship_store::objects::{NewObject, ObjectKind};
use stackship_store::records::grants::{self, Grant, Scope};
use stackship_store::records::passwords::{self, Password};
use stackship_store::records::{users, workspaces};
use stackship_store::states;

use crate::guarded::{Guarded, PASSWORD, REASON};
use crate::http::{Answer, Call};
use crate::recovery::world::Doubtful;
use crate::v2::edge::create_run;
use crate::v2::world::Served;
use crate::world::{Member, new_user, new_workspace, origin, token};

/// The routes of a run, and the object behind each.
struct Route {
    name: &'static str,
    path: String,
    object: ObjectId,
}

/// What may be wrong with an object's row, each by what is changed.
const CHANGES: [&str; 7] = [
    "workspace_id = null",
    "kind = 'policy_input'",
    "bytes = bytes + 1",
    "sha256 = decode(repeat('00', 32), 'hex')",
    "wrapped_key = decode(repeat('00', 60), 'hex')",
    "key_id = 'none'",
    "storage_key = storage_key || 'x'",
];

/// Everything that everybody sees of an answer, but the name of the request.
fn told(answer: Answer) -> (StatusCode, HeaderMap, Vec<u8>) {
    let mut headers = answer.headers;
    headers.remove("x-request-id");
    (answer.status, headers, answer.bytes.to_vec())
}

async fn ask(served: &Served, path: &str, token: &str) -> Answer {
    let call = Call::new("POST", path, token).json(&json!({"reason": REASON}));
    call.send(&served.router).await
}

async fn prove(served: &Served, member: &Member) {
    let context = origin(member.user).within(served.acme.organization);
    let password = Password::new(PASSWORD.to_owned()).unwrap();
    passwords::set(&served.store, &context, member.user, password)
        .await
        .unwrap();
    let proof = json!({"password": PASSWORD});
    let call = Call::new("POST", "/v1/user/step-up", &member.token).json(&proof);
    call.send(&served.router).await.data(200);
}

/// An owner of another workspace, who sees nothing here.
async fn owner_elsewhere(served: &Served) -> Member {
    let acme = &served.acme;
    let context = origin(acme.owner.user).within(acme.organization);
    let new = new_workspace(acme.project, "elsewhere");
    let workspace = workspaces::create(&served.store, &context, &new)
        .await
        .unwrap();
    let user = users::create(&served.store, None, &new_user(&clock::fresh_text()))
        .await
        .unwrap();
    let grant = Grant {
        scope: Scope::Workspace { workspace },
        user,
        role: Role::Owner,
    };
    let context = origin(acme.owner.user).within(acme.organization);
    grants::grant(&served.store, &context, grant).await.unwrap();
    let token = token(&served.store, acme.organization, user).await;
    Member { user, token }
}

/// Asserts that every way to be refused looks the same on these routes of this run.
async fn assert_all_the_same(served: &Served, routes: &[Route]) {
    let acme = &served.acme;
    let elsewhere = owner_elsewhere(served).await;
    // Everybody has shown who they are: nobody is refused for that.
    for member in [
        &acme.owner,
        &acme.operator,
        &acme.planner,
        &acme.reader,
        &elsewhere,
    ] {
        prove(served, member).await;
    }
    let owner = &acme.owner.token;
    let absent = "/v1/runs/run-00000000000000000000000000/raw-plan";
    let expected = told(ask(served, absent, owner).await);
    assert_eq!(expected.0, 404);
    for Route { name, path, object } in routes {
        assert_eq!(
            ask(served, path, owner).await.status,
            200,
            "{name} is there"
        );
        for (who, token) in [
            ("an operator", &acme.operator.token),
            ("a planner", &acme.planner.token),
            ("a reader", &acme.reader.token),
            ("an owner of another workspace", &elsewhere.token),
            ("another organization", &served.umbrella.owner.token),
        ] {
            assert_eq!(
                told(ask(served, path, token).await),
                expected,
                "{name}: {who}"
            );
            let lacking = Call::new("POST", format!("{path}?a=1"), token).json(&json!({}));
            let lacking = lacking.send(&served.router).await;
            assert_eq!(
                told(lacking),
                expected,
                "{name}: {who}, and wrong in more than one way"
            );
        }
        let file = served.object_file(*object).await;
        for change in CHANGES {
            damage(served, *object, change).await;
            assert_eq!(
                told(ask(served, path, owner).await),
                expected,
                "{name}: {change}"
            );
            undo(served).await;
        }
        for (what, damage) in [
            ("a cut file", cut as fn(&Path)),
            ("another frame", tamper),
            ("no file", remove),
        ] {
            let kept = std::fs::read(&file).unwrap();
            damage(&file);
            assert_eq!(
                told(ask(served, path, owner).await),
                expected,
                "{name}: {what}"
            );
            std::fs::write(&file, kept).unwrap();
        }
        assert_eq!(
            ask(served, path, owner).await.status,
            200,
            "{name} is there again"
        );
    }
}

async fn damage(served: &Served, object: ObjectId, change: &str) {
    let statements = format!(
        "drop table if exists kept_objects; create table kept_objects as table record.objects; \
         update record.objects set {change} where object_id = '{object}'"
    );
    sqlx::raw_sql(&statements)
        .execute(&served.owner)
        .await
        .unwrap();
}

async fn undo(served: &Served) {
    let statement = "update record.objects o \
        set (workspace_id, kind, bytes, sha256, wrapped_key, key_id, storage_key) = \
            (k.workspace_id, k.kind, k.bytes, k.sha256, k.wrapped_key, k.key_id, k.storage_key) \
        from kept_objects k where k.object_id = o.object_id";
    sqlx::raw_sql(statement)
        .execute(&served.owner)
        .await
        .unwrap();
}

fn cut(file: &Path) {
    let bytes = std::fs::read(file).unwrap();
    std::fs::write(file, &bytes[..bytes.len() - 1]).unwrap();
}

fn tamper(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(file, bytes).unwrap();
}

fn remove(file: &Path) {
    std::fs::remove_file(file).unwrap();
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn every_refusal_of_a_raw_plan_has_the_same_bytes(pool: PgPool) {
    let guarded = Guarded::new(pool).await;
    let served = &guarded.served;
    let review = served.review(guarded.run).await.unwrap();
    let route = Route {
        name: "raw_plan",
        path: guarded.path("raw-plan"),
        object: review.plan.record.unwrap().plan_object,
    };
    assert_all_the_same(served, &[route]).await;
    let owner = &served.acme.owner.token;
    let expected = told(ask(served, "/v1/runs/run-0/raw-plan", owner).await);
    let unplanned = create_run(served, true).await;
    let run_token = served.lease().await.run_token;
    let unplanned = format!("/v1/runs/{unplanned}/raw-plan");
    assert_eq!(
        told(ask(served, &unplanned, owner).await),
        expected,
        "not planned yet"
    );
    let path = guarded.path("emergency-state");
    assert_eq!(
        told(ask(served, &path, owner).await),
        expected,
        "nothing was left behind"
    );
    let path = guarded.path("raw-plan");
    assert_eq!(
        told(ask(served, &path, &run_token).await),
        expected,
        "a run's token"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn every_refusal_of_an_emergency_state_and_of_a_state_has_the_same_bytes(pool: PgPool) {
    let served = Served::new(pool).await;
    let doubtful = Doubtful::with_states(&served, &[(1, "lin")]).await;
    let review = served.review(doubtful.run).await.unwrap();
    let staged = review.apply.emergency.unwrap().staged.unwrap();
    let organization = served.acme.organization;
    let row = states::by_id(&served.store, organization, staged.version).await;
    let object = row.unwrap().unwrap().object.unwrap();
    let emergency = Route {
        name: "emergency_state",
        path: format!("/v1/runs/{}/emergency-state", doubtful.run),
        object,
    };
    assert_all_the_same(&served, &[emergency]).await;

    doubtful.decide(&served, "adopt", REASON).await.data(200);
    let workspace = served.acme.workspace;
    let of_state =
        |state: &str| format!("/v1/workspaces/{workspace}/state-versions/{state}/download");
    let path = of_state(&staged.version.to_string());
    let owner = &served.acme.owner.token;
    let expected = told(ask(&served, "/v1/runs/run-0/raw-plan", owner).await);
    for none in ["sv-0", "sv-00000000000000000000000000"] {
        assert_eq!(
            told(ask(&served, &of_state(none), owner).await),
            expected,
            "{none}"
        );
    }
    let reader = &served.acme.reader.token;
    for token in [reader, &served.umbrella.owner.token] {
        assert_eq!(told(ask(&served, &path, token).await), expected);
    }
    for change in CHANGES {
        damage(&served, object, change).await;
        assert_eq!(told(ask(&served, &path, owner).await), expected, "{change}");
        undo(&served).await;
    }
    assert_eq!(ask(&served, &path, owner).await.status, 200);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn who_may_download_is_told_what_the_request_lacks(pool: PgPool) {
    let guarded = Guarded::new(pool).await;
    let (served, owner) = (&guarded.served, &guarded.served.acme.owner.token);
    for kind in ["raw-plan", "emergency-state"] {
        let path = guarded.path(kind);
        let send = async |query: &str, body: Value| {
            let call = Call::new("POST", format!("{path}{query}"), owner).json(&body);
            let answer = call.send(&served.router).await;
            (answer.status.as_u16(), answer.code().to_owned())
        };
        let told = |status: u16, code: &str| (status, code.to_owned());
        let said = json!({"reason": REASON});
        sqlx::raw_sql("delete from record.step_ups")
            .execute(&served.owner)
            .await
            .unwrap();
        assert_eq!(send("", said.clone()).await, told(403, "STEP_UP_REQUIRED"));
        guarded.step_up(owner).await.data(200);
        assert_eq!(send("?a", said.clone()).await, told(400, "QUERY_REFUSED"));
        assert_eq!(send("", json!({})).await, told(400, "BODY_INVALID"));
        let short = json!({"reason": "short"});
        assert_eq!(send("", short).await, told(422, "REASON_INVALID"));
    }
}

/// The rows say where the bytes of a state are; what they have to be, the log says.
#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_state_that_every_row_was_changed_for_is_not_the_one_that_the_log_tells_of(pool: PgPool) {
    let served = Served::new(pool).await;
    let doubtful = Doubtful::with_states(&served, &[(1, "lin")]).await;
    let owner = &served.acme.owner;
    prove(&served, owner).await;
    let emergency = format!("/v1/runs/{}/emergency-state", doubtful.run);
    assert_eq!(ask(&served, &emergency, &owner.token).await.status, 200);
    forge(&served).await;
    let absent = "/v1/runs/run-00000000000000000000000000/emergency-state";
    assert_eq!(
        told(ask(&served, &emergency, &owner.token).await),
        told(ask(&served, absent, &owner.token).await)
    );
    let path = format!("/v1/runs/{}/review", doubtful.run);
    let seen = served.send("GET", &path, &Value::Null).await.data(200);
    let kind = &seen["downloads"][3]["availability"]["kind"];
    assert_eq!(kind, "unavailable", "{seen:#}");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_published_state_that_every_row_was_changed_for_is_unavailable(pool: PgPool) {
    let served = Served::new(pool).await;
    let doubtful = Doubtful::with_states(&served, &[(1, "lin")]).await;
    doubtful.decide(&served, "adopt", REASON).await.data(200);
    let path = format!("/v1/runs/{}/review", doubtful.run);
    let shown = async || {
        let seen = served.send("GET", &path, &Value::Null).await.data(200);
        let published = seen["stages"]["apply"]["published"].clone();
        (
            published,
            seen["downloads"][4]["availability"]["kind"].clone(),
        )
    };
    let (published, download) = shown().await;
    assert_eq!(
        (&published["kind"], &published["value"]["serial"], &download),
        (&json!("recorded"), &json!(1), &json!("available"))
    );
    forge(&served).await;
    let unavailable = json!("unavailable");
    assert_eq!(shown().await, (json!({"kind": unavailable}), unavailable));
}

/// Puts other bytes in the place of every state, and makes all rows agree about them.
async fn forge(served: &Served) {
    let new = NewObject {
        organization: served.acme.organization,
        workspace: Some(served.acme.workspace),
        kind: ObjectKind::State,
        bytes_max: 1024,
    };
    let forged = served
        .store
        .objects
        .put_bytes(new, b"{\"forged\":true}")
        .await;
    let forged = forged.unwrap();
    let statements = format!(
        "alter table record.state_versions disable trigger user; \
         update record.state_versions set object_id = '{}', bytes = {}, sha256 = decode('{}', 'hex'); \
         alter table record.state_versions enable trigger user",
        forged.id, forged.bytes, forged.sha256
    );
    sqlx::raw_sql(&statements)
        .execute(&served.owner)
        .await
        .unwrap();
}
