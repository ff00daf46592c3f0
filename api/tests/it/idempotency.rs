//! Saying the same thing twice is harmless, and only the same thing.

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_api::v1::{ANSWER_KEPT_SECONDS, IDEMPOTENCY_KEY};
use stackship_domain::ids::UserId;
use stackship_domain::{Role, Sha256Digest};
use stackship_store::clock;
use stackship_store::records::grants::{self, Grant, Scope};
use stackship_store::records::users;

use crate::http::{Answer, Call};
use crate::permissions::Fill;
use crate::permissions::routes::{TABLE, Who};
use crate::world::{World, new_user, origin, token};

async fn named(world: &World, path: &str, token: &str, key: &str, body: &Value) -> Answer {
    let call = Call::new("POST", path, token).json(body);
    call.header(IDEMPOTENCY_KEY, key).send(&world.router).await
}

async fn post(world: &World, path: &str, token: &str, key: &str, body: &Value) -> u16 {
    named(world, path, token, key, body).await.status.as_u16()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_command_said_twice_under_one_key_happens_once(pool: PgPool) {
    let world = World::new(pool).await;
    let workspace = format!("/v1/workspaces/{}", world.acme.workspace);
    let (lock, unlock, key) = (
        format!("{workspace}/lock"),
        format!("{workspace}/unlock"),
        clock::fresh_text(),
    );
    let (owner, operator) = (&world.acme.owner.token, &world.acme.operator.token);
    let nothing = json!({});
    assert_eq!(post(&world, &lock, owner, &key, &nothing).await, 200);
    assert_eq!(
        post(&world, &unlock, owner, &key, &nothing).await,
        200,
        "another route"
    );
    let events = world.count("log.events").await;
    assert_eq!(post(&world, &lock, owner, &key, &nothing).await, 200);
    assert_eq!(
        world.count("log.events").await,
        events,
        "it does not lock again"
    );
    assert_eq!(post(&world, &lock, operator, &key, &nothing).await, 200);
    assert_eq!(
        world.count("log.events").await,
        events + 1,
        "a key is its caller's own"
    );
    assert_eq!(post(&world, &lock, owner, "another", &nothing).await, 409);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn one_run_is_made_of_a_configuration_version(pool: PgPool) {
    let world = World::new(pool).await;
    let configuration = world.configuration(false).await;
    let path = format!("/v1/workspaces/{}/runs", world.acme.workspace);
    let body = json!({"configuration_version": configuration, "message": "Grow"});
    for _ in 0..2 {
        world.send("POST", &path, &body).await;
    }
    assert_eq!(world.count("record.runs").await, 1);
    let others = [
        json!({"message": "Shrink"}),
        json!({"options": {"refresh_only": true}}),
        json!({"variables": [{"key": "size", "value": "2"}]}),
    ];
    for other in others {
        let mut asked = body.clone();
        asked
            .as_object_mut()
            .unwrap()
            .extend(other.as_object().unwrap().clone());
        let call = Call::new("POST", &path, &world.acme.owner.token).json(&asked);
        let answer = call.send(&world.router).await;
        let got = (answer.status.as_u16(), answer.code());
        assert_eq!(got, (409, "CONFIGURATION_USED"), "{asked}");
    }
    let call = Call::new("POST", &path, &world.acme.planner.token).json(&body);
    let other = call.send(&world.router).await;
    assert_eq!(
        (other.status.as_u16(), other.code()),
        (409, "CONFIGURATION_USED")
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_key_has_bounds(pool: PgPool) {
    let world = World::new(pool).await;
    let path = world.acme.path("projects");
    for key in [String::new(), "x".repeat(129)] {
        let call = Call::new("POST", &path, &world.acme.owner.token).header("idempotency-key", key);
        let answer = call
            .json(&json!({"name": "data"}))
            .send(&world.router)
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, "IDEMPOTENCY_KEY_INVALID")
        );
    }
}

/// Every `POST` of acme that creates something, with two bodies and the table that it adds to.
fn creations(world: &World) -> Vec<(String, Value, Value, &'static str)> {
    let acme = &world.acme;
    let of_workspace = |rest: &str| format!("/v1/workspaces/{}/{rest}", acme.workspace);
    let variable = |value: &str| json!({"key": "size", "value": value, "category": "terraform"});
    let grant = |role: &str| json!({"user": acme.reader.user, "role": role, "scope": {"kind": "project", "project": acme.project}});
    vec![
        (
            acme.path("projects"),
            json!({"name": "one"}),
            json!({"name": "two"}),
            "record.projects",
        ),
        (
            acme.path("policy-sets"),
            json!({"name": "one"}),
            json!({"name": "two"}),
            "record.policy_sets",
        ),
        (
            acme.path("workspaces"),
            json!({"name": "one", "project": "default"}),
            json!({"name": "two", "project": "default"}),
            "record.workspaces",
        ),
        (
            of_workspace("variables"),
            variable("1"),
            variable("2"),
            "record.variables",
        ),
        (
            acme.path("users"),
            json!({"login": "ci", "display_name": "One"}),
            json!({"login": "ci", "display_name": "Two"}),
            "record.users",
        ),
        (
            acme.path("grants"),
            grant("planner"),
            grant("operator"),
            "record.role_grants",
        ),
        (
            acme.path("tokens"),
            json!({"description": "one"}),
            json!({"description": "two"}),
            "record.tokens",
        ),
        (
            of_workspace("configuration-versions"),
            json!({}),
            json!({"speculative": true}),
            "record.configuration_versions",
        ),
    ]
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn whatever_is_created_under_one_key_is_created_once(pool: PgPool) {
    let world = World::new(pool).await;
    let token = &world.acme.owner.token;
    for (path, body, other, table) in creations(&world) {
        let before = world.count(table).await;
        let first = named(&world, &path, token, "k", &body).await;
        assert_eq!(first.status, 201, "{path}: {}", first.json);
        let again = named(&world, &path, token, "k", &body).await;
        assert_eq!(again.status, 201, "{path}: {}", again.json);
        let mut expected = first.json.clone();
        if path.ends_with("/tokens") {
            expected["data"]["token"] = Value::Null;
        }
        assert_eq!(again.json, expected, "{path}");
        let reused = named(&world, &path, token, "k", &other).await;
        assert_eq!(
            (reused.status.as_u16(), reused.code()),
            (422, "IDEMPOTENCY_KEY_REUSED"),
            "{path}"
        );
        assert_eq!(world.count(table).await, before + 1, "{path}");
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_secret_of_a_token_is_kept_nowhere(pool: PgPool) {
    let world = World::new(pool).await;
    let (path, body) = (world.acme.path("tokens"), json!({"description": "d"}));
    let first = named(&world, &path, &world.acme.owner.token, "k", &body).await;
    let secret = first.json["data"]["token"].as_str().unwrap();
    let kept: Vec<String> = sqlx::query_scalar("select answer from record.answers")
        .fetch_all(&world.owner)
        .await
        .unwrap();
    assert_eq!(kept.len(), 1);
    assert!(!kept[0].contains(secret), "{}", kept[0]);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_key_is_its_callers_own_in_one_organization(pool: PgPool) {
    let world = World::new(pool).await;
    let body = json!({"description": "d"});
    let before = world.count("record.tokens").await;
    for (tenant, who) in [
        (&world.acme, &world.acme.owner),
        (&world.acme, &world.acme.reader),
        (&world.umbrella, &world.umbrella.owner),
    ] {
        let answer = named(&world, &tenant.path("tokens"), &who.token, "k", &body).await;
        assert!(answer.json["data"]["token"].is_string(), "{}", answer.json);
    }
    assert_eq!(world.count("record.tokens").await, before + 3);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_was_refused_may_be_tried_again_under_its_key(pool: PgPool) {
    let world = World::new(pool).await;
    let (path, token) = (world.acme.path("workspaces"), &world.acme.owner.token);
    let body = json!({"name": "w", "project": "data"});
    assert_eq!(post(&world, &path, token, "k", &body).await, 404);
    assert_eq!(world.count("record.answers").await, 0);
    let projects = world.acme.path("projects");
    let project = json!({"name": "data"});
    world.send("POST", &projects, &project).await.data(201);
    assert_eq!(post(&world, &path, token, "k", &body).await, 201);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn requests_at_the_same_time_under_one_key_create_one_thing(pool: PgPool) {
    let world = World::new(pool).await;
    let (path, token) = (world.acme.path("tokens"), &world.acme.owner.token);
    let body = json!({"description": "d"});
    let before = world.count("record.tokens").await;
    let both = futures::future::join_all((0..4).map(|_| named(&world, &path, token, "k", &body)));
    for answer in both.await {
        let is_busy = answer.code() == "IDEMPOTENCY_KEY_BUSY" && answer.status == 409;
        assert!(is_busy || answer.status == 201, "{}", answer.json);
    }
    assert_eq!(world.count("record.tokens").await, before + 1);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_request_whose_answer_is_gone_is_not_carried_out_again(pool: PgPool) {
    let world = World::new(pool).await;
    let (path, token) = (world.acme.path("tokens"), &world.acme.owner.token);
    let body = json!({"description": "d"});
    // The server died before it could keep the answer, or it was kept for as long as answers are.
    let died = "update record.answers set status = null, answer = null, claimed_at = claimed_at - interval '1 hour'";
    let old = format!(
        "update record.answers set claimed_at = claimed_at - make_interval(secs => {ANSWER_KEPT_SECONDS})"
    );
    for (key, fate) in [("died", died), ("old", &old)] {
        let first = named(&world, &path, token, key, &body).await;
        let before = world.count("record.tokens").await;
        sqlx::query(fate).execute(&world.owner).await.unwrap();
        let again = named(&world, &path, token, key, &body).await;
        assert_eq!(
            (again.status.as_u16(), again.code()),
            (409, "IDEMPOTENCY_ANSWER_LOST")
        );
        let done = &again.json["error"]["details"]["done"];
        assert_eq!(done["token"], first.json["data"]["id"]);
        assert_eq!(world.count("record.tokens").await, before);
        assert_eq!(world.count("record.answers").await, 0, "{key}");
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_approval_under_the_key_of_another_is_refused(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, _) = world.run_that_asks().await;
    let seen = world.seen_run(run).await;
    let (path, token) = (format!("/v1/runs/{run}/approve"), &world.acme.owner.token);
    let reviewed = json!({"binding_digest": seen["approval"]["binding_digest"]});
    let other = json!({"binding_digest": Sha256Digest::of(b"another plan")});
    // The read models may be behind, which is no answer that is kept.
    let first = post(&world, &path, token, "k", &reviewed).await;
    assert!([200, 503].contains(&first), "{first}");
    world.seen_run(run).await;
    assert_eq!(post(&world, &path, token, "k", &reviewed).await, 200);
    let refused = named(&world, &path, token, "k", &other).await;
    assert_eq!(refused.code(), "IDEMPOTENCY_KEY_REUSED");
}

/// What the same request gets, byte for byte.
async fn said(world: &World, path: &str, token: &str, key: &str, body: &Value) -> (u16, Vec<u8>) {
    let answer = named(world, path, token, key, body).await;
    assert!(answer.headers.get("idempotency-replayed").is_none());
    (answer.status.as_u16(), answer.bytes.to_vec())
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn who_has_lost_the_right_gets_no_kept_answer(pool: PgPool) {
    let world = World::new(pool).await;
    let (acme, scope) = (&world.acme, Scope::Organization);
    let context = origin(acme.owner.user).within(acme.organization);
    let as_reader = |user| Grant {
        scope,
        user,
        role: Role::Reader,
    };
    let [reader, nobody, other] = ["only-reads", "has-no-role", "owns-too"].map(new_user);
    let other = users::create(&world.store, None, &other).await.unwrap();
    let owns_too = Grant {
        role: Role::Owner,
        ..as_reader(other)
    };
    grants::grant(&world.store, &context, owns_too)
        .await
        .unwrap();
    let reader = users::create(&world.store, None, &reader).await.unwrap();
    let nobody = users::create(&world.store, None, &nobody).await.unwrap();
    grants::grant(&world.store, &context, as_reader(reader))
        .await
        .unwrap();
    // What a user asks for about themselves needs no right that could be lost.
    let asked = creations(&world)
        .into_iter()
        .filter(|(path, ..)| !path.ends_with("/tokens"));
    let robot = json!({"login": "robot", "display_name": "Robot"});
    let robot = named(
        &world,
        &acme.path("users"),
        &acme.owner.token,
        "robot",
        &robot,
    )
    .await;
    let for_robot = json!({"description": "d", "user": robot.json["data"]["id"]});
    let token_for_robot = (acme.path("tokens"), for_robot.clone(), for_robot, "");
    let asked: Vec<_> = asked.chain([token_for_robot]).collect();
    for (path, body, ..) in &asked {
        let first = named(&world, path, &acme.owner.token, "k", body).await;
        assert_eq!(first.status, 201, "{path}: {}", first.json);
    }
    // One of them still is carried out, as far as anybody knows.
    let busy = "update record.answers set status = null, answer = null \
        where request in (select request from record.answers limit 1)";
    sqlx::query(busy).execute(&world.owner).await.unwrap();

    for (other, status) in [(reader, 403), (nobody, 404)] {
        let owner = acme.owner.user;
        grants::revoke(&world.store, &context, scope, owner)
            .await
            .unwrap();
        if other == reader {
            grants::grant(&world.store, &context, as_reader(owner))
                .await
                .unwrap();
        }
        let other = token(&world.store, acme.organization, other).await;
        for (path, body, ..) in &asked {
            let lost = said(&world, path, &acme.owner.token, "k", body).await;
            assert_eq!(lost.0, status, "{path}");
            let never_had = said(&world, path, &other, "k", body).await;
            assert_eq!(lost, never_had, "{path}");
        }
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_revoked_token_gets_no_kept_answer(pool: PgPool) {
    let world = World::new(pool).await;
    let (path, body) = (world.acme.path("tokens"), json!({"description": "d"}));
    let first = named(&world, &path, &world.acme.owner.token, "k", &body).await;
    let fresh = first.json["data"]["token"].as_str().unwrap();
    assert_eq!(post(&world, &path, fresh, "k", &body).await, 201);
    let id = first.json["data"]["id"].as_str().unwrap();
    let revoked = world
        .send("DELETE", &format!("{path}/{id}"), &json!({}))
        .await;
    assert_eq!(revoked.status, 200);
    assert_eq!(post(&world, &path, fresh, "k", &body).await, 401);
    assert_eq!(
        post(&world, &path, &world.acme.owner.token, "k", &body).await,
        201
    );
}

/// Keeps an answer for a request, as if its caller had sent it when it still could.
async fn keep(world: &World, user: UserId, path: &str, body: &Value) {
    let name = Sha256Digest::of(format!("{user}\nPOST {path}\nk").as_bytes());
    let body = Sha256Digest::of(body.to_string().as_bytes());
    sqlx::query(
        "insert into record.answers (organization_id, request, body_sha256, status, answer) \
         values ($1, $2, $3, 200, '{\"data\":\"kept\"}')",
    )
    .bind(world.acme.organization.to_string())
    .bind(name.to_string())
    .bind(body.as_bytes().as_slice())
    .execute(&world.owner)
    .await
    .unwrap();
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn no_route_gives_a_kept_answer_to_who_may_not_ask(pool: PgPool) {
    let world = World::new(pool).await;
    let (fill, reader) = (Fill::new(&world).await, &world.acme.reader);
    let mut routes = 0;
    for (method, template, who) in TABLE {
        let (permission, refused) = match who {
            Who::May(permission, _) => (permission, 403),
            Who::Guarded(permission) => (permission, 404),
            _ => continue,
        };
        if *method != "POST" || !template.starts_with("/v1/") || Role::Reader.grants(*permission) {
            continue;
        }
        let (path, body) = (fill.path(template).await, fill.body(template).await);
        keep(&world, reader.user, &path, &body).await;
        let ordinary = Call::new("POST", &path, &reader.token).json(&body);
        let ordinary = ordinary.send(&world.router).await;
        let repeated = said(&world, &path, &reader.token, "k", &body).await;
        let expected = (ordinary.status.as_u16(), ordinary.bytes.to_vec());
        assert_eq!(repeated, expected, "{template}");
        assert_eq!(repeated.0, refused, "{template}");
        routes += 1;
    }
    assert!(routes > 10, "{routes} routes were tried");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_kept_answer_is_found_by_who_may_ask(pool: PgPool) {
    let world = World::new(pool).await;
    let (path, body) = (world.acme.path("projects"), json!({"name": "one"}));
    keep(&world, world.acme.owner.user, &path, &body).await;
    let kept = named(&world, &path, &world.acme.owner.token, "k", &body).await;
    assert_eq!(kept.json["data"], "kept");
}
