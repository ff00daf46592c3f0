//! From the queue to the offer of a plan.

use stackship_domain::run::{Command, Facts, Hold, Phase, Predecessor};
use stackship_domain::{Timestamp, workspace};
use stackship_store::attempts::{self, AttemptRow, Offer};
use stackship_store::log::CommandError;
use stackship_store::records::workspaces;
use stackship_store::{Store, StoreError, clock, states};

use super::{Step, Subject};
use crate::{StepError, system};

pub(super) async fn step(run: &Subject<'_>) -> Result<Step, StepError> {
    match run.hold {
        Hold::Waiting => acquire(run).await,
        Hold::Held(_) | Hold::NotNeeded => offer_plan(run).await,
    }
}

/// Waits for the workspace's lock in order, and takes it when it is this run's turn.
async fn acquire(run: &Subject<'_>) -> Result<Step, StepError> {
    let (workspace, log) = (run.facts.workspace, &run.store.workspaces);
    let context = |step: &str| system(run.facts.organization, run.id, step);
    log.execute(
        workspace,
        workspace::Command::Enqueue { run: run.id },
        &context("enqueue"),
    )
    .await?;
    match log
        .execute(
            workspace,
            workspace::Command::AcquireForRun { run: run.id },
            &context("acquire"),
        )
        .await
    {
        Ok(_) => {}
        Err(CommandError::Refused(
            workspace::Refusal::Locked { .. } | workspace::Refusal::NotNext { .. },
        )) => {
            return Ok(Step::Waiting);
        }
        Err(error) => return Err(error.into()),
    }
    let (state, _) = log.load(workspace).await?;
    match state.lock {
        Some(lock) if lock.holder == (workspace::Holder::Run { run: run.id }) => {
            run.command(Command::GrantLock { fence: lock.fence }).await
        }
        Some(_) | None => Ok(Step::Waiting),
    }
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
