//! Requests that do not come to their end, on every edge: what they are told, and that nothing stays.

use std::time::Duration;

use serde_json::json;
use sqlx::PgPool;
use stackship_api::serving::Limits;

use crate::serving::{Peer, Serving};
use crate::world::World;

/// More than any route takes.
const ANNOUNCED: u64 = 1 << 40;

/// Where bodies go: JSON, an archive, and an archive of the client, each of acme's owner.
async fn targets(world: &World) -> Vec<(&'static str, String)> {
    let owner = &world.acme.owner.token;
    let versions = format!(
        "/v1/workspaces/{}/configuration-versions",
        world.acme.workspace
    );
    let version = world.send("POST", &versions, &json!({})).await.data(201);
    let versions = format!(
        "/api/v2/workspaces/{}/configuration-versions",
        world.acme.workspace
    );
    let body = json!({"data": {"type": "configuration-versions", "attributes": {}}});
    let announced = world.send("POST", &versions, &body).await;
    assert_eq!(announced.status, 201, "{}", announced.json);
    let upload = announced.json["data"]["attributes"]["upload-url"].as_str();
    let (_, upload) = upload.unwrap().split_once("ship.test").unwrap();
    let content = version["content_path"].as_str().unwrap();
    let with_token = |path: &str| format!("{path} HTTP/1.1\r\nAuthorization: Bearer {owner}");
    vec![
        ("POST", with_token(&world.acme.path("projects"))),
        (
            "POST",
            format!(
                "{}\r\nIdempotency-Key: once",
                with_token(&world.acme.path("users"))
            ),
        ),
        ("POST", with_token("/api/v2/runs")),
        ("PUT", with_token(content)),
        ("PUT", format!("{upload} HTTP/1.1")),
    ]
}

async fn begin(serving: &Serving, method: &str, target: &str, length: u64) -> Peer {
    let rest = format!("Host: ship.test\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    serving.say(&format!("{method} {target}\r\n{rest}")).await
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_body_that_announces_too_much_is_refused_before_it_comes(pool: PgPool) {
    let world = World::new(pool).await;
    // Nobody waits for a byte here: with these limits such a wait would not end within the test.
    let serving = Serving::new(world.router.clone(), Limits::default()).await;
    for (method, target) in targets(&world).await {
        let refused = begin(&serving, method, &target, ANNOUNCED).await.rest();
        let refused = refused.await;
        assert!(refused.starts_with("HTTP/1.1 413 "), "{target}: {refused}");
        assert!(
            refused.to_lowercase().contains("body_too_large"),
            "{refused}"
        );
    }
    assert_eq!(world.count("record.objects").await, 0);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_body_that_does_not_come_is_refused_and_nothing_of_it_stays(pool: PgPool) {
    let world = World::new(pool).await;
    let limits = Limits {
        silence_max: Duration::from_millis(100),
        ..Limits::default()
    };
    let serving = Serving::new(world.router.clone(), limits).await;
    for (method, target) in targets(&world).await {
        for sent in [&b""[..], &[0x1f], &[0x1f, 0x8b, 8, 0, 1]] {
            let mut peer = begin(&serving, method, &target, 100).await;
            peer.say(sent).await;
            let refused = peer.rest().await;
            assert!(refused.starts_with("HTTP/1.1 408 "), "{target}: {refused}");
            assert!(
                refused.to_lowercase().contains("body_too_slow"),
                "{refused}"
            );
        }
    }
    assert_eq!(world.count("record.objects").await, 0);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_stranger_is_refused_before_a_body_is_waited_for(pool: PgPool) {
    let world = World::new(pool).await;
    let serving = Serving::new(world.router.clone(), Limits::default()).await;
    for (method, path, status) in [
        ("POST", world.acme.path("projects"), 401),
        ("POST", "/api/v2/runs".to_owned(), 401),
        ("PUT", "/api/v2/uploads/configurations/x".to_owned(), 404),
        ("PUT", "/api/v2/uploads/states/x".to_owned(), 404),
        ("POST", "/runner/v1/leases".to_owned(), 401),
    ] {
        let target = format!("{path} HTTP/1.1");
        let refused = begin(&serving, method, &target, 100).await.rest().await;
        let expected = format!("HTTP/1.1 {status} ");
        assert!(refused.starts_with(&expected), "{target}: {refused}");
    }
}
