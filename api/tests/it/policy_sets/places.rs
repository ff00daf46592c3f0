//! Where policy sets apply, and who decides that.

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::Role;
use stackship_store::clock;
use stackship_store::records::grants::{self, Grant, Scope};
use stackship_store::records::users;

use crate::http::Call;
use crate::world::{World, new_user, origin, token};

fn organization() -> Value {
    json!({"kind": "organization"})
}

impl World {
    fn project_scope(&self) -> Value {
        json!({"kind": "project", "project": self.acme.project})
    }

    fn workspace_scope(&self) -> Value {
        json!({"kind": "workspace", "workspace": self.acme.workspace})
    }

    /// Names and scopes of what applies to acme's workspace, as its reader sees it.
    async fn applying(&self) -> Vec<(String, Vec<Value>)> {
        let path = format!("/v1/workspaces/{}/policy-sets", self.acme.workspace);
        let call = Call::new("GET", path, &self.acme.reader.token);
        let rows = call.send(&self.router).await.data(200);
        let row = |row: &Value| {
            let name = row["name"].as_str().unwrap().to_owned();
            (name, row["scopes"].as_array().unwrap().clone())
        };
        rows.as_array().unwrap().iter().map(row).collect()
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_set_applies_below_the_place_where_it_is_attached(pool: PgPool) {
    let world = World::new(pool).await;
    let projects = world.acme.path("projects");
    let other = world
        .send("POST", &projects, &json!({"name": "data"}))
        .await
        .data(201);
    let other = json!({"kind": "project", "project": other["id"]});
    let (project, here) = (world.project_scope(), world.workspace_scope());
    let mut sets = Vec::new();
    for name in ["everywhere", "project", "here", "elsewhere"] {
        sets.push(world.policies(name).await);
    }
    for (set, scope) in [
        (0, organization()),
        (0, here.clone()),
        (1, project.clone()),
        (2, here.clone()),
        (3, other),
    ] {
        let attached = world
            .place("attachments", &sets[set], &scope)
            .await
            .data(201);
        assert_eq!(attached["scope"], scope);
        assert_eq!(attached["attached_by"], world.acme.owner.user.to_string());
    }
    let again = world.place("attachments", &sets[2], &here).await;
    assert_eq!(again.status, 200, "{}", again.json);
    let everywhere = ("everywhere".to_owned(), vec![organization(), here.clone()]);
    let rest = [
        ("project".to_owned(), vec![project]),
        ("here".to_owned(), vec![here.clone()]),
    ];
    assert_eq!(world.applying().await, [&[everywhere][..], &rest].concat());
    let path = format!("/v1/policy-sets/{}/attachments", sets[0]);
    let listed = world.send("GET", &path, &json!({})).await.data(200);
    let scopes: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["scope"])
        .collect();
    assert_eq!(scopes, [&organization(), &here]);
    let gone = world
        .place("detach", &sets[0], &organization())
        .await
        .data(200);
    assert_eq!(gone["scope"], organization());
    let absent = world.place("detach", &sets[0], &organization()).await;
    assert_eq!((absent.status.as_u16(), absent.code()), (404, "NOT_FOUND"));
    let everywhere = ("everywhere".to_owned(), vec![here]);
    assert_eq!(world.applying().await, [&[everywhere][..], &rest].concat());
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_set_is_archived_when_it_applies_nowhere(pool: PgPool) {
    let world = World::new(pool).await;
    let empty = world.policy_set("empty").await;
    let refused = world.place("attachments", &empty, &organization()).await;
    assert_eq!(
        (refused.status.as_u16(), refused.code()),
        (409, "POLICY_SET_EMPTY")
    );
    let set = world.policies("baseline").await;
    world
        .place("attachments", &set, &organization())
        .await
        .data(201);
    let path = format!("/v1/policy-sets/{set}/archive");
    let reason = json!({"reason": "nobody needs it any more"});
    let refused = world.send("POST", &path, &reason).await;
    assert_eq!(
        (refused.status.as_u16(), refused.code()),
        (409, "POLICY_SET_ATTACHED")
    );
    world.place("detach", &set, &organization()).await.data(200);
    let archived = world.send("POST", &path, &reason).await.data(200);
    assert!(archived["archived_at"].is_string(), "{archived}");
    assert_eq!(world.send("POST", &path, &reason).await.data(200), archived);
    let attached = world.place("attachments", &set, &organization()).await;
    let uploaded = world.upload(&set, vec![]).await;
    for refused in [attached, uploaded] {
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (409, "POLICY_SET_ARCHIVED")
        );
    }
    let files = format!("/v1/policy-sets/{set}/versions/1/files");
    world.send("GET", &files, &json!({})).await.data(200);
    assert_ne!(world.policy_set("baseline").await, set);
    let taken = world.acme.path("policy-sets");
    let taken = world
        .send("POST", &taken, &json!({"name": "baseline"}))
        .await;
    assert_eq!((taken.status.as_u16(), taken.code()), (409, "NAME_TAKEN"));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn attaching_detaching_and_archiving_take_a_reason_that_is_kept(pool: PgPool) {
    let world = World::new(pool).await;
    let set = world.policies("baseline").await;
    let before = world.count("log.events").await;
    for reason in ["short", "          ", "tells\u{7} a bell apart"] {
        for verb in ["attachments", "detach", "archive"] {
            let mut body = json!({"reason": reason});
            if verb != "archive" {
                body["scope"] = organization();
            }
            let refused = world
                .send("POST", &format!("/v1/policy-sets/{set}/{verb}"), &body)
                .await;
            assert_eq!(
                (refused.status.as_u16(), refused.code()),
                (422, "REASON_INVALID")
            );
        }
    }
    assert_eq!(world.count("log.events").await, before);
    world
        .place("attachments", &set, &world.workspace_scope())
        .await
        .data(201);
    let told: (Value, Value) = sqlx::query_as(
        "select payload, metadata from log.events where event_type = 'policy_set_attached'",
    )
    .fetch_one(&world.owner)
    .await
    .unwrap();
    let detail = json!({"policy_set": set, "scope": world.workspace_scope(), "reason": "because of this test"});
    assert_eq!(told.0, detail);
    assert_eq!(told.1["actor"], world.acme.owner.user.to_string());
    assert!(told.1["request_id"].is_string(), "{}", told.1);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_owner_of_one_workspace_does_not_decide_what_stops_it(pool: PgPool) {
    let world = World::new(pool).await;
    let set = world.policies("baseline").await;
    world
        .place("attachments", &set, &world.workspace_scope())
        .await
        .data(201);
    let acme = &world.acme;
    let user = users::create(&world.store, None, &new_user("guest"))
        .await
        .unwrap();
    let grant = Grant {
        scope: Scope::Workspace {
            workspace: acme.workspace,
        },
        user,
        role: Role::Owner,
    };
    let context = origin(acme.owner.user).within(acme.organization);
    grants::grant(&world.store, &context, grant).await.unwrap();
    let guest = token(&world.store, acme.organization, user).await;
    let path = format!("/v1/workspaces/{}/policy-sets", acme.workspace);
    let seen = Call::new("GET", path, &guest)
        .send(&world.router)
        .await
        .data(200);
    assert_eq!(seen[0]["name"], "baseline");
    let body = json!({"scope": world.workspace_scope(), "reason": "it is in my way"});
    for (who, status) in [(&guest, 404), (&acme.operator.token, 403)] {
        for verb in ["detach", "attachments", "archive"] {
            let path = format!("/v1/policy-sets/{set}/{verb}");
            let refused = Call::new("POST", path, who)
                .json(&body)
                .send(&world.router)
                .await;
            assert_eq!(refused.status, status, "{verb}: {}", refused.json);
        }
    }
    assert_eq!(world.applying().await.len(), 1);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn another_organization_finds_nothing_and_is_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let set = world.policies("baseline").await;
    let umbrella = &world.umbrella;
    let listed = Call::new("GET", umbrella.path("policy-sets"), &umbrella.owner.token);
    assert_eq!(listed.send(&world.router).await.data(200), json!([]));
    let (project, workspace) = (umbrella.project, umbrella.workspace);
    let fresh = clock::fresh::<stackship_domain::ids::WorkspaceId>();
    for scope in [
        json!({"kind": "project", "project": project}),
        json!({"kind": "workspace", "workspace": workspace}),
        json!({"kind": "workspace", "workspace": fresh}),
    ] {
        let refused = world.place("attachments", &set, &scope).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (422, "SCOPE_UNKNOWN"),
            "{scope}"
        );
        let absent = world.place("detach", &set, &scope).await;
        assert_eq!(absent.status, 404, "{scope}");
    }
    assert_eq!(world.count("record.policy_attachments").await, 0);
    // The same name is free there.
    let body = json!({"name": "baseline"});
    let call = Call::new("POST", umbrella.path("policy-sets"), &umbrella.owner.token).json(&body);
    call.send(&world.router).await.data(201);
}
