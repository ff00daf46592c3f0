//! After the end: nothing of a run may hold anything any longer.

use stackship_domain::ids::RunId;
use stackship_domain::run::{Ending, Standing, TerminalReason};
use stackship_domain::workspace;
use stackship_store::phase_logs::{self, Chunk, LogPhase};
use stackship_store::{Store, attempts};

use super::{Step, Subject};
use crate::{StepError, system};

/// Attempt number of what the control plane itself writes into a log: after every runner's.
const CONTROL_PLANE_ATTEMPT: u32 = 1_000;

pub(super) async fn step(run: &Subject<'_>, ending: &Ending) -> Result<Step, StepError> {
    attempts::withdraw(run.store, run.id).await?;
    if let Ending::Canceled { by: None } = ending {
        // A superseded run does not wait for its runner, which plans on until it hears of it.
        attempts::request_cancel(run.store, run.id).await?;
    }
    say_goodbye(run, ending).await?;
    close_logs(run).await?;
    leave_workspace(run, ending).await?;
    Ok(Step::Waiting)
}

/// Takes the step after the end for a run that has ended; for another, none.
pub(super) async fn leave(store: &Store, id: RunId) -> Result<(), StepError> {
    let loaded = store.runs.load(id).await?;
    if let Some(subject) = Subject::of(store, id, &loaded)
        && let Standing::Ended(ending) = subject.standing
    {
        step(&subject, ending).await?;
    }
    Ok(())
}

/// Leaves the queue and gives the lock back. The workspace says what the run has of it: a run that
/// ended between its workspace's grant and its own record of it holds a lock without knowing.
async fn leave_workspace(run: &Subject<'_>, ending: &Ending) -> Result<(), StepError> {
    let (workspace, log) = (run.facts.workspace, &run.store.workspaces);
    let context = |step: &str| system(run.facts.organization, run.id, step);
    let (state, _) = log.load(workspace).await?;
    if state.queue.contains(&run.id) {
        let command = workspace::Command::Dequeue { run: run.id };
        log.execute(workspace, command, &context("dequeue")).await?;
    }
    if let Some(lock) = state.lock
        && lock.holder == (workspace::Holder::Run { run: run.id })
    {
        let command = workspace::Command::ReleaseByRun {
            run: run.id,
            fence: lock.fence,
            left_behind: left_behind(ending),
        };
        log.execute(workspace, command, &context("release")).await?;
    }
    Ok(())
}

/// The state that nobody adopted. An apply in doubt keeps its lock until an operator has said what
/// became of it, so only a failed one leaves any.
fn left_behind(ending: &Ending) -> Option<workspace::StateHead> {
    match ending {
        Ending::Failed { emergency, .. } => emergency.as_ref().map(Into::into),
        Ending::Applied { .. }
        | Ending::NoChanges
        | Ending::SpeculativeFinished
        | Ending::Discarded { .. }
        | Ending::Expired
        | Ending::Canceled { .. }
        | Ending::PlanCredentialsRequired
        | Ending::Recovered { .. } => None,
    }
}

/// A reader of the plan log of a run that ended before its plan did is told why.
async fn say_goodbye(run: &Subject<'_>, ending: &Ending) -> Result<(), StepError> {
    let why = match ending {
        Ending::Canceled { by: Some(_) } => "This run was canceled.",
        Ending::Canceled { by: None } => TerminalReason::Superseded.sentence(),
        Ending::Expired => TerminalReason::ApprovalExpired.sentence(),
        Ending::Failed { reason, .. } => reason.sentence(),
        Ending::PlanCredentialsRequired => TerminalReason::PlanCredentialsRequired.sentence(),
        Ending::Applied { .. }
        | Ending::NoChanges
        | Ending::SpeculativeFinished
        | Ending::Discarded { .. }
        | Ending::Recovered { .. } => return Ok(()),
    };
    let why = format!("{why}\n");
    let chunk = Chunk {
        attempt_number: CONTROL_PLANE_ATTEMPT,
        sequence: 0,
        bytes: why.as_bytes(),
    };
    // A log that was closed with its plan keeps what it has.
    phase_logs::append(run.store, run.id, LogPhase::Plan, chunk).await?;
    Ok(())
}

pub(super) async fn close_logs(run: &Subject<'_>) -> Result<Step, StepError> {
    for phase in [LogPhase::Plan, LogPhase::Policy, LogPhase::Apply] {
        phase_logs::close(run.store, run.id, phase).await?;
    }
    Ok(Step::Waiting)
}
