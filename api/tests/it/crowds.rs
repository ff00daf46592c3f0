//! One credential with more requests than it may have at hand: what becomes of them, and of everybody
//! else's.

use serde_json::json;
use sqlx::PgPool;
use stackship_api::serving::Limits;
use tokio::task::JoinSet;

use crate::http::Call;
use crate::serving::{Peer, Serving};
use crate::world::{World, token};

/// The fewest places that an installation may have.
const PLACES: usize = 16;
/// A quarter of them.
const OF_ONE: usize = 4;

async fn serving(world: &World) -> Serving {
    let limits = Limits {
        connections_max: PLACES,
        ..Limits::default()
    };
    Serving::new(world.router.clone(), limits).await
}

/// A request whose body goes on and on, without ever being too slow.
async fn dripping(serving: &Serving, target: &str, token: &str) -> Peer {
    let mut peer = serving
        .say(&format!(
            "POST {target} HTTP/1.1\r\nHost: ship.test\r\nAuthorization: Bearer {token}\r\n\
             Transfer-Encoding: chunked\r\n\r\n"
        ))
        .await;
    peer.say(b"2\r\n{ \r\n").await;
    peer
}

async fn look(serving: &Serving, token: &str) -> String {
    let asked = format!(
        "GET /v1/organizations HTTP/1.1\r\nHost: ship.test\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\n\r\n"
    );
    serving.say(&asked).await.rest().await
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_reader_with_slow_bodies_leaves_the_service_to_others(pool: PgPool) {
    let world = World::new(pool).await;
    let serving = serving(&world).await;
    // Of two tokens of one reader, to paths where nothing but the body could refuse it.
    let reader = &world.acme.reader;
    let another = token(&world.store, world.acme.organization, reader.user).await;
    let mut crowd = JoinSet::new();
    for number in 0..PLACES {
        let (target, token) = match number % 2 {
            0 => ("/v1/user/step-up".to_owned(), reader.token.as_str()),
            _ => (world.acme.path("tokens"), another.as_str()),
        };
        let peer = dripping(&serving, &target, token).await;
        crowd.spawn(peer.rest());
    }
    for _ in OF_ONE..PLACES {
        let refused = crowd.join_next().await.unwrap().unwrap();
        assert!(refused.starts_with("HTTP/1.1 429 "), "{refused}");
        assert!(refused.contains("TOO_MANY_AT_ONCE"), "{refused}");
        assert!(refused.contains("\r\nretry-after: 5\r\n"), "{refused}");
    }
    for other in [&world.acme.planner, &world.umbrella.owner] {
        let answer = look(&serving, &other.token).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    let answer = look(&serving, &reader.token).await;
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    // Who lets go of them may go on.
    crowd.shutdown().await;
    crate::world::until("the reader is let in again", async || {
        let answer = look(&serving, &reader.token).await;
        answer.starts_with("HTTP/1.1 200 ")
    })
    .await;
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_no_body_could_make_right_is_refused_while_it_drips(pool: PgPool) {
    let world = World::new(pool).await;
    let serving = serving(&world).await;
    let reader = &world.acme.reader.token;
    let lock = format!("/v1/workspaces/{}/lock", world.acme.workspace);
    for target in [
        world.acme.path("workspaces"),
        format!("/api/v2/organizations/{}/workspaces", world.acme.name),
        "/api/v2/runs".to_owned(),
        format!("{lock} HTTP/1.1\r\nIdempotency-Key: a\r\nX-Rest:"),
    ] {
        let refused = dripping(&serving, &target, reader).await.rest().await;
        assert!(refused.starts_with("HTTP/1.1 403 "), "{target}: {refused}");
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn too_many_tries_of_a_password_are_told_when_to_come_back(pool: PgPool) {
    let world = World::new(pool).await;
    let body = json!({"password": "not this one"});
    let mut answer = world.send("POST", "/v1/user/step-up", &body).await;
    while answer.status == 403 {
        answer = Call::new("POST", "/v1/user/step-up", &world.acme.owner.token)
            .json(&body)
            .send(&world.router)
            .await;
    }
    assert_eq!(
        (answer.status.as_u16(), answer.code()),
        (429, "PASSWORD_TRIES")
    );
    assert_eq!(answer.headers["retry-after"], "900");
}
