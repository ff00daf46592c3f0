//! From the queue to the offer of a plan.

use stackship_domain::ids::RunId;
use stackship_domain::run::{Command, Facts, Hold, Phase, Predecessor, Status};
use stackship_domain::workspace::Holder;
use stackship_domain::{Timestamp, workspace};
use stackship_store::attempts::{self, AttemptRow, Offer};
use stackship_store::log::CommandError;
use stackship_store::records::{locks, runs_record, workspaces};
use stackship_store::{Store, StoreError, clock, states};

use super::{Step, Subject, end};
use crate::{StepError, system};

/// The most runs that one look supersedes; the next look goes on.
const SUPERSEDED_MAX: i64 = 100;

pub(super) async fn step(run: &Subject<'_>) -> Result<Step, StepError> {
    match run.hold {
        Hold::Waiting => acquire(run).await,
        Hold::Held(_) => offer_plan(run).await,
        Hold::NotNeeded => {
            supersede_older(run).await?;
            offer_plan(run).await
        }
    }
}

/// Takes the place of older speculative runs of the same ref that nobody needs any more. It comes
/// before the run's own plan, so whatever becomes of this process, it was done by then.
async fn supersede_older(run: &Subject<'_>) -> Result<(), StepError> {
    let Some(git_ref) = &run.facts.source.git_ref else {
        return Ok(());
    };
    let pool = &run.store.pool;
    let older =
        runs_record::older_of_ref(pool, run.facts.workspace, git_ref, run.id, SUPERSEDED_MAX)
            .await?;
    for older in older {
        let (state, _) = run.store.runs.load(older).await?;
        // Later, a plan is there already, and its result costs nothing more.
        if !matches!(state.status(), Some(Status::Queued | Status::Planning)) {
            continue;
        }
        let (by, at) = (run.id, clock::now());
        let context = system(
            run.facts.organization,
            older,
            &format!("superseded-by-{by}"),
        );
        match run
            .store
            .runs
            .execute(older, Command::Supersede { by, at }, &context)
            .await
        {
            // It ended, or is being canceled, since the look.
            Ok(_) | Err(CommandError::Refused(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits for the workspace's lock in order, and takes it when it is this run's turn. The row of the lock
/// is looked at first: as long as somebody has it, many runs may look again and again, and making a
/// workspace anew from its events costs far more.
async fn acquire(run: &Subject<'_>) -> Result<Step, StepError> {
    let (workspace, log) = (run.facts.workspace, &run.store.workspaces);
    let context = system(run.facts.organization, run.id, "enqueue");
    let enqueue = workspace::Command::Enqueue { run: run.id };
    log.execute(workspace, enqueue, &context).await?;
    let lock = locks::lock_row(&run.store.pool, run.facts.organization, workspace).await?;
    match lock.and_then(|lock| lock.holder) {
        Some(Holder::Run { run: ahead }) if ahead != run.id => behind(run, ahead).await,
        Some(Holder::User { .. }) => Ok(Step::Waiting),
        Some(Holder::Run { .. }) | None => take(run).await,
    }
}

/// Takes the lock if it is this run's turn, and says so to the run.
async fn take(run: &Subject<'_>) -> Result<Step, StepError> {
    let (workspace, log) = (run.facts.workspace, &run.store.workspaces);
    let context = system(run.facts.organization, run.id, "acquire");
    let acquire = workspace::Command::AcquireForRun { run: run.id };
    match log.execute(workspace, acquire, &context).await {
        Ok(_) => {}
        Err(CommandError::Refused(
            workspace::Refusal::Locked {
                holder: Holder::Run { run: ahead },
                ..
            }
            | workspace::Refusal::NotNext { first: ahead },
        )) => return behind(run, ahead).await,
        Err(CommandError::Refused(workspace::Refusal::Locked { .. })) => {
            return Ok(Step::Waiting);
        }
        Err(error) => return Err(error.into()),
    }
    let (state, _) = log.load(workspace).await?;
    match state.lock {
        Some(lock) if lock.holder == (Holder::Run { run: run.id }) => {
            let warnings = state.left_behind.iter().map(Into::into).collect();
            let fence = lock.fence;
            run.command(Command::GrantLock { fence, warnings }).await
        }
        Some(_) | None => Ok(Step::Waiting),
    }
}

/// Waits for the run ahead. One that has ended and is still there was left by a process that died
/// between its end and its leaving, and nothing else would look at it again.
async fn behind(run: &Subject<'_>, ahead: RunId) -> Result<Step, StepError> {
    if !runs_record::has_ended(&run.store.pool, ahead).await? {
        return Ok(Step::Waiting);
    }
    end::leave(run.store, ahead).await?;
    Ok(Step::Done)
}

async fn offer_plan(run: &Subject<'_>) -> Result<Step, StepError> {
    let Some(number) = next_number(run, Phase::Plan).await? else {
        return Ok(Step::Waiting);
    };
    let current = states::current(run.store, run.facts.organization, run.facts.workspace).await?;
    let predecessor = match current {
        None => Predecessor::None,
        Some(state) => Predecessor::Version {
            id: state.id,
            serial: state.serial,
            digest: state.sha256.ok_or_else(|| {
                StoreError::inconsistent("record.state_versions", "sha256", state.id)
            })?,
        },
    };
    attempts::offer(run.store, &offer(run, Phase::Plan, number, predecessor)).await?;
    Ok(Step::Waiting)
}

/// The number of the attempt to offer; `None` while one is open.
pub(super) async fn next_number(run: &Subject<'_>, phase: Phase) -> Result<Option<u32>, StepError> {
    let attempts = attempts::of_run(&run.store.pool, run.id).await?;
    let of_phase = || attempts.iter().filter(|row| row.offer.phase == phase);
    if of_phase().any(|row: &AttemptRow| row.closed_at.is_none()) {
        return Ok(None);
    }
    Ok(Some(
        of_phase().map(|row| row.offer.number).max().unwrap_or(0) + 1,
    ))
}

pub(super) fn offer(
    run: &Subject<'_>,
    phase: Phase,
    number: u32,
    predecessor: Predecessor,
) -> Offer {
    Offer {
        organization: run.facts.organization,
        workspace: run.facts.workspace,
        run: run.id,
        phase,
        number,
        region: run.facts.pins.region.clone(),
        platform: run.facts.pins.platform.clone(),
        fence: run.hold.fence(),
        binding: None,
        predecessor,
    }
}

/// When a question put now would lapse: the workspace says how long people have.
pub(crate) async fn approval_deadline(
    store: &Store,
    facts: &Facts,
) -> Result<Timestamp, StoreError> {
    let workspace = workspaces::by_id(&store.pool, facts.organization, facts.workspace)
        .await?
        .ok_or_else(|| {
            StoreError::inconsistent("record.workspaces", "workspace_id", facts.workspace)
        })?;
    let seconds = i64::from(workspace.approval_seconds);
    let now = clock::now();
    Ok(
        Timestamp::from_microsecond(now.as_microsecond() + seconds * 1_000_000)
            .unwrap_or(Timestamp::MAX),
    )
}
