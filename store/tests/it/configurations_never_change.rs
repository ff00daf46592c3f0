//! A configuration version is uploaded once.

use sqlx::PgPool;
use stackship_domain::run::SourceKind;
use stackship_store::objects::{ObjectKind, StoredObject};
use stackship_store::records::configuration_versions::{
    NewConfigurationVersion, by_id, create, uploaded,
};
use stackship_store::{Violation, clock};

use crate::support::{World, origin, violation};

async fn archive(world: &World, bytes: &[u8]) -> StoredObject {
    world
        .store
        .objects
        .put_bytes(world.new_object(ObjectKind::Configuration), bytes)
        .await
        .unwrap()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_first_upload_stays(pool: PgPool) {
    let world = World::new(pool).await;
    let context = world.context();
    let new = NewConfigurationVersion {
        workspace: world.workspace,
        speculative: true,
        source: SourceKind::Cli,
    };
    let version = create(&world.store, &context, new).await.unwrap();
    assert_eq!((version.upload, version.source), (None, SourceKind::Cli));
    let first = archive(&world, b"tar").await;
    uploaded(&world.store, &context, version.id, first)
        .await
        .unwrap();
    let events = world.event_count().await;

    // The same bytes again, as another object: a lost answer makes clients repeat themselves.
    uploaded(
        &world.store,
        &context,
        version.id,
        archive(&world, b"tar").await,
    )
    .await
    .unwrap();
    let other = uploaded(
        &world.store,
        &context,
        version.id,
        archive(&world, b"other").await,
    )
    .await;
    assert_eq!(violation(other), Violation::Immutable);
    assert_eq!(
        world.event_count().await,
        events,
        "an upload that changed nothing told a fact"
    );
    let upload = by_id(&world.store.pool, world.organization, version.id)
        .await
        .unwrap()
        .unwrap()
        .upload
        .unwrap();
    assert_eq!(
        (upload.object, upload.sha256, upload.bytes),
        (first.id, first.sha256, 3)
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_upload_needs_a_version_and_an_object_of_the_same_organization(pool: PgPool) {
    let world = World::new(pool).await;
    let context = world.context();
    let (other, ..) = world.other_tenant().await;
    let theirs = origin(world.user).within(other);
    let new = NewConfigurationVersion {
        workspace: world.workspace,
        speculative: false,
        source: SourceKind::Api,
    };
    let version = create(&world.store, &context, new).await.unwrap();
    let ours = archive(&world, b"tar").await;
    let foreign = stackship_store::objects::NewObject {
        organization: other,
        workspace: None,
        ..world.new_object(ObjectKind::Configuration)
    };
    let foreign = world
        .store
        .objects
        .put_bytes(foreign, b"tar")
        .await
        .unwrap();
    let plan = world
        .store
        .objects
        .put_bytes(world.new_object(ObjectKind::Plan), b"tar")
        .await
        .unwrap();
    for outcome in [
        uploaded(&world.store, &context, version.id, plan).await,
        uploaded(&world.store, &theirs, version.id, ours).await,
        uploaded(&world.store, &context, version.id, foreign).await,
        uploaded(&world.store, &context, clock::fresh(), ours).await,
    ] {
        assert_eq!(violation(outcome), Violation::NotNow);
    }
    assert_eq!(
        by_id(&world.store.pool, world.organization, version.id)
            .await
            .unwrap()
            .unwrap()
            .upload,
        None
    );
}
