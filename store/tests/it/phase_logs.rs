//! Logs of phases: whatever is sent twice, early or by a lost attempt, a reader sees what was
//! written, once, in order, up to a bound.

use std::sync::Arc;

use sqlx::PgPool;
use stackship_domain::ids::RunId;
use stackship_domain::run::RunKind;
use stackship_store::phase_logs::{
    AppendOutcome, Chunk, LOG_BYTES_MAX, LogPhase, LogSlice, append, close, read, tail_lines,
};

use crate::support::World;

const PLAN: LogPhase = LogPhase::Plan;

async fn write(
    world: &World,
    run: RunId,
    attempt_number: u32,
    sequence: u64,
    bytes: &[u8],
) -> AppendOutcome {
    append(
        &world.store,
        run,
        PLAN,
        Chunk {
            attempt_number,
            sequence,
            bytes,
        },
    )
    .await
    .unwrap()
}

async fn slice(world: &World, run: RunId, offset: u64, limit: usize) -> LogSlice {
    read(&world.store, world.organization, run, PLAN, offset, limit)
        .await
        .unwrap()
}

/// The whole log, read in small parts.
async fn whole(world: &World, run: RunId, limit: usize) -> Vec<u8> {
    let mut content = Vec::new();
    loop {
        let part = slice(world, run, content.len() as u64, limit).await;
        assert!(part.bytes.len() <= limit);
        assert_eq!(
            part.next_offset,
            content.len() as u64 + part.bytes.len() as u64
        );
        if part.bytes.is_empty() {
            assert_eq!(part.total, content.len() as u64);
            return content;
        }
        content.extend(part.bytes);
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_chunk_counts_once_and_never_early(pool: PgPool) {
    let world = World::new(pool).await;
    let run = world.run(RunKind::PlanAndApply).await;
    assert_eq!(
        write(&world, run, 1, 1, b"early").await,
        AppendOutcome::Gap { expected: 0 }
    );
    assert_eq!(
        write(&world, run, 1, 0, b"one\n").await,
        AppendOutcome::Stored { end_offset: 4 }
    );
    assert_eq!(
        write(&world, run, 1, 0, b"one\n").await,
        AppendOutcome::Repeated
    );
    assert_eq!(
        write(&world, run, 1, 2, b"three\n").await,
        AppendOutcome::Gap { expected: 1 }
    );
    assert_eq!(
        write(&world, run, 1, 1, b"").await,
        AppendOutcome::Stored { end_offset: 4 }
    );
    assert_eq!(
        write(&world, run, 1, 2, b"two\n").await,
        AppendOutcome::Stored { end_offset: 8 }
    );
    assert_eq!(whole(&world, run, 3).await, b"one\ntwo\n");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_later_attempt_goes_on_and_an_earlier_one_is_refused(pool: PgPool) {
    let world = World::new(pool).await;
    let run = world.run(RunKind::PlanAndApply).await;
    write(&world, run, 1, 0, b"first\n").await;
    write(&world, run, 1, 1, b"lost\n").await;
    assert_eq!(
        write(&world, run, 2, 1, b"x").await,
        AppendOutcome::Gap { expected: 0 }
    );
    assert_eq!(
        write(&world, run, 2, 0, b"second\n").await,
        AppendOutcome::Stored { end_offset: 18 }
    );
    assert_eq!(
        write(&world, run, 1, 2, b"late\n").await,
        AppendOutcome::Gap { expected: 1 }
    );
    assert_eq!(whole(&world, run, 100).await, b"first\nlost\nsecond\n");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_log_is_kept_up_to_its_bound_and_says_so(pool: PgPool) {
    let world = World::new(pool).await;
    let run = world.run(RunKind::PlanAndApply).await;
    let chunk = vec![b'a'; 3 << 20];
    for sequence in 0..5 {
        let stored = AppendOutcome::Stored {
            end_offset: (sequence + 1) * (3 << 20),
        };
        assert_eq!(write(&world, run, 1, sequence, &chunk).await, stored);
    }
    let AppendOutcome::Stored { end_offset } = write(&world, run, 1, 5, &chunk).await else {
        panic!("what still fits was not taken");
    };
    assert!(
        end_offset > LOG_BYTES_MAX && end_offset < LOG_BYTES_MAX + 200,
        "{end_offset}"
    );
    for (attempt, sequence) in [(1, 5), (1, 6), (2, 0)] {
        assert_eq!(
            write(&world, run, attempt, sequence, b"more").await,
            AppendOutcome::Full
        );
    }
    let content = whole(&world, run, 1 << 20).await;
    assert_eq!(content.len() as u64, end_offset);
    let bound = usize::try_from(LOG_BYTES_MAX).unwrap();
    assert!(content[..bound].iter().all(|byte| *byte == b'a'));
    assert!(
        std::str::from_utf8(&content[bound..])
            .unwrap()
            .contains("log truncated")
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_closed_log_takes_no_more_and_says_when_it_was_read(pool: PgPool) {
    let world = World::new(pool).await;
    let run = world.run(RunKind::PlanAndApply).await;
    write(&world, run, 1, 0, b"all").await;
    assert!(!slice(&world, run, 0, 100).await.closed);
    close(&world.store, run, PLAN).await.unwrap();
    let closed_at = "select closed_at::text from record.phase_logs";
    let first: String = sqlx::query_scalar(closed_at)
        .fetch_one(&world.owner)
        .await
        .unwrap();
    close(&world.store, run, PLAN).await.unwrap();
    let again: String = sqlx::query_scalar(closed_at)
        .fetch_one(&world.owner)
        .await
        .unwrap();
    assert_eq!(first, again);
    assert_eq!(write(&world, run, 1, 1, b"more").await, AppendOutcome::Full);
    let slice = slice(&world, run, 0, 100).await;
    assert_eq!(
        slice,
        LogSlice {
            bytes: b"all".to_vec(),
            next_offset: 3,
            closed: true,
            total: 3
        }
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_log_that_nobody_wrote_can_be_read_and_closed(pool: PgPool) {
    let world = World::new(pool).await;
    let run = world.run(RunKind::PlanAndApply).await;
    let nothing = LogSlice {
        bytes: vec![],
        next_offset: 0,
        closed: false,
        total: 0,
    };
    assert_eq!(slice(&world, run, 0, 100).await, nothing);
    close(&world.store, run, PLAN).await.unwrap();
    assert_eq!(
        slice(&world, run, 0, 100).await,
        LogSlice {
            closed: true,
            ..nothing
        }
    );
    let beyond = slice(&world, run, 50, 100).await;
    assert_eq!((beyond.bytes.len(), beyond.next_offset), (0, 50));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn another_organization_reads_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let run = world.run(RunKind::PlanAndApply).await;
    write(&world, run, 1, 0, b"ours").await;
    let (other, ..) = world.other_tenant().await;
    let slice = read(&world.store, other, run, PLAN, 0, 100).await.unwrap();
    assert_eq!(
        slice,
        LogSlice {
            bytes: vec![],
            next_offset: 0,
            closed: false,
            total: 0
        }
    );
    let tail = tail_lines(&world.store, other, run, PLAN, 8, 1000)
        .await
        .unwrap();
    assert_eq!(tail, Vec::<String>::new());
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_tail_holds_whole_lines_only(pool: PgPool) {
    let world = World::new(pool).await;
    let run = world.run(RunKind::PlanAndApply).await;
    let tail = async |lines, bytes| {
        tail_lines(&world.store, world.organization, run, PLAN, lines, bytes)
            .await
            .unwrap()
    };
    assert_eq!(tail(8, 100).await, Vec::<String>::new());
    let text: String = (0..20).fold(String::new(), |text, line| {
        text + &format!("line {line:02}\n")
    });
    for (sequence, chunk) in text.as_bytes().chunks(5).enumerate() {
        write(&world, run, 1, sequence as u64, chunk).await;
    }
    assert_eq!(tail(2, 1000).await, ["line 18", "line 19"]);
    // Twenty bytes reach into the middle of line 17.
    assert_eq!(tail(8, 20).await, ["line 18", "line 19"]);
    assert_eq!(tail(100, usize::MAX).await.len(), 8);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn concurrent_appenders_lose_nothing_and_double_nothing(pool: PgPool) {
    const CHUNKS: u64 = 40;
    let world = Arc::new(World::new(pool).await);
    let run = world.run(RunKind::PlanAndApply).await;
    // Every appender sends every chunk, as a runner does that never hears an answer.
    let appender = async |world: Arc<World>| {
        for sequence in 0..CHUNKS {
            let chunk = format!("chunk {sequence};");
            match write(&world, run, 1, sequence, chunk.as_bytes()).await {
                AppendOutcome::Stored { .. } | AppendOutcome::Repeated => {}
                refused @ (AppendOutcome::Gap { .. } | AppendOutcome::Full) => {
                    panic!("{sequence}: {refused:?}")
                }
            }
        }
    };
    let appenders = (0..6).map(|_| appender(Arc::clone(&world)));
    futures::future::join_all(appenders).await;
    let expected = (0..CHUNKS).fold(String::new(), |text, sequence| {
        text + &format!("chunk {sequence};")
    });
    assert_eq!(
        String::from_utf8(whole(&world, run, 64).await).unwrap(),
        expected
    );
}
