//! Whatever is done to stored bytes or their row, a reader gets what was written or an error, and
//! never a byte that was not written in this place.

use std::path::PathBuf;

use futures::TryStreamExt as _;
use sqlx::PgPool;
use stackship_domain::ids::{ObjectId, OrganizationId};
use stackship_store::StoreError;
use stackship_store::objects::{
    Corruption, KeyError, KeyRing, ObjectError, ObjectKind, Objects, StoredObject,
};

use crate::support::World;

const HEADER: usize = 17;
const FRAME: usize = 64 * 1024;
const SEALED_FRAME: usize = FRAME + 16;

/// An object of two full frames and a short one.
struct Victim {
    world: World,
    plain: Vec<u8>,
    stored: StoredObject,
}

impl Victim {
    async fn new(pool: PgPool) -> Self {
        let world = World::new(pool).await;
        let plain: Vec<u8> = (0..2 * FRAME + 1000)
            .map(|index| u8::try_from(index % 241).unwrap())
            .collect();
        let stored = world
            .store
            .objects
            .put_bytes(world.new_object(ObjectKind::Plan), &plain)
            .await
            .unwrap();
        Self {
            world,
            plain,
            stored,
        }
    }

    fn file(&self, kind: ObjectKind, id: ObjectId) -> PathBuf {
        self.world.directory().join(format!(
            "objects/{}/{}/{id}",
            self.world.organization,
            kind.as_str()
        ))
    }

    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let file = self.file(ObjectKind::Plan, self.stored.id);
        let mut bytes = std::fs::read(&file).unwrap();
        change(&mut bytes);
        std::fs::write(&file, bytes).unwrap();
    }

    async fn change_row(&self, change: &str) {
        let statement = format!(
            "update record.objects set {change} where object_id = '{}'",
            self.stored.id
        );
        let done = sqlx::raw_sql(&statement)
            .execute(&self.world.owner)
            .await
            .unwrap();
        assert_eq!(done.rows_affected(), 1);
    }

    /// What a reader gets before it gets an error.
    async fn read_in(
        &self,
        organization: OrganizationId,
        kind: ObjectKind,
    ) -> (Vec<u8>, ObjectError) {
        let mut seen = Vec::new();
        let outcome: Result<(), StoreError> = async {
            let mut reader = self
                .world
                .store
                .objects
                .reader(organization, self.stored.id, kind)
                .await?;
            while let Some(frame) = reader.try_next().await? {
                seen.extend_from_slice(&frame);
            }
            Ok(())
        }
        .await;
        match outcome {
            Err(StoreError::Object(error)) => (seen, error),
            other => panic!("the tampering was not noticed: {other:?}"),
        }
    }

    async fn corruption(&self) -> Corruption {
        let (seen, error) = self
            .read_in(self.world.organization, ObjectKind::Plan)
            .await;
        assert!(
            self.plain.starts_with(&seen),
            "bytes came out that were never written here"
        );
        assert!(
            seen.len() < self.plain.len(),
            "everything came out before the error"
        );
        match error {
            ObjectError::Corrupt(corruption) => corruption,
            other => panic!("not found to be corrupt: {other:?}"),
        }
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_flipped_bit_anywhere_is_noticed(pool: PgPool) {
    let victim = Victim::new(pool).await;
    let last = victim
        .file(ObjectKind::Plan, victim.stored.id)
        .metadata()
        .unwrap()
        .len();
    let last = usize::try_from(last).unwrap() - 1;
    let places = [
        ("magic", 0, Corruption::Header),
        ("version", 4, Corruption::Header),
        ("algorithm", 5, Corruption::Header),
        ("frame size", 9, Corruption::Header),
        ("nonce prefix", 10, Corruption::Frame),
        ("first frame", HEADER, Corruption::Frame),
        ("first tag", HEADER + FRAME, Corruption::Frame),
        ("second frame", HEADER + SEALED_FRAME + 5, Corruption::Frame),
        ("last frame", HEADER + 2 * SEALED_FRAME, Corruption::Frame),
        ("last tag", last, Corruption::Frame),
    ];
    for (place, at, expected) in places {
        victim.change(|bytes| bytes[at] ^= 1);
        assert_eq!(victim.corruption().await, expected, "{place}");
        victim.change(|bytes| bytes[at] ^= 1);
    }
    let whole = victim.world.store.objects;
    let read = whole
        .read_to_vec(
            victim.world.organization,
            victim.stored.id,
            ObjectKind::Plan,
            1 << 20,
        )
        .await;
    assert!(read.unwrap() == victim.plain, "every change was taken back");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_cut_or_an_addition_is_noticed(pool: PgPool) {
    let victim = Victim::new(pool).await;
    victim.change(|bytes| bytes.push(0));
    assert_eq!(victim.corruption().await, Corruption::Length);
    victim.change(|bytes| bytes.truncate(bytes.len() - 2));
    assert_eq!(victim.corruption().await, Corruption::Length);
    victim.change(|bytes| bytes.truncate(3));
    assert_eq!(victim.corruption().await, Corruption::Length);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_cut_between_frames_is_noticed_even_with_a_forged_length(pool: PgPool) {
    let victim = Victim::new(pool).await;
    victim.change(|bytes| bytes.truncate(HEADER + 2 * SEALED_FRAME));
    victim.change_row(&format!("bytes = {}", 2 * FRAME)).await;
    assert_eq!(victim.corruption().await, Corruption::Frame);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn frames_in_another_order_are_noticed(pool: PgPool) {
    let victim = Victim::new(pool).await;
    victim.change(|bytes| {
        let (first, second) = bytes[HEADER..HEADER + 2 * SEALED_FRAME].split_at_mut(SEALED_FRAME);
        first.swap_with_slice(second);
    });
    assert_eq!(victim.corruption().await, Corruption::Frame);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_forged_digest_withholds_the_last_frame(pool: PgPool) {
    let victim = Victim::new(pool).await;
    victim
        .change_row("sha256 = decode(repeat('ab', 32), 'hex')")
        .await;
    assert_eq!(victim.corruption().await, Corruption::Digest);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_object_does_not_open_in_another_organization(pool: PgPool) {
    let victim = Victim::new(pool).await;
    let (other, ..) = victim.world.other_tenant().await;
    let (_, error) = victim.read_in(other, ObjectKind::Plan).await;
    assert!(matches!(error, ObjectError::NotFound), "{error:?}");
    victim
        .change_row(&format!("workspace_id = null, organization_id = '{other}'"))
        .await;
    let (seen, error) = victim.read_in(other, ObjectKind::Plan).await;
    assert!(
        matches!(error, ObjectError::Corrupt(Corruption::Frame)),
        "{error:?}"
    );
    assert_eq!(seen.len(), 0);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_object_does_not_open_as_another_kind(pool: PgPool) {
    let victim = Victim::new(pool).await;
    let organization = victim.world.organization;
    let (_, error) = victim.read_in(organization, ObjectKind::PlanJson).await;
    assert!(matches!(error, ObjectError::NotFound), "{error:?}");
    victim.change_row("kind = 'plan_json'").await;
    let (seen, error) = victim.read_in(organization, ObjectKind::PlanJson).await;
    assert!(
        matches!(error, ObjectError::Corrupt(Corruption::Frame)),
        "{error:?}"
    );
    assert_eq!(seen.len(), 0);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn another_objects_bytes_do_not_open_even_with_its_key(pool: PgPool) {
    let victim = Victim::new(pool).await;
    let objects = &victim.world.store.objects;
    let other = objects
        .put_bytes(victim.world.new_object(ObjectKind::Plan), &victim.plain)
        .await
        .unwrap();
    std::fs::copy(
        victim.file(ObjectKind::Plan, other.id),
        victim.file(ObjectKind::Plan, victim.stored.id),
    )
    .unwrap();
    assert_eq!(victim.corruption().await, Corruption::Frame);
    victim
        .change_row(&format!(
            "wrapped_key = (select wrapped_key from record.objects where object_id = '{}')",
            other.id
        ))
        .await;
    let (_, error) = victim
        .read_in(victim.world.organization, ObjectKind::Plan)
        .await;
    assert!(
        matches!(error, ObjectError::Key(KeyError::Unauthentic)),
        "{error:?}"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_missing_file_is_an_error(pool: PgPool) {
    let victim = Victim::new(pool).await;
    std::fs::remove_file(victim.file(ObjectKind::Plan, victim.stored.id)).unwrap();
    let (_, error) = victim
        .read_in(victim.world.organization, ObjectKind::Plan)
        .await;
    assert!(matches!(error, ObjectError::Storage(_)), "{error:?}");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn another_key_opens_nothing_and_names_the_missing_one(pool: PgPool) {
    let victim = Victim::new(pool).await;
    let directory = victim.world.directory();
    let keys = KeyRing::load_or_create(&directory.join("other/key")).unwrap();
    let objects = Objects::open(
        &directory.join("objects"),
        keys,
        victim.world.store.pool.clone(),
    )
    .unwrap();
    let outcome = objects
        .reader(
            victim.world.organization,
            victim.stored.id,
            ObjectKind::Plan,
        )
        .await;
    let error = outcome.expect_err("another key opened it");
    assert!(
        matches!(
            error,
            StoreError::Object(ObjectError::Key(KeyError::Unknown { .. }))
        ),
        "{error:?}"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_copy_of_a_corrupt_object_leaves_no_file(pool: PgPool) {
    let victim = Victim::new(pool).await;
    victim.change(|bytes| bytes[HEADER + 2 * SEALED_FRAME] ^= 1);
    let target = victim.world.directory().join("copies/plan");
    std::fs::create_dir(target.parent().unwrap()).unwrap();
    let objects = &victim.world.store.objects;
    let outcome = objects
        .copy_to_file(
            victim.world.organization,
            victim.stored.id,
            ObjectKind::Plan,
            &target,
        )
        .await;
    assert!(
        matches!(
            outcome,
            Err(StoreError::Object(ObjectError::Corrupt(Corruption::Frame)))
        ),
        "{outcome:?}"
    );
    assert_eq!(
        std::fs::read_dir(target.parent().unwrap()).unwrap().count(),
        0
    );
}
