//! Heads that two readers could take for two different requests.

use serde_json::Value;
use sqlx::PgPool;
use stackship_api::serving::Limits;

use crate::serving::Serving;
use crate::world::World;

/// The body of an answer, as JSON.
fn body(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_head_that_can_be_read_in_two_ways_is_refused_and_nothing_after_it_is_read(pool: PgPool) {
    let world = World::new(pool).await;
    let serving = Serving::new(world.router.clone(), Limits::default()).await;
    let path = world.acme.path("projects");
    let owner = format!("Authorization: Bearer {}\r\n", world.acme.owner.token);
    let foreign = format!("Authorization: Bearer {}\r\n", world.umbrella.owner.token);
    let json = "Content-Type: application/json\r\n";
    let (host, length) = ("Host: ship.test\r\n", "Content-Length: 16\r\n");
    let chunked = "Transfer-Encoding: chunked\r\n";
    for (headers, code, field) in [
        (format!("{owner}{length}"), "HOST_MISSING", "host"),
        (
            format!("{host}Host: other.test\r\n{owner}{length}"),
            "HEADER_REPEATED",
            "host",
        ),
        (
            format!("{host}{owner}{foreign}{length}"),
            "HEADER_REPEATED",
            "authorization",
        ),
        (
            format!("{host}{owner}{length}Idempotency-Key: a\r\nidempotency-key: b\r\n"),
            "HEADER_REPEATED",
            "idempotency-key",
        ),
        (
            format!("{host}{owner}{length}{json}{json}"),
            "HEADER_REPEATED",
            "content-type",
        ),
        (
            format!("{host}{owner}{chunked}{chunked}"),
            "HEADER_REPEATED",
            "transfer-encoding",
        ),
        (
            format!("{host}{owner}Transfer-Encoding: gzip, chunked\r\n"),
            "TRANSFER_ENCODING_UNSUPPORTED",
            "transfer-encoding",
        ),
    ] {
        // What could be taken for a second request follows.
        let request = format!(
            "POST {path} HTTP/1.1\r\n{headers}\r\n10\r\n{{\"name\":\"twice\"}}\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n"
        );
        let answer = serving.say(&request).await.rest().await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{headers}: {answer}");
        assert!(answer.contains("\r\nx-request-id: "), "{answer}");
        assert_eq!(answer.matches("\r\n\r\n").count(), 1, "{answer}");
        let error = body(&answer)["error"].clone();
        assert_eq!(error["code"], code, "{headers}");
        assert_eq!(error["details"]["field"], field, "{headers}");
    }
    let projects = world.count("record.projects where name = 'twice'").await;
    assert_eq!(projects, 0);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn every_edge_refuses_it_in_its_own_shape(pool: PgPool) {
    let world = World::new(pool).await;
    let serving = Serving::new(world.router.clone(), Limits::default()).await;
    for (path, pointer) in [
        ("/v1/organizations", "/error/message"),
        ("/api/v2/ping", "/errors/0/detail"),
        ("/runner/v1/leases", "/message"),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
        let answer = serving.say(&request).await.rest().await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{path}: {answer}");
        let body = body(&answer);
        let text = body.pointer(pointer).and_then(Value::as_str).unwrap();
        assert!(text.contains("`host` is there more than once"), "{text}");
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_old_client_need_not_name_the_host(pool: PgPool) {
    let world = World::new(pool).await;
    let serving = Serving::new(world.router.clone(), Limits::default()).await;
    let answer = serving.say("GET /healthz HTTP/1.0\r\n\r\n").await;
    let answer = answer.rest().await;
    assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn two_lengths_are_refused(pool: PgPool) {
    let world = World::new(pool).await;
    let serving = Serving::new(world.router.clone(), Limits::default()).await;
    for lengths in [
        "Content-Length: 2\r\nContent-Length: 3",
        "Content-Length: 2, 2",
    ] {
        let request =
            format!("POST /v1/organizations HTTP/1.1\r\nHost: a\r\n{lengths}\r\n\r\n{{}}");
        let answer = serving.say(&request).await.rest().await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{lengths}: {answer}");
    }
}
