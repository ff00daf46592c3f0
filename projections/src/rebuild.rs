//! Making the read models anew, from the first event on, while the old ones are still read.
//!
//! Copies of the tables are filled in batches, each with its checkpoint; then, in one transaction
//! that holds the live checkpoint, the last events are added and the copies take the place of the
//! old tables. Readers see the old set or the new one, never a part. A copy whose audit differs from
//! the chain that was there is refused: a rebuild must not be a way to rewrite the past.

use std::time::{Duration, Instant};

use sqlx::{Connection as _, Executor as _, PgConnection, PgPool};
use stackship_store::StoreError;
use stackship_store::notify::{self, Topic};

use crate::ProjectionError;
use crate::projector::{Pass, lock, pass, step};
use crate::target::{NEXT_SCHEMA, Target};

/// The most events of one transaction of a rebuild.
pub const BATCH_EVENTS_REBUILD: u16 = 5_000;
/// The most batches that the last transaction adds before it lets writers and readers go on.
const LAST_BATCHES_MAX: u32 = 8;
/// How often the last transaction is tried while others keep it from its tables.
const SWAP_TRIES_MAX: u32 = 10;
/// Keeps two rebuilds apart; any number that nothing else in this database uses.
const REBUILD_LOCK: i64 = 0x5354_5245_4255;

/// Copied and replaced in this order, in which queries lock them too.
const TABLES: [&str; 5] = [
    "run_review",
    "run_inventory",
    "workspace_status",
    "audit_entries",
    "audit_heads",
];

/// What a rebuild did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RebuildReport {
    /// How many events it applied.
    pub events: u64,
    /// In how many batches.
    pub batches: u64,
    /// The generation that is read now.
    pub generation: i64,
    /// How long it took.
    pub took: Duration,
}

/// Why the read models could not be made anew. The old ones are still there.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// Another rebuild runs.
    #[error("another rebuild is running")]
    Running,
    /// The log does not lead to the audit that was there: an event was changed or is missing.
    #[error(
        "the log does not lead to the audit of {organization} at entry {number}: an event was changed or is missing"
    )]
    AuditDiffers {
        /// Whose audit.
        organization: String,
        /// The newest entry that was there.
        number: i64,
    },
    /// There is no live checkpoint to follow.
    #[error("view.checkpoints has no live row")]
    CheckpointMissing,
    /// Others kept the rebuilt tables from taking their place.
    #[error("the rebuilt tables could not take their place: other sessions kept the old ones busy")]
    Busy,
    /// Reading, folding or writing failed.
    #[error(transparent)]
    Projection(#[from] ProjectionError),
}

impl From<sqlx::Error> for RebuildError {
    fn from(error: sqlx::Error) -> Self {
        Self::Projection(error.into())
    }
}

impl From<StoreError> for RebuildError {
    fn from(error: StoreError) -> Self {
        Self::Projection(error.into())
    }
}

/// Makes the read models anew. `owner_pool` has the rights of the schema's owner.
pub async fn rebuild(owner_pool: &PgPool) -> Result<RebuildReport, RebuildError> {
    let began = Instant::now();
    // Detached, so that the lock and whatever is unfinished end with this call, however it ends.
    let mut connection = owner_pool.acquire().await?.detach();
    take_turn(&mut connection).await?;
    let outcome = make(&mut connection).await;
    // Said, because a session that is closed keeps its locks until the server has noticed.
    let unlocked = sqlx::query("select pg_advisory_unlock($1)")
        .bind(REBUILD_LOCK)
        .execute(&mut connection)
        .await;
    let (generation, done) = outcome?;
    unlocked?;
    connection.close().await?;
    notify::send(owner_pool, Topic::Projected, "").await?;
    Ok(RebuildReport {
        events: done.events,
        batches: done.batches,
        generation,
        took: began.elapsed(),
    })
}

async fn make(connection: &mut PgConnection) -> Result<(i64, Done), RebuildError> {
    prepare(connection).await?;
    let mut done = Done::default();
    for _ in 0..SWAP_TRIES_MAX {
        fill(connection, &mut done).await?;
        if let Some(swapped) = swap(connection, done).await? {
            return Ok(swapped);
        }
    }
    Err(RebuildError::Busy)
}

#[derive(Debug, Default, Clone, Copy)]
struct Done {
    events: u64,
    batches: u64,
}

impl Done {
    fn add(&mut self, events: usize) {
        self.events += u64::try_from(events).expect("a batch's size fits 64 bits");
        self.batches += 1;
    }
}

async fn take_turn(connection: &mut PgConnection) -> Result<(), RebuildError> {
    let mine: bool = sqlx::query_scalar("select pg_try_advisory_lock($1)")
        .bind(REBUILD_LOCK)
        .fetch_one(connection)
        .await?;
    if mine {
        Ok(())
    } else {
        Err(RebuildError::Running)
    }
}

/// Makes empty copies of the tables; what an earlier rebuild left unfinished goes.
async fn prepare(connection: &mut PgConnection) -> Result<(), RebuildError> {
    let mut transaction = connection.begin().await?;
    transaction
        .execute(format!("drop schema if exists {NEXT_SCHEMA} cascade").as_str())
        .await?;
    transaction
        .execute(format!("create schema {NEXT_SCHEMA}").as_str())
        .await?;
    for table in TABLES {
        let copy = format!("create table {NEXT_SCHEMA}.{table} (like view.{table} including all)");
        transaction.execute(copy.as_str()).await?;
    }
    sqlx::query("select view.dress($1)")
        .bind(NEXT_SCHEMA)
        .execute(&mut *transaction)
        .await?;
    sqlx::query("delete from view.checkpoints where name = 'rebuild'")
        .execute(&mut *transaction)
        .await?;
    let begun = sqlx::query(
        "insert into view.checkpoints (name, generation) \
         select 'rebuild', generation + 1 from view.checkpoints where name = 'live'",
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected();
    if begun != 1 {
        return Err(RebuildError::CheckpointMissing);
    }
    transaction.commit().await?;
    Ok(())
}

/// Applies batches until nothing more can be read.
async fn fill(connection: &mut PgConnection, done: &mut Done) -> Result<(), RebuildError> {
    loop {
        match pass(connection, Target::Next, BATCH_EVENTS_REBUILD).await? {
            Pass::Applied(applied) => done.add(applied.events),
            Pass::Busy | Pass::Idle | Pass::HeldBack(_) => return Ok(()),
        }
    }
}

/// Adds the last events and puts the copies in place: the new generation and all that was done, or
/// `None` when somebody was in the way and it is worth another try.
async fn swap(
    connection: &mut PgConnection,
    done: Done,
) -> Result<Option<(i64, Done)>, RebuildError> {
    match try_swap(connection, done).await {
        Err(RebuildError::Projection(ProjectionError::Store(StoreError::Database(error))))
            if in_the_way(&error) =>
        {
            Ok(None)
        }
        outcome => outcome,
    }
}

async fn try_swap(
    connection: &mut PgConnection,
    mut done: Done,
) -> Result<Option<(i64, Done)>, RebuildError> {
    let mut transaction = connection.begin().await?;
    transaction.execute("set local lock_timeout = '2s'").await?;
    // With the live checkpoint in hand no projector moves, so the copies can come level with it.
    let live = sqlx::query("select from view.checkpoints where name = 'live' for update")
        .fetch_optional(&mut *transaction)
        .await?;
    if live.is_none() {
        return Err(RebuildError::CheckpointMissing);
    }
    if !come_level(&mut transaction, &mut done).await? {
        return Ok(None);
    }
    compare_audits(&mut transaction).await?;
    for table in TABLES {
        let lock = format!("lock table view.{table} in access exclusive mode");
        transaction.execute(lock.as_str()).await?;
    }
    for table in TABLES {
        let replace =
            format!("drop table view.{table}; alter table {NEXT_SCHEMA}.{table} set schema view");
        transaction.execute(replace.as_str()).await?;
    }
    transaction
        .execute(format!("drop schema {NEXT_SCHEMA}").as_str())
        .await?;
    sqlx::query("delete from view.checkpoints where name = 'live'")
        .execute(&mut *transaction)
        .await?;
    let generation: i64 = sqlx::query_scalar(
        "update view.checkpoints set name = 'live' where name = 'rebuild' returning generation",
    )
    .fetch_one(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(Some((generation, done)))
}

/// Applies what is left; `false` when there is too much for one transaction, or when the copies are
/// still behind what readers have seen.
async fn come_level(connection: &mut PgConnection, done: &mut Done) -> Result<bool, RebuildError> {
    for _ in 0..LAST_BATCHES_MAX {
        let Some(next) = lock(connection, Target::Next).await? else {
            return Ok(false);
        };
        match step(connection, Target::Next, next, BATCH_EVENTS_REBUILD).await? {
            Pass::Applied(applied) => done.add(applied.events),
            Pass::Busy => return Ok(false),
            Pass::Idle | Pass::HeldBack(_) => {
                let level: bool = sqlx::query_scalar(
                    "select (next.epoch, next.transaction_id, next.global_position) \
                         >= (live.epoch, live.transaction_id, live.global_position) \
                     from view.checkpoints as next, view.checkpoints as live \
                     where next.name = 'rebuild' and live.name = 'live'",
                )
                .fetch_one(connection)
                .await?;
                return Ok(level);
            }
        }
    }
    Ok(false)
}

/// Every audit that was there must be the beginning of the one that was made.
async fn compare_audits(connection: &mut PgConnection) -> Result<(), RebuildError> {
    let differs: Option<(String, i64)> = sqlx::query_as(&format!(
        "select head.organization_id, head.number from view.audit_heads as head \
         left join {NEXT_SCHEMA}.audit_entries as made using (organization_id, number) \
         where made.hash is distinct from head.hash order by head.organization_id limit 1"
    ))
    .fetch_optional(connection)
    .await?;
    match differs {
        None => Ok(()),
        Some((organization, number)) => Err(RebuildError::AuditDiffers {
            organization,
            number,
        }),
    }
}

/// A lock that could not be had in time, or a deadlock with a reader.
fn in_the_way(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
        .is_some_and(|code| matches!(&*code, "55P03" | "40P01"))
}
