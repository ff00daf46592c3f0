//! A crash between an object's bytes and its row leaves bytes that are nobody's: swept after a day,
//! and nothing else is.

use std::time::Duration;

use sqlx::PgPool;
use stackship_store::StoreError;
use stackship_store::clock;
use stackship_store::objects::{NewObject, ORPHAN_AGE, ObjectKind};

use crate::support::World;

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn bytes_whose_row_never_came_are_swept_after_a_day(pool: PgPool) {
    let world = World::new(pool).await;
    let objects = &world.store.objects;
    let kept = objects
        .put_bytes(world.new_object(ObjectKind::Plan), b"kept")
        .await
        .unwrap();
    // The row is refused after the bytes are in, as if the process had died in between.
    let (_, _, foreign) = world.other_tenant().await;
    let orphan = NewObject {
        workspace: Some(foreign),
        ..world.new_object(ObjectKind::Plan)
    };
    let outcome = objects.put_bytes(orphan, b"nobody's").await;
    assert!(
        matches!(outcome, Err(StoreError::Database(_))),
        "{outcome:?}"
    );
    assert_eq!(world.object_files().len(), 2);

    let (now, margin) = (clock::now(), Duration::from_mins(1));
    assert_eq!(objects.sweep(now).await.unwrap(), 0);
    assert_eq!(objects.sweep(now + ORPHAN_AGE - margin).await.unwrap(), 0);
    assert_eq!(objects.sweep(now + ORPHAN_AGE + margin).await.unwrap(), 1);
    assert_eq!(world.object_files().len(), 1);
    let read = objects
        .read_to_vec(world.organization, kept.id, ObjectKind::Plan, 100)
        .await;
    assert_eq!(read.unwrap(), b"kept");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_upload_that_never_ended_is_swept_after_a_day(pool: PgPool) {
    let world = World::new(pool).await;
    let directory = world
        .directory()
        .join(format!("objects/{}/plan", world.organization));
    std::fs::create_dir_all(&directory).unwrap();
    // What a killed process leaves of an upload: a file beside the name it would have got.
    std::fs::write(directory.join("obj-x#1"), b"half").unwrap();
    let now = clock::now();
    assert_eq!(world.store.objects.sweep(now).await.unwrap(), 0);
    assert_eq!(
        world
            .store
            .objects
            .sweep(now + ORPHAN_AGE + Duration::from_mins(1))
            .await
            .unwrap(),
        1
    );
    assert_eq!(world.object_files().len(), 0);
}
