//! A state that was rolled back to is written by the log alone, under a person's lock, and only as a
//! successor of the current one with the content of an older one.

use serde_json::json;
use sqlx::PgPool;
use stackship_domain::workspace::{Command, Event, Rollback, StateHead};
use stackship_domain::{Fence, run::Predecessor};
use stackship_store::attempts;
use stackship_store::clock;
use stackship_store::objects::ObjectKind;
use stackship_store::states::{
    self, Arrival, Author, NewState, RestoreError, StateStatus, StateVersionRow, under_serial,
};

use crate::support::{NOT_NOW, PINNED, STALE_FENCE, World, code, refusal};

const LINEAGE: &str = "6d6f2a52";

fn bytes(serial: i64, rest: &str) -> Vec<u8> {
    format!(r#"{{"version":4,"serial":{serial},"lineage":"{LINEAGE}"{rest}}}"#).into_bytes()
}

/// Publishes a state by an apply, which ends.
async fn publish(world: &World, serial: i64, content: &[u8]) -> StateVersionRow {
    let (run, fence) = world.run_with_lock().await;
    let lease = world.leased_apply(run, fence).await;
    let principal = attempts::by_run_token(&world.store, &lease.run_token).await;
    let principal = principal.unwrap().unwrap();
    let organization = world.organization;
    let current = states::current(&world.store, organization, world.workspace).await;
    let predecessor = current
        .unwrap()
        .map_or(Predecessor::None, |row| Predecessor::Version {
            id: row.id,
            serial: row.serial,
            digest: row.sha256.unwrap(),
        });
    let new = NewState {
        principal,
        serial,
        lineage: LINEAGE.to_owned(),
        md5: "0".repeat(32),
        outputs: Some(b"{}".to_vec()),
    };
    let begun = states::begin(&world.store, new).await.unwrap();
    let same = async |_: &StateVersionRow| Ok(());
    let staged = states::stage(
        &world.store,
        principal,
        begun.id,
        (Arrival::Uploaded, content),
        same,
    )
    .await;
    let state = head(&staged.unwrap());
    world
        .command_workspace(Command::PublishState {
            run,
            fence,
            predecessor,
            state,
        })
        .await;
    attempts::record_result(&world.store, principal.attempt, &json!({}))
        .await
        .unwrap();
    world.release(run, fence).await;
    let row = states::by_id(&world.store, organization, begun.id).await;
    row.unwrap().unwrap()
}

fn head(row: &StateVersionRow) -> StateHead {
    StateHead {
        version: row.id,
        serial: row.serial,
        lineage: row.lineage.clone(),
        digest: row.sha256.unwrap(),
    }
}

/// A workspace with two states, and the rollback to the first.
struct Rolling {
    world: World,
    first: StateVersionRow,
    second: StateVersionRow,
    rollback: Rollback,
}

impl Rolling {
    async fn new(pool: PgPool) -> Self {
        let world = World::new(pool).await;
        let first = publish(&world, 1, &bytes(1, r#","outputs":{}"#)).await;
        let second = publish(&world, 5, &bytes(5, "")).await;
        let stored = under_serial(&world.store, &first, 6).await.unwrap();
        let rollback = Rollback {
            predecessor: second.id,
            restored: first.id,
            state: StateHead {
                version: clock::fresh(),
                serial: 6,
                lineage: LINEAGE.to_owned(),
                digest: stored.sha256,
            },
            object: stored.object,
            reason: "The upgrade broke the gateway.".to_owned(),
        };
        Self {
            world,
            first,
            second,
            rollback,
        }
    }

    fn command(&self) -> Command {
        Command::RollBackState {
            by: self.world.user,
            rollback: self.rollback.clone(),
        }
    }

    /// What the database says to this event, past the rules.
    async fn raw(&self, fence: Fence, rollback: &Rollback) -> String {
        let event = Event::StateRolledBack {
            by: self.world.user,
            fence,
            rollback: rollback.clone(),
        };
        let payload = serde_json::to_value(&event).unwrap();
        let place = ("workspace", self.world.workspace.to_string(), 1000);
        let written = crate::no_apply_without_approval::insert_raw(
            &self.world,
            &self.world.store.pool,
            place,
            event.name(),
            payload,
        );
        code(&written.await.unwrap_err())
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_older_content_becomes_current_under_a_higher_serial(pool: PgPool) {
    let rolling = Rolling::new(pool).await;
    let world = &rolling.world;
    world.command_workspace(rolling.command()).await;
    let organization = world.organization;
    let current = states::current(&world.store, organization, world.workspace).await;
    let current = current.unwrap().unwrap();
    let author = Author::Person {
        user: world.user,
        restores: rolling.first.id,
    };
    assert_eq!(
        (current.id, current.serial, current.status, current.author),
        (
            rolling.rollback.state.version,
            6,
            StateStatus::Published,
            author
        )
    );
    assert_eq!(current.md5, None);
    assert_eq!(current.outputs_object, rolling.first.outputs_object);
    let (object, kind) = (current.object.unwrap(), ObjectKind::State);
    let content = world
        .store
        .objects
        .read_to_vec(organization, object, kind, 1024);
    let expected = bytes(6, r#","outputs":{}"#);
    assert_eq!(content.await.unwrap(), expected, "only the serial differs");
    assert_eq!(current.bytes, Some(i64::try_from(expected.len()).unwrap()));
    let (workspace, _) = world.store.workspaces.load(world.workspace).await.unwrap();
    assert_eq!(workspace.lock, None, "given back in the same decision");
    // The history goes on from there.
    let next = publish(world, 7, &bytes(7, "")).await;
    assert_eq!(next.status, StateStatus::Published);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_database_refuses_a_rollback_that_the_rules_would_not_make(pool: PgPool) {
    let rolling = Rolling::new(pool).await;
    let world = &rolling.world;
    let fence = |workspace: stackship_domain::workspace::Workspace| workspace.fence;
    let (unlocked, _) = world.store.workspaces.load(world.workspace).await.unwrap();
    let unheld = rolling.raw(fence(unlocked), &rolling.rollback).await;
    assert_eq!(unheld, STALE_FENCE, "nobody holds the lock");

    let (by, reason) = (world.user, None);
    world
        .command_workspace(Command::LockByPerson { by, reason })
        .await;
    let (locked, _) = world.store.workspaces.load(world.workspace).await.unwrap();
    let fence = fence(locked);
    let good = &rolling.rollback;
    let other = |change: fn(&mut Rollback)| {
        let mut rollback = good.clone();
        change(&mut rollback);
        rollback
    };
    let stale = rolling.raw(Fence::from_stored(fence.number() - 1), good);
    assert_eq!(stale.await, STALE_FENCE);
    let foreign = world.new_object(ObjectKind::Plan);
    let foreign = world
        .store
        .objects
        .put_bytes(foreign, b"plan")
        .await
        .unwrap();
    let current = Rollback {
        restored: rolling.second.id,
        ..good.clone()
    };
    let older = Rollback {
        predecessor: rolling.first.id,
        ..good.clone()
    };
    let not_a_state = Rollback {
        object: foreign.id,
        state: StateHead {
            digest: foreign.sha256,
            ..good.state.clone()
        },
        ..good.clone()
    };
    for (what, rollback) in [
        ("a lower serial", other(|it| it.state.serial = 5)),
        (
            "another lineage",
            other(|it| it.state.lineage = "x".to_owned()),
        ),
        (
            "other bytes",
            other(|it| it.state.digest = stackship_domain::Sha256Digest::of(b"x")),
        ),
        (
            "an unknown version",
            other(|it| it.restored = clock::fresh()),
        ),
        ("an unknown object", other(|it| it.object = clock::fresh())),
        ("the current version", current),
        ("another predecessor", older),
        ("an object that is no state", not_a_state),
    ] {
        assert_eq!(rolling.raw(fence, &rollback).await, NOT_NOW, "{what}");
    }
    world.command_workspace(rolling.command()).await;
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn nobody_but_the_log_writes_a_restored_state(pool: PgPool) {
    let rolling = Rolling::new(pool).await;
    let world = &rolling.world;
    let insert = format!(
        "insert into record.state_versions (state_version_id, organization_id, workspace_id, user_id, \
             restored_state_version_id, fence, serial, lineage, status, published_at, object_id) \
         select 'sv-x', organization_id, workspace_id, '{}', state_version_id, fence, 9, lineage, 'published', \
             now(), object_id from record.state_versions where state_version_id = '{}'",
        world.user, rolling.first.id
    );
    assert_eq!(refusal(&world.store.pool, &insert).await, NOT_NOW);
    world.command_workspace(rolling.command()).await;
    let restored = format!(
        "where state_version_id = '{}'",
        rolling.rollback.state.version
    );
    for change in [
        "serial = 70",
        "object_id = null",
        "user_id = user_id",
        "status = 'staged'",
    ] {
        let statement = format!("update record.state_versions set {change} {restored}");
        assert_eq!(refusal(&world.owner, &statement).await, PINNED, "{change}");
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_encrypted_state_is_not_given_another_serial(pool: PgPool) {
    let world = World::new(pool).await;
    let content = bytes(
        1,
        r#","meta":{},"encrypted_data":"e30=","encryption_version":"v0""#,
    );
    let encrypted = publish(&world, 1, &content).await;
    let refused = under_serial(&world.store, &encrypted, 2).await;
    assert!(
        matches!(refused, Err(RestoreError::Encrypted)),
        "{refused:?}"
    );
    let lying = publish(&world, 3, &bytes(2, "")).await;
    let refused = under_serial(&world.store, &lying, 4).await;
    assert!(
        matches!(&refused, Err(RestoreError::Store(_))),
        "the bytes are not what was announced: {refused:?}"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_state_of_many_frames_keeps_every_other_byte(pool: PgPool) {
    let world = World::new(pool).await;
    let rest = format!(r#","filling":"{}""#, "x".repeat(300_000));
    let large = publish(&world, 1, &bytes(1, &rest)).await;
    let serial = 9_007_199_254_740_993;
    let stored = under_serial(&world.store, &large, serial).await.unwrap();
    let (organization, kind) = (world.organization, ObjectKind::State);
    let content = world
        .store
        .objects
        .read_to_vec(organization, stored.object, kind, 1 << 20);
    assert_eq!(content.await.unwrap(), bytes(serial, &rest));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_published_states_come_page_by_page_newest_first(pool: PgPool) {
    use stackship_store::records::Page;

    let rolling = Rolling::new(pool).await;
    let world = &rolling.world;
    world.command_workspace(rolling.command()).await;
    let page = async |after: Option<&str>| {
        let page = Page::new(after.map(str::to_owned), 2);
        let rows = states::published(&world.store, world.organization, world.workspace, &page);
        let serials = rows.await.unwrap().into_iter().map(|row| row.serial);
        serials.collect::<Vec<_>>()
    };
    assert_eq!(page(None).await, [6, 5]);
    assert_eq!(page(Some("5")).await, [1]);
    assert_eq!(page(Some("1")).await, Vec::<i64>::new());
    let (other, _, workspace) = world.other_tenant().await;
    let first = Page::first();
    for (organization, workspace) in [(other, world.workspace), (world.organization, workspace)] {
        let rows = states::published(&world.store, organization, workspace, &first).await;
        assert!(rows.unwrap().is_empty());
    }
}
