//! What is stored comes back, to the byte, in constant memory; what may not be stored leaves nothing.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::TryStreamExt as _;
use sqlx::PgPool;
use stackship_domain::Sha256Digest;
use stackship_store::StoreError;
use stackship_store::clock;
use stackship_store::objects::{NewObject, ObjectError, ObjectKind};
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

use crate::support::World;

const FRAME: usize = 64 * 1024;

fn content(length: usize) -> Vec<u8> {
    (0..length)
        .map(|index| u8::try_from(index % 251).unwrap())
        .collect()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn every_length_comes_back_to_the_byte(pool: PgPool) {
    let world = World::new(pool).await;
    for length in [0, 1, FRAME - 1, FRAME, FRAME + 1, 2 * FRAME, 10 << 20] {
        let plain = content(length);
        let stored = world
            .store
            .objects
            .put_bytes(world.new_object(ObjectKind::Plan), &plain)
            .await
            .unwrap();
        assert_eq!(
            (stored.bytes, stored.sha256),
            (length as u64, Sha256Digest::of(&plain))
        );
        let reader = world
            .store
            .objects
            .reader(world.organization, stored.id, ObjectKind::Plan)
            .await
            .unwrap();
        assert_eq!(
            (reader.bytes(), reader.sha256()),
            (stored.bytes, stored.sha256)
        );
        let frames: Vec<_> = reader.try_collect().await.unwrap();
        assert!(
            frames.iter().all(|frame| frame.len() <= FRAME),
            "{length}: a frame is too large"
        );
        assert!(frames.concat() == plain, "{length}: other bytes came back");
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_object_is_described_without_being_opened(pool: PgPool) {
    let world = World::new(pool).await;
    let stored = world
        .store
        .objects
        .put_bytes(world.new_object(ObjectKind::State), b"{}")
        .await
        .unwrap();
    let described = world
        .store
        .objects
        .describe(world.organization, stored.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(described.kind, ObjectKind::State);
    assert_eq!(described.workspace, Some(world.workspace));
    assert_eq!((described.bytes, described.sha256), (2, stored.sha256));
    assert_eq!(
        world
            .store
            .objects
            .describe(world.organization, clock::fresh())
            .await
            .unwrap(),
        None
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn nothing_readable_lies_on_the_disk(pool: PgPool) {
    let world = World::new(pool).await;
    let secret = b"hunter2 hunter2 hunter2";
    world
        .store
        .objects
        .put_bytes(world.new_object(ObjectKind::State), secret)
        .await
        .unwrap();
    for file in world.object_files() {
        let bytes = std::fs::read(&file).unwrap();
        assert!(
            !bytes.windows(7).any(|window| window == b"hunter2"),
            "{} holds the secret",
            file.display()
        );
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_object_that_is_too_large_leaves_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let new = NewObject {
        bytes_max: 100_000,
        ..world.new_object(ObjectKind::State)
    };
    let outcome = world.store.objects.put_bytes(new, &content(100_001)).await;
    assert!(
        matches!(
            outcome,
            Err(StoreError::Object(ObjectError::TooLarge {
                bytes_max: 100_000
            }))
        ),
        "{outcome:?}"
    );
    assert_eq!(world.object_files(), Vec::<PathBuf>::new());
    assert_eq!(object_rows(&world).await, 0);
    assert!(
        world
            .store
            .objects
            .put_bytes(new, &content(100_000))
            .await
            .is_ok()
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_source_that_breaks_off_leaves_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let source = content(FRAME * 2).chain_with_failure();
    let outcome = world
        .store
        .objects
        .put(world.new_object(ObjectKind::State), source)
        .await;
    assert!(
        matches!(outcome, Err(StoreError::Object(ObjectError::Source(_)))),
        "{outcome:?}"
    );
    assert_eq!(world.object_files(), Vec::<PathBuf>::new());
    assert_eq!(object_rows(&world).await, 0);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_whole_read_has_a_bound(pool: PgPool) {
    let world = World::new(pool).await;
    let stored = world
        .store
        .objects
        .put_bytes(world.new_object(ObjectKind::Plan), &content(10))
        .await
        .unwrap();
    let read = async |bytes_max| {
        world
            .store
            .objects
            .read_to_vec(world.organization, stored.id, ObjectKind::Plan, bytes_max)
            .await
    };
    assert_eq!(read(10).await.unwrap(), content(10));
    let outcome = read(9).await;
    assert!(
        matches!(
            outcome,
            Err(StoreError::Object(ObjectError::TooLarge { bytes_max: 9 }))
        ),
        "{outcome:?}"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_copy_is_private(pool: PgPool) {
    let world = World::new(pool).await;
    let plain = content(FRAME + 7);
    let stored = world
        .store
        .objects
        .put_bytes(world.new_object(ObjectKind::Plan), &plain)
        .await
        .unwrap();
    let target = world.directory().join("plan");
    world
        .store
        .objects
        .copy_to_file(world.organization, stored.id, ObjectKind::Plan, &target)
        .await
        .unwrap();
    assert!(std::fs::read(&target).unwrap() == plain);
    assert_eq!(
        std::fs::metadata(&target).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_large_object_streams_in_constant_memory(pool: PgPool) {
    let world = World::new(pool).await;
    let total = 40 << 20;
    let source = Watched {
        root: world.directory().join("objects"),
        total,
        given: 0,
        held_max: 0,
    };
    let mut source = source;
    let stored = world
        .store
        .objects
        .put(world.new_object(ObjectKind::State), &mut source)
        .await
        .unwrap();
    assert_eq!(stored.bytes, total as u64);
    // One part, and the two frames that are looked at together.
    assert!(
        source.held_max <= (8 << 20) + 3 * FRAME,
        "{} bytes were held at once",
        source.held_max
    );
    let mut reader = world
        .store
        .objects
        .reader(world.organization, stored.id, ObjectKind::State)
        .await
        .unwrap();
    let mut seen = 0;
    while let Some(frame) = reader.try_next().await.unwrap() {
        assert!(frame.len() <= FRAME && frame.iter().all(|byte| *byte == 7));
        seen += frame.len();
    }
    assert_eq!(seen, total);
}

async fn object_rows(world: &World) -> i64 {
    sqlx::query_scalar("select count(*) from record.objects")
        .fetch_one(&world.owner)
        .await
        .unwrap()
}

/// Gives `total` bytes and watches how many of them have not reached the disk.
struct Watched {
    root: PathBuf,
    total: usize,
    given: usize,
    held_max: usize,
}

impl Watched {
    fn on_disk(&self) -> usize {
        let mut directories = vec![self.root.clone()];
        let mut bytes = 0;
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                let about = entry.metadata().unwrap();
                if about.is_dir() {
                    directories.push(entry.path());
                } else {
                    bytes += usize::try_from(about.len()).unwrap();
                }
            }
        }
        bytes
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let amount = out.remaining().min(self.total - self.given);
        out.put_slice(&vec![7; amount]);
        self.given += amount;
        let held = self.given.saturating_sub(self.on_disk());
        self.held_max = self.held_max.max(held);
        Poll::Ready(Ok(()))
    }
}

trait ChainWithFailure {
    fn chain_with_failure(self) -> impl AsyncRead + Send;
}

impl ChainWithFailure for Vec<u8> {
    /// These bytes, and then a connection that breaks.
    fn chain_with_failure(self) -> impl AsyncRead + Send {
        let broken =
            tokio_util::io::StreamReader::new(futures::stream::iter([Err::<bytes::Bytes, _>(
                io::Error::from(io::ErrorKind::ConnectionReset),
            )]));
        io::Cursor::new(self).chain(broken)
    }
}
