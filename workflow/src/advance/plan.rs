//! What became of a leased plan.

use stackship_domain::ids::AttemptId;
use stackship_domain::run::{Command, LossReason, Standing};
use stackship_runner_protocol::PhaseResult;
use stackship_store::attempts::{self, AttemptRow, CloseCause};
use stackship_store::phase_logs::{self, LogPhase};
use stackship_store::{StoreError, clock};

use super::{Step, Subject};
use crate::StepError;
use crate::judge::{PlanVerdict, judge_plan};

pub(super) async fn step(run: &Subject<'_>, attempt: AttemptId) -> Result<Step, StepError> {
    let row = row(run, attempt).await?;
    let at = clock::now();
    let command = match row.close_cause {
        None => return request_stop(run, &row).await,
        Some(CloseCause::LeaseExpired) => Command::LosePlan {
            attempt,
            reason: LossReason::LeaseExpired,
            at,
        },
        Some(CloseCause::HandedBack | CloseCause::Withdrawn) => Command::LosePlan {
            attempt,
            reason: LossReason::HandedBack,
            at,
        },
        Some(CloseCause::Result) => match result(&row)? {
            PhaseResult::Plan { end } => {
                let verdict = judge_plan(end, row.offer.predecessor.clone());
                if verdict != PlanVerdict::SandboxLost {
                    phase_logs::close(run.store, run.id, LogPhase::Plan).await?;
                }
                command_of(run, attempt, verdict)
            }
            PhaseResult::Apply { .. } => return Err(bad(&row).into()),
        },
    };
    run.command(command).await
}

fn command_of(run: &Subject<'_>, attempt: AttemptId, verdict: PlanVerdict) -> Command {
    let at = clock::now();
    // Whatever a plan found after somebody asked it to stop, nothing was applied: the cancel holds.
    if matches!(run.standing, Standing::PlanCanceling { .. }) {
        return Command::StopPlan { attempt, at };
    }
    match verdict {
        PlanVerdict::Recorded(plan) => Command::RecordPlan { attempt, plan },
        PlanVerdict::Failed(failure) => Command::FailPlan { attempt, failure },
        PlanVerdict::Stopped | PlanVerdict::SandboxLost => Command::LosePlan {
            attempt,
            reason: LossReason::SandboxLost,
            at,
        },
    }
}

/// Passes a cancel on to the runner, once.
pub(super) async fn request_stop(run: &Subject<'_>, row: &AttemptRow) -> Result<Step, StepError> {
    let asked = matches!(
        run.standing,
        Standing::PlanCanceling { .. } | Standing::ApplyCanceling { .. }
    );
    if asked && row.cancel_requested_at.is_none() {
        attempts::request_cancel(run.store, run.id).await?;
    }
    Ok(Step::Waiting)
}

pub(super) async fn row(run: &Subject<'_>, attempt: AttemptId) -> Result<AttemptRow, StepError> {
    let attempts = attempts::of_run(&run.store.pool, run.id).await?;
    attempts
        .into_iter()
        .find(|row| row.id == attempt)
        .ok_or_else(|| StoreError::inconsistent("record.attempts", "attempt_id", attempt).into())
}

pub(super) fn result(row: &AttemptRow) -> Result<PhaseResult, StepError> {
    let result = row.result.clone().ok_or_else(|| bad(row))?;
    serde_json::from_value(result).map_err(|_| bad(row).into())
}

pub(super) fn bad(row: &AttemptRow) -> StoreError {
    StoreError::inconsistent("record.attempts", "result", row.id)
}
