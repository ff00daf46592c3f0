//! One organization sees and reaches nothing of another; a role holds below its scope and nowhere
//! else.

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::Role;
use stackship_domain::ids::{ProjectId, UserId, WorkspaceId};
use stackship_domain::run::RunKind;
use stackship_store::clock;
use stackship_store::records::grants::{self, Grant, Scope};
use stackship_store::records::{projects, users, workspaces};

use crate::http::Call;
use crate::world::{World, new_user, new_workspace, origin, token};

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn cursors_belong_to_one_list_of_one_organization(pool: PgPool) {
    let world = World::new(pool).await;
    for _ in 0..3 {
        let run = world.run(RunKind::Speculative).await;
        world.seen_run(run).await;
    }
    let runs = world.acme.path("runs");
    let first = world
        .send("GET", &format!("{runs}?limit=2"), &json!({}))
        .await;
    assert_eq!(first.json["data"].as_array().map(Vec::len), Some(2));
    let cursor = first.json["meta"]["page"]["next_cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    let rest = world
        .send("GET", &format!("{runs}?cursor={cursor}"), &json!({}))
        .await;
    assert_eq!(rest.json["data"].as_array().map(Vec::len), Some(1));
    assert!(rest.json["meta"]["page"]["next_cursor"].is_null());
    let mut forged = cursor.clone().into_bytes();
    forged[30] = if forged[30] == b'A' { b'B' } else { b'A' };
    let forged = String::from_utf8(forged).unwrap();
    let foreign = world.umbrella.path("runs");
    for (path, who) in [
        (format!("{runs}?cursor={forged}"), &world.acme.owner),
        (
            format!("{runs}?status=queued&cursor={cursor}"),
            &world.acme.owner,
        ),
        (format!("{foreign}?cursor={cursor}"), &world.umbrella.owner),
    ] {
        let answer = Call::new("GET", &path, &who.token)
            .send(&world.router)
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, "RUN_LIST_CURSOR_INVALID"),
            "{path}"
        );
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn ids_of_another_organization_name_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let configuration = world.configuration(false).await;
    let umbrella = &world.umbrella;
    let token = &umbrella.owner.token;
    let runs = format!("/v1/workspaces/{}/runs", umbrella.workspace);
    let body = json!({"configuration_version": configuration, "message": "m"});
    let answer = Call::new("POST", runs, token)
        .json(&body)
        .send(&world.router)
        .await;
    assert_eq!(
        (answer.status.as_u16(), answer.code()),
        (422, "CONFIGURATION_UNKNOWN")
    );
    let body = json!({"name": "w", "project": world.acme.project});
    let answer = Call::new("POST", umbrella.path("workspaces"), token)
        .json(&body)
        .send(&world.router)
        .await;
    assert_eq!(answer.status, 404);
    let mine = Call::new("GET", "/v1/organizations", token)
        .send(&world.router)
        .await;
    assert_eq!(mine.json["data"].as_array().map(Vec::len), Some(1));
    assert_eq!(mine.json["data"][0]["name"], "umbrella");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_belongs_to_others_is_refused_like_what_is_nowhere(pool: PgPool) {
    let world = World::new(pool).await;
    let (acme, umbrella) = (&world.acme, &world.umbrella);
    let organization = json!({"kind": "organization"});
    let grant = |user: UserId, scope: Value| json!({"user": user, "role": "owner", "scope": scope});
    let project = |id: ProjectId| json!({"kind": "project", "project": id});
    let workspace = |id: WorkspaceId| json!({"kind": "workspace", "workspace": id});
    let member = umbrella.reader.user;
    let token = |user: UserId| json!({"description": "d", "user": user});
    let cases = [
        (
            "grants",
            grant(acme.reader.user, organization.clone()),
            grant(clock::fresh(), organization),
            "USER_UNKNOWN",
        ),
        (
            "grants",
            grant(member, project(acme.project)),
            grant(member, project(clock::fresh())),
            "SCOPE_UNKNOWN",
        ),
        (
            "grants",
            grant(member, workspace(acme.workspace)),
            grant(member, workspace(clock::fresh())),
            "SCOPE_UNKNOWN",
        ),
        (
            "tokens",
            token(acme.reader.user),
            token(clock::fresh()),
            "TOKEN_INVALID",
        ),
    ];
    let before = world.count("log.events").await;
    for (list, foreign, absent, code) in cases {
        let send = async |body: &Value| {
            Call::new("POST", umbrella.path(list), &umbrella.owner.token)
                .json(body)
                .header("x-request-id", "the-same")
                .send(&world.router)
                .await
        };
        let (foreign, absent) = (send(&foreign).await, send(&absent).await);
        assert_eq!((absent.status.as_u16(), absent.code()), (422, code));
        assert_eq!(
            (foreign.status, &foreign.headers, &foreign.bytes),
            (absent.status, &absent.headers, &absent.bytes)
        );
    }
    assert_eq!(world.count("log.events").await, before);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_login_that_is_taken_elsewhere_is_free_here(pool: PgPool) {
    let world = World::new(pool).await;
    for (tenant, status) in [
        (&world.acme, 201),
        (&world.umbrella, 201),
        (&world.acme, 409),
    ] {
        let body = json!({"login": "ci", "display_name": "The pipeline"});
        let call = Call::new("POST", tenant.path("users"), &tenant.owner.token).json(&body);
        assert_eq!(call.send(&world.router).await.status.as_u16(), status);
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn members_are_listed_by_the_page_and_nobody_else_is(pool: PgPool) {
    let world = World::new(pool).await;
    let users = world.acme.path("users");
    let body = json!({"login": "ci", "display_name": "The pipeline"});
    let made = world.send("POST", &users, &body).await.data(201);
    let acme = &world.acme;
    let mut expected = vec![made["id"].as_str().unwrap().to_owned()];
    for member in [&acme.owner, &acme.operator, &acme.planner, &acme.reader] {
        expected.push(member.user.to_string());
    }
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = format!("{users}?limit=2{cursor}");
        let page = world.send("GET", &page, &json!({})).await.json;
        let rows = page["data"].as_array().unwrap();
        assert!(rows.len() <= 2);
        found.extend(
            rows.iter()
                .map(|row| row["id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["meta"]["page"]["next_cursor"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    expected.sort();
    assert_eq!(found, expected);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_role_in_one_project_holds_there_alone(pool: PgPool) {
    let world = World::new(pool).await;
    let acme = &world.acme;
    let context = origin(acme.owner.user).within(acme.organization);
    let other = projects::create(&world.store, &context, &"data".parse().unwrap())
        .await
        .unwrap();
    let elsewhere = workspaces::create(&world.store, &context, &new_workspace(other, "elsewhere"))
        .await
        .unwrap();
    let user = users::create(&world.store, None, &new_user("guest"))
        .await
        .unwrap();
    let scope = Scope::Project {
        project: acme.project,
    };
    let grant = Grant {
        scope,
        user,
        role: Role::Operator,
    };
    grants::grant(&world.store, &context, grant).await.unwrap();
    let token = token(&world.store, acme.organization, user).await;
    let status = async |method: &str, path: String, body| {
        Call::new(method, path, &token)
            .json(&body)
            .send(&world.router)
            .await
            .status
            .as_u16()
    };
    let here = format!("/v1/workspaces/{}", acme.workspace);
    assert_eq!(status("GET", here.clone(), json!({})).await, 200);
    assert_eq!(status("PATCH", here, json!({"region": "north"})).await, 200);
    assert_eq!(
        status("GET", format!("/v1/workspaces/{elsewhere}"), json!({})).await,
        404
    );
    assert_eq!(
        status("GET", format!("/v1/projects/{other}"), json!({})).await,
        404
    );
    let new = |project: &str| json!({"name": "more", "project": project});
    assert_eq!(
        status("POST", acme.path("workspaces"), new("data")).await,
        404
    );
    assert_eq!(
        status("POST", acme.path("workspaces"), new("default")).await,
        201
    );
    assert_eq!(status("GET", acme.path("projects"), json!({})).await, 404);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn nobody_gets_a_token_that_speaks_for_another_person(pool: PgPool) {
    let world = World::new(pool).await;
    let mut person = new_user("ada");
    person.kind = users::UserKind::Person;
    let person = users::create(&world.store, None, &person).await.unwrap();
    let tokens = world.acme.path("tokens");
    let body = |user| json!({"description": "d", "user": user});
    let refused = world.send("POST", &tokens, &body(person)).await;
    assert_eq!(
        (refused.status.as_u16(), refused.code()),
        (422, "TOKEN_INVALID")
    );
    let service = world.acme.planner.user;
    assert_eq!(
        world.send("POST", &tokens, &body(service)).await.status,
        201
    );
    let call = Call::new("POST", &tokens, &world.acme.operator.token).json(&body(service));
    assert_eq!(call.send(&world.router).await.status, 403);
    let own = world
        .send(
            "DELETE",
            &world
                .acme
                .path(&format!("grants/{}", world.acme.owner.user)),
            &json!({}),
        )
        .await;
    assert_eq!((own.status.as_u16(), own.code()), (422, "GRANT_OWN"));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_revoked_token_opens_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let fresh = world
        .send(
            "POST",
            &world.acme.path("tokens"),
            &json!({"description": "d"}),
        )
        .await
        .data(201);
    let (id, secret) = (
        fresh["id"].as_str().unwrap(),
        fresh["token"].as_str().unwrap(),
    );
    let look = async || {
        Call::new("GET", "/v1/organizations", secret)
            .send(&world.router)
            .await
            .status
            .as_u16()
    };
    assert_eq!(look().await, 200);
    let path = world.acme.path(&format!("tokens/{id}"));
    assert_eq!(world.send("DELETE", &path, &json!({})).await.status, 200);
    assert_eq!(look().await, 401);
    assert_eq!(world.send("DELETE", &path, &json!({})).await.status, 404);
}
