//! Archives: looked at while they stream, stored once, never changed.

use serde_json::json;
use sqlx::PgPool;
use stackship_domain::Sha256Digest;

use crate::http::{Answer, Call};
use crate::world::World;

const ARCHIVE: &[u8] = &[0x1f, 0x8b, 8, 0, 1, 2, 3];

async fn fresh(world: &World) -> String {
    let path = format!(
        "/v1/workspaces/{}/configuration-versions",
        world.acme.workspace
    );
    let created = world.send("POST", &path, &json!({})).await.data(201);
    assert!(created["content"].is_null());
    created["content_path"].as_str().unwrap().to_owned()
}

async fn put(world: &World, path: &str, bytes: &[u8], digest: Option<&str>) -> Answer {
    let mut call = Call::new("PUT", path, &world.acme.planner.token);
    call.body = bytes.to_vec();
    if let Some(digest) = digest {
        call = call.header("x-stackship-sha256", digest);
    }
    call.send(&world.router).await
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_archive_arrives_once_and_the_same_bytes_again_are_harmless(pool: PgPool) {
    let world = World::new(pool).await;
    let path = fresh(&world).await;
    let digest = Sha256Digest::of(ARCHIVE).to_string();
    let stored = put(&world, &path, ARCHIVE, Some(&digest)).await.data(200);
    assert_eq!(
        (&stored["content"]["sha256"], &stored["content"]["bytes"]),
        (&json!(digest), &json!(7))
    );
    let objects = world.count("record.objects").await;
    let again = put(&world, &path, ARCHIVE, None).await;
    assert_eq!(again.status, 200);
    let other = put(&world, &path, &[ARCHIVE, &[4]].concat(), None).await;
    assert_eq!(
        (other.status.as_u16(), other.code()),
        (409, "CONFIGURATION_IMMUTABLE")
    );
    assert_eq!(
        world.count("record.objects").await,
        objects,
        "nothing is stored a second time"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn bytes_that_are_no_archive_are_not_kept(pool: PgPool) {
    let world = World::new(pool).await;
    let path = fresh(&world).await;
    let other = Sha256Digest::of(b"other").to_string();
    for (bytes, digest, status, code) in [
        (&b""[..], None, 422, "CONFIGURATION_NOT_GZIP"),
        (&ARCHIVE[..1], None, 422, "CONFIGURATION_NOT_GZIP"),
        (b"PK\x03\x04", None, 422, "CONFIGURATION_NOT_GZIP"),
        (
            ARCHIVE,
            Some(other.as_str()),
            422,
            "CONFIGURATION_DIGEST_MISMATCH",
        ),
        (ARCHIVE, Some("abc"), 400, "HEADER_INVALID"),
    ] {
        let answer = put(&world, &path, bytes, digest).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (status, code),
            "{bytes:?}"
        );
    }
    assert_eq!(world.count("record.objects").await, 0);
    assert_eq!(put(&world, &path, ARCHIVE, None).await.status, 200);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_run_needs_an_archive_that_has_arrived(pool: PgPool) {
    let world = World::new(pool).await;
    let path = fresh(&world).await;
    let id = path.split('/').nth(3).unwrap();
    let runs = format!("/v1/workspaces/{}/runs", world.acme.workspace);
    let answer = world
        .send(
            "POST",
            &runs,
            &json!({"configuration_version": id, "message": "m"}),
        )
        .await;
    assert_eq!(
        (answer.status.as_u16(), answer.code()),
        (422, "CONFIGURATION_NOT_UPLOADED")
    );
}
