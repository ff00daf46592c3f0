//! A version never changes, and a set that judged runs can be read for as long as they can.

use sqlx::PgPool;
use stackship_store::records::grants::Scope;
use stackship_store::records::policy_sets::{self, Published};
use stackship_store::{StoreError, Violation};

use super::REASON;
use crate::support::{DENIED, PINNED, World, refusal, violation};

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn nobody_changes_or_removes_a_version(pool: PgPool) {
    let world = World::new(pool).await;
    let set = world.policy_set("baseline").await;
    let before = world.version(set, "one").await;
    world.attach(set, Scope::Organization).await.unwrap();
    for change in [
        "bundle = sha256('other')",
        "number = 2",
        "label = 'other'",
        "policies = 2",
        "object_id = 'obj-x'",
        "policy_set_id = 'polset-x'",
        "organization_id = 'org-x'",
        "uploaded_by = 'system'",
        "uploaded_at = now()",
    ] {
        let statement = format!("update record.policy_set_versions set {change}");
        assert_eq!(refusal(&world.owner, &statement).await, PINNED, "{change}");
        assert_eq!(
            refusal(&world.store.pool, &statement).await,
            DENIED,
            "{change}"
        );
    }
    for (statement, denied) in [
        ("delete from record.policy_set_versions", DENIED),
        ("truncate record.policy_set_versions", DENIED),
        ("delete from record.policy_sets", DENIED),
        ("truncate record.policy_sets cascade", DENIED),
        ("update record.policy_sets set name = 'other'", DENIED),
        (
            "update record.policy_attachments set workspace_id = null",
            DENIED,
        ),
    ] {
        assert_eq!(
            refusal(&world.owner, statement).await,
            PINNED,
            "{statement}"
        );
        assert_eq!(
            refusal(&world.store.pool, statement).await,
            denied,
            "{statement}"
        );
    }
    // The content goes with its version.
    let object = format!(
        "delete from record.objects where object_id = '{}'",
        before.object
    );
    for pool in [&world.owner, &world.store.pool] {
        assert_eq!(refusal(pool, &object).await, "23503", "{object}");
    }
    let now = policy_sets::version(&world.store.pool, world.organization, set, 1).await;
    assert_eq!(now.unwrap(), Some(before));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_same_content_is_the_same_version_and_an_older_one_can_be_had_again(pool: PgPool) {
    let world = World::new(pool).await;
    let set = world.policy_set("baseline").await;
    let first = world.version(set, "one").await;
    assert_eq!(first.number, 1);
    let (events, objects) = (world.event_count().await, world.object_files().len());
    let again = world.publish(set, "one", 1).await.unwrap();
    assert_eq!(again, Published::Same(first.clone()));
    assert_eq!(world.event_count().await, events);
    assert_eq!(world.object_files().len(), objects);
    assert_eq!(world.version(set, "two").await.number, 2);
    let back = world.version(set, "one").await;
    assert_eq!((back.number, back.bundle), (3, first.bundle));
    let found = policy_sets::by_bundle(&world.store.pool, world.organization, first.bundle).await;
    assert_eq!(found.unwrap(), Some(back.clone()));
    let content = policy_sets::content(&world.store, world.organization, back.object).await;
    assert_eq!(content.unwrap(), b"one");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_version_that_cannot_be_read_is_replaced_by_the_same_content(pool: PgPool) {
    let world = World::new(pool).await;
    let set = world.policy_set("baseline").await;
    let lost = world.version(set, "one").await;
    for file in world.object_files() {
        std::fs::remove_file(file).unwrap();
    }
    let read = policy_sets::content(&world.store, world.organization, lost.object).await;
    assert!(matches!(read, Err(StoreError::Object(_))), "{read:?}");
    let replaced = world.version(set, "one").await;
    assert_eq!((replaced.number, replaced.bundle), (2, lost.bundle));
    let content = policy_sets::content(&world.store, world.organization, replaced.object).await;
    assert_eq!(content.unwrap(), b"one");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn uploads_at_the_same_time_get_numbers_of_their_own(pool: PgPool) {
    let world = World::new(pool).await;
    let set = world.policy_set("baseline").await;
    let contents: Vec<_> = (0..8).map(|number| format!("content {number}")).collect();
    let all = contents.iter().map(|content| world.version(set, content));
    let mut numbers: Vec<_> = futures::future::join_all(all)
        .await
        .iter()
        .map(|version| version.number)
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
    // One of them makes the version, and what the others stored is nobody's.
    let same = (0..6).map(|_| world.publish(set, "one and the same", 1));
    let made = futures::future::join_all(same).await;
    let is_new = |one: &&Result<Published, StoreError>| matches!(one, Ok(Published::New(_)));
    assert_eq!(made.iter().filter(is_new).count(), 1);
    for one in &made {
        assert_eq!(one.as_ref().unwrap().version().number, 9);
    }
    let objects: i64 = sqlx::query_scalar("select count(*) from record.objects")
        .fetch_one(&world.owner)
        .await
        .unwrap();
    assert_eq!(objects, 9);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_attached_set_is_not_archived_and_an_archived_one_is_not_used(pool: PgPool) {
    let world = World::new(pool).await;
    let set = world.policy_set("baseline").await;
    let version = world.version(set, "one").await;
    world.attach(set, world.here()).await.unwrap();
    let context = world.context();
    let archive = async || policy_sets::archive(&world.store, &context, set, REASON).await;
    assert_eq!(violation(archive().await), Violation::NotNow);
    policy_sets::detach(&world.store, &context, set, world.here(), REASON)
        .await
        .unwrap();
    let archived = archive().await.unwrap().unwrap();
    assert!(archived.archived_at.is_some());
    let events = world.event_count().await;
    assert_eq!(archive().await.unwrap(), Some(archived));
    assert_eq!(world.event_count().await, events);
    assert_eq!(
        violation(world.attach(set, world.here()).await),
        Violation::NotNow
    );
    assert_eq!(
        violation(world.publish(set, "two", 1).await),
        Violation::NotNow
    );
    let revived = "update record.policy_sets set archived_at = null";
    assert_eq!(refusal(&world.owner, revived).await, PINNED);
    // Its name is free, and what it judged can be read.
    assert_ne!(world.policy_set("baseline").await, set);
    let content = policy_sets::content(&world.store, world.organization, version.object).await;
    assert_eq!(content.unwrap(), b"one");
}
