//! The policy check of a recorded plan. It takes seconds and a process of its own, so it is not a step
//! of a look: the engine does it between two looks.

use stackship_domain::ids::RunId;
use stackship_domain::run::{Command, Standing};
use stackship_store::log::written_at;
use stackship_store::phase_logs::{self, LogPhase};
use stackship_store::{Store, StoreError};

use super::{Step, Subject, queue};
use crate::StepError;
use crate::policy::{self, Checker};

/// Judges the plan of a run whose policy check is due, and records the result. Doing it again after a
/// crash, or twice at once, records it once.
pub async fn check_policies(store: &Store, checker: &Checker, id: RunId) -> Result<(), StepError> {
    let loaded = store.runs.load(id).await?;
    let Some(subject) = Subject::of(store, id, &loaded) else {
        return Ok(());
    };
    let Standing::PolicyChecking { plan } = subject.standing else {
        return Ok(());
    };
    let stream = ("run", &*id.to_string());
    let began = written_at(&store.pool, stream, subject.sequence).await?;
    let began = began.ok_or_else(|| StoreError::inconsistent("log.events", "sequence", id))?;
    let judged = policy::Subject {
        run: id,
        facts: subject.facts,
        plan,
    };
    let result = checker.judge(store, &judged, began).await?;
    let approval_expires_at = queue::approval_deadline(store, subject.facts).await?;
    let command = Command::RecordPolicy {
        result,
        approval_expires_at,
    };
    subject.command(command).await?;
    close_log(&subject).await
}

/// The result is recorded, so nothing will be added to the log.
pub(super) async fn close_log(run: &Subject<'_>) -> Result<(), StepError> {
    phase_logs::close(run.store, run.id, LogPhase::Policy).await?;
    Ok(())
}

/// A run that waits for a person. A server that died right after the result has left the log open.
pub(super) async fn waits(run: &Subject<'_>) -> Result<Step, StepError> {
    close_log(run).await?;
    Ok(Step::Waiting)
}
