//! Bodies that take their time: what they lead to when rights are lost while they come. Over real
//! sockets, where a server says `100 Continue` once it asks for a body, which is after the head was judged.

use serde_json::json;
use sqlx::PgPool;
use stackship_api::BELIEVED_FOR;
use stackship_api::serving::Limits;
use stackship_domain::Role;
use stackship_domain::ids::UserId;
use stackship_store::records::grants::{self, Grant, Scope};
use stackship_store::records::users;

use crate::guarded::{Guarded, REASON};
use crate::serving::{Peer, Serving};
use crate::world::{World, new_user, origin, token};

const ARCHIVE: &[u8] = &[0x1f, 0x8b, 8, 0, 1, 2, 3, 4, 5, 6];

/// What is asked for with a body.
struct Asked {
    method: &'static str,
    path: String,
    headers: String,
    body: Vec<u8>,
}

impl Asked {
    fn new(method: &'static str, path: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: String::new(),
            body: body.into(),
        }
    }

    fn header(mut self, header: &str) -> Self {
        self.headers.push_str(header);
        self.headers.push_str("\r\n");
        self
    }

    fn by(self, token: &str) -> Self {
        self.header(&format!("Authorization: Bearer {token}"))
    }

    /// Sends the head and the first byte, once the head was judged.
    async fn begin(self, serving: &Serving) -> Slow {
        let head = format!(
            "{} {} HTTP/1.1\r\nHost: ship.test\r\nConnection: close\r\nExpect: 100-continue\r\n{}Content-Length: {}\r\n\r\n",
            self.method,
            self.path,
            self.headers,
            self.body.len()
        );
        let mut peer = serving.say(&head).await;
        peer.is_told("HTTP/1.1 100 Continue\r\n\r\n").await;
        peer.say(&self.body[..1]).await;
        Slow { asked: self, peer }
    }
}

/// A request whose head was judged and whose body is on its way.
struct Slow {
    asked: Asked,
    peer: Peer,
}

impl Slow {
    async fn end(mut self) -> (String, String) {
        self.peer.say(&self.asked.body[1..]).await;
        let path = format!("{} {}", self.asked.method, self.asked.path);
        (path, self.peer.rest().await)
    }
}

/// Sends the rest of each body when what their heads decided is no longer believed.
async fn end_all(slow: Vec<Slow>, expected: &[u16]) {
    assert_eq!(slow.len(), expected.len());
    tokio::time::sleep(BELIEVED_FOR).await;
    for (slow, expected) in slow.into_iter().zip(expected) {
        let (path, answer) = slow.end().await;
        let expected = format!("HTTP/1.1 {expected} ");
        assert!(answer.starts_with(&expected), "{path}: {answer}");
    }
}

async fn begin_all(serving: &Serving, asked: Vec<Asked>) -> Vec<Slow> {
    let mut slow = Vec::new();
    for asked in asked {
        slow.push(asked.begin(serving).await);
    }
    slow
}

/// What was written: the history, and the objects.
async fn written(world: &World) -> (i64, i64) {
    (
        world.count("log.events").await,
        world.count("record.objects").await,
    )
}

async fn configuration(world: &World) -> String {
    let versions = format!(
        "/v1/workspaces/{}/configuration-versions",
        world.acme.workspace
    );
    let version = world.send("POST", &versions, &json!({})).await.data(201);
    version["content_path"].as_str().unwrap().to_owned()
}

/// Where the client would upload, with a signature of acme's owner.
async fn signed_upload(world: &World) -> String {
    let versions = format!(
        "/api/v2/workspaces/{}/configuration-versions",
        world.acme.workspace
    );
    let body = json!({"data": {"type": "configuration-versions", "attributes": {}}});
    let announced = world.send("POST", &versions, &body).await;
    let upload = announced.json["data"]["attributes"]["upload-url"].as_str();
    let (_, upload) = upload.unwrap().split_once("ship.test").unwrap();
    upload.to_owned()
}

async fn approval(world: &World) -> Asked {
    let (run, _) = world.run_that_asks().await;
    let seen = world.seen_run(run).await;
    let body = json!({"binding_digest": seen["approval"]["binding_digest"]});
    Asked::new("POST", format!("/v1/runs/{run}/approve"), body.to_string())
}

fn grant_to(world: &World, user: UserId) -> Asked {
    let body = json!({"user": user, "role": "owner", "scope": {"kind": "organization"}});
    Asked::new("POST", world.acme.path("grants"), body.to_string())
}

fn variable(world: &World) -> Asked {
    let path = format!("/v1/workspaces/{}/variables", world.acme.workspace);
    let body = json!({"key": "late", "value": "1", "category": "terraform"});
    Asked::new("POST", path, body.to_string())
}

fn named_user(world: &World) -> Asked {
    let body = json!({"login": "late", "display_name": "Late"});
    let asked = Asked::new("POST", world.acme.path("users"), body.to_string());
    asked.header("Idempotency-Key: late")
}

fn project_of_the_client(world: &World) -> Asked {
    let body = json!({"data": {"type": "projects", "attributes": {"name": "late"}}});
    let path = format!("/api/v2/organizations/{}/projects", world.acme.name);
    Asked::new("POST", path, body.to_string())
}

/// One of each kind, of acme's owner; the last carries its right in its address.
async fn of_the_owner(world: &World) -> Vec<Asked> {
    let owner = &world.acme.owner.token;
    let content = configuration(world).await;
    vec![
        approval(world).await.by(owner),
        grant_to(world, world.acme.planner.user).by(owner),
        variable(world).by(owner),
        named_user(world).by(owner),
        project_of_the_client(world).by(owner),
        Asked::new("PUT", content, ARCHIVE).by(owner),
        Asked::new("PUT", signed_upload(world).await, ARCHIVE),
    ]
}

/// Nothing that was begun with a token is carried out once this has become of it.
async fn nothing_is_left_of_it(pool: PgPool, lost: &str) {
    let world = World::new(pool).await;
    let serving = Serving::new(world.router.clone(), Limits::default()).await;
    let slow = begin_all(&serving, of_the_owner(&world).await).await;
    let before = written(&world).await;
    sqlx::raw_sql(lost).execute(&world.owner).await.unwrap();
    end_all(slow, &[401, 401, 401, 401, 401, 401, 404]).await;
    assert_eq!(written(&world).await, before);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_was_begun_with_a_token_is_not_carried_out_once_it_is_revoked(pool: PgPool) {
    nothing_is_left_of_it(pool, "update record.tokens set revoked_at = now()").await;
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_was_begun_with_a_token_is_not_carried_out_once_it_has_expired(pool: PgPool) {
    nothing_is_left_of_it(pool, "update record.tokens set expires_at = now()").await;
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_was_begun_in_a_role_is_not_carried_out_once_it_is_lost(pool: PgPool) {
    let world = World::new(pool).await;
    let serving = Serving::new(world.router.clone(), Limits::default()).await;
    let acme = &world.acme;
    let context = origin(acme.owner.user).within(acme.organization);
    let scope = Scope::Organization;
    let (store, role) = (&world.store, Role::Owner);
    let other = users::create(store, None, &new_user("other"))
        .await
        .unwrap();
    let owns = Grant {
        scope,
        user: other,
        role,
    };
    grants::grant(store, &context, owns).await.unwrap();
    let others = token(store, acme.organization, other).await;
    let content = configuration(&world).await;
    let asked = vec![
        approval(&world).await.by(&acme.operator.token),
        Asked::new("PUT", content, ARCHIVE).by(&acme.planner.token),
        grant_to(&world, acme.reader.user).by(&others),
        named_user(&world).by(&others),
        project_of_the_client(&world).by(&others),
    ];
    let slow = begin_all(&serving, asked).await;
    for user in [acme.operator.user, acme.planner.user] {
        let reads = Grant {
            scope,
            user,
            role: Role::Reader,
        };
        grants::grant(store, &context, reads).await.unwrap();
    }
    grants::revoke(store, &context, scope, other).await.unwrap();
    let before = written(&world).await;
    end_all(slow, &[403, 403, 404, 404, 404]).await;
    assert_eq!(written(&world).await, before);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_took_its_time_is_carried_out_for_whoever_still_may(pool: PgPool) {
    let world = World::new(pool).await;
    let serving = Serving::new(world.router.clone(), Limits::default()).await;
    let slow = begin_all(&serving, of_the_owner(&world).await).await;
    end_all(slow, &[200, 201, 201, 201, 201, 200, 200]).await;
    let stored = "select count(*) from record.objects where kind = 'configuration' and bytes = 10";
    let stored: i64 = sqlx::query_scalar(stored)
        .fetch_one(&world.owner)
        .await
        .unwrap();
    assert_eq!(stored, 2);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn nothing_guarded_leaves_once_the_right_to_it_is_lost(pool: PgPool) {
    let guarded = Guarded::new(pool).await;
    let served = &guarded.served;
    let serving = Serving::new(served.router.clone(), Limits::default()).await;
    let begin = async || {
        let (organization, user) = (served.acme.organization, served.acme.owner.user);
        let token = token(&served.store, organization, user).await;
        guarded.step_up(&token).await.data(200);
        let body = json!({"reason": REASON}).to_string();
        let asked = Asked::new("POST", guarded.path("raw-plan"), body).by(&token);
        asked.begin(&serving).await
    };
    let slow = vec![begin().await, begin().await];
    let lost = "update record.tokens set revoked_at = now() where token_id = \
            (select token_id from record.step_ups order by proved_at desc limit 1); \
        delete from record.step_ups";
    sqlx::raw_sql(lost).execute(&served.owner).await.unwrap();
    end_all(slow, &[403, 401]).await;
    let slow = vec![begin().await];
    let lost = "delete from record.role_grants where role = 'owner'";
    sqlx::raw_sql(lost).execute(&served.owner).await.unwrap();
    end_all(slow, &[404]).await;
    assert!(guarded.releases().await.is_empty());
}
