//! What becomes of an approved plan. An apply is tried once; whatever is not certain is doubt.

use stackship_domain::ids::AttemptId;
use stackship_domain::run::{
    ApplyReport, Command, Doubt, DoubtReason, LossReason, Phase, Predecessor, StagedState,
};
use stackship_domain::{Fence, Sha256Digest, workspace};
use stackship_runner_protocol::PhaseResult;
use stackship_store::attempts::{self, AttemptRow, CloseCause, Offer};
use stackship_store::log::CommandError;
use stackship_store::phase_logs::{self, LogPhase};
use stackship_store::{StoreError, Violation, clock, states};

use super::{Step, Subject, plan, queue};
use crate::judge::{ApplyVerdict, judge_apply};
use crate::{StepError, system};

/// Offers the apply of exactly what was approved.
pub(super) async fn offer(run: &Subject<'_>, binding: Sha256Digest) -> Result<Step, StepError> {
    let Some(number) = queue::next_number(run, Phase::Apply).await? else {
        return Ok(Step::Waiting);
    };
    let attempts = attempts::of_run(&run.store.pool, run.id).await?;
    let planned_against = attempts
        .iter()
        .rev()
        .find(|row| row.offer.phase == Phase::Plan && row.close_cause == Some(CloseCause::Result))
        .map(|row| row.offer.predecessor.clone())
        .ok_or_else(|| StoreError::inconsistent("record.attempts", "phase", run.id))?;
    let offer = Offer {
        binding: Some(binding),
        ..queue::offer(run, Phase::Apply, number, planned_against)
    };
    attempts::offer(run.store, &offer).await?;
    Ok(Step::Waiting)
}

/// What became of a leased apply.
pub(super) async fn step(
    run: &Subject<'_>,
    attempt: AttemptId,
    predecessor: &Predecessor,
) -> Result<Step, StepError> {
    let row = plan::row(run, attempt).await?;
    let at = clock::now();
    match row.close_cause {
        None => plan::request_stop(run, &row).await,
        // Given back before `tofu apply` was about to start: the database knows, so this is certain.
        Some(CloseCause::HandedBack) if row.tofu_started_at.is_none() => {
            run.command(Command::HandBackApply { attempt, at }).await
        }
        Some(CloseCause::LeaseExpired | CloseCause::HandedBack | CloseCause::Withdrawn) => {
            let emergency = staged(run).await?;
            run.command(Command::LoseApply {
                attempt,
                reason: LossReason::LeaseExpired,
                emergency,
            })
            .await
        }
        Some(CloseCause::Result) => match plan::result(&row)? {
            PhaseResult::Apply { end } => {
                phase_logs::close(run.store, run.id, LogPhase::Apply).await?;
                let verdict = judge_apply(end, staged(run).await?);
                report(run, &row, predecessor, verdict).await
            }
            PhaseResult::Plan { .. } => Err(plan::bad(&row).into()),
        },
    }
}

async fn report(
    run: &Subject<'_>,
    row: &AttemptRow,
    predecessor: &Predecessor,
    verdict: ApplyVerdict,
) -> Result<Step, StepError> {
    let fence = row
        .offer
        .fence
        .ok_or_else(|| StoreError::inconsistent("record.attempts", "fence", row.id))?;
    let report = match verdict {
        ApplyVerdict::Report(report) => report,
        ApplyVerdict::Publish(staged) => publish(run, fence, predecessor, staged).await?,
    };
    let command = Command::RecordApply {
        attempt: row.id,
        fence,
        report: Box::new(report),
        at: clock::now(),
    };
    run.command(command).await
}

/// Makes the staged state the workspace's state. A refusal is doubt: the infrastructure was changed.
async fn publish(
    run: &Subject<'_>,
    fence: Fence,
    predecessor: &Predecessor,
    staged: StagedState,
) -> Result<ApplyReport, StepError> {
    let command = workspace::Command::PublishState {
        run: run.id,
        fence,
        predecessor: predecessor.clone(),
        state: (&staged).into(),
    };
    let context = system(run.facts.organization, run.id, "publish");
    let refusal = match run
        .store
        .workspaces
        .execute(run.facts.workspace, command, &context)
        .await
    {
        Ok(_) => {
            let publication = staged.publication();
            return Ok(ApplyReport::Published { publication });
        }
        Err(CommandError::Refused(refusal)) => refusal.to_string(),
        Err(CommandError::Violated(violation @ (Violation::StaleFence | Violation::NotNow))) => {
            violation.to_string()
        }
        Err(error) => return Err(error.into()),
    };
    Ok(ApplyReport::Doubt(Doubt {
        reason: DoubtReason::PublicationUnconfirmed,
        detail: format!("tofu apply succeeded, but its state was not published: {refusal}."),
        emergency: Some(staged),
        errored_state_object: None,
    }))
}

/// The newest state that the run staged.
async fn staged(run: &Subject<'_>) -> Result<Option<StagedState>, StepError> {
    let Some(row) = states::newest_staged(run.store, run.facts.organization, run.id).await? else {
        return Ok(None);
    };
    let digest = row
        .sha256
        .ok_or_else(|| StoreError::inconsistent("record.state_versions", "sha256", row.id))?;
    Ok(Some(StagedState {
        version: row.id,
        serial: row.serial,
        lineage: row.lineage,
        digest,
    }))
}
