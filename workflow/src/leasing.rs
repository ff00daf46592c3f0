//! Handing an offered attempt to a runner. The lease comes first, then the run is told; a run that
//! has moved on meanwhile drops the lease, and the runner never sees it.

use stackship_domain::Actor;
use stackship_domain::ids::RunnerId;
use stackship_domain::run::{ApplyReport, Attempt, Command, Phase, Run};
use stackship_store::attempts::{self, AttemptRow, LeasedAttempt};
use stackship_store::log::{CommandError, Context};
use stackship_store::{Store, StoreError, Violation, clock};

use crate::{StepError, evidence, system};

/// The most stale offers that one request passes over.
const STALE_OFFERS_MAX: usize = 16;

/// A lease whose run has started its phase.
#[derive(Clone)]
pub struct Leased {
    /// The attempt.
    pub attempt: AttemptRow,
    /// Opens the attempt's endpoints.
    pub lease_token: String,
    /// Opens the phase's part of `/api/v2`.
    pub run_token: String,
    /// The run, now planning or applying.
    pub run: Run,
}

/// Leases the next offer that fits this runner.
pub async fn lease(
    store: &Store,
    runner: RunnerId,
    region: &str,
    platform: &str,
    lease_seconds: u32,
) -> Result<Option<Leased>, StepError> {
    for _ in 0..STALE_OFFERS_MAX {
        let leased =
            match attempts::lease_next(store, runner, region, platform, lease_seconds).await {
                Ok(Some(leased)) => leased,
                // Nothing fits; or the oldest offer is under a fence that has passed, and the
                // workflow is about to withdraw it.
                Ok(None) | Err(StoreError::Refused(Violation::StaleFence)) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        match start(store, runner, &leased).await {
            Ok(()) => {
                let (run, _) = store.runs.load(leased.attempt.offer.run).await?;
                if is_refused(store, &leased.attempt, &run).await? {
                    continue;
                }
                let LeasedAttempt {
                    attempt,
                    lease_token,
                    run_token,
                } = leased;
                return Ok(Some(Leased {
                    attempt,
                    lease_token,
                    run_token,
                    run,
                }));
            }
            Err(StepError::Run(CommandError::Refused(refusal))) => {
                tracing::info!(
                    run.id = %leased.attempt.offer.run,
                    attempt.id = %leased.attempt.id,
                    reason = %refusal,
                    "A lease was dropped because its run had moved on"
                );
                attempts::drop_lease(store, leased.attempt.id).await?;
            }
            Err(error) => {
                attempts::drop_lease(store, leased.attempt.id).await?;
                return Err(error);
            }
        }
    }
    Ok(None)
}

/// Ends an apply whose evidence is no longer what was approved; no runner is handed it then. An apply
/// of which that cannot be said now is offered again.
async fn is_refused(store: &Store, attempt: &AttemptRow, run: &Run) -> Result<bool, StepError> {
    if attempt.offer.phase == Phase::Plan {
        return Ok(false);
    }
    let part = match evidence::first_difference(store, attempt.offer.run, run).await {
        Ok(None) => return Ok(false),
        Ok(Some(part)) => part,
        Err(error) => {
            attempts::hand_back(store, attempt.id).await?;
            return Err(error.into());
        }
    };
    let fence = attempt.offer.fence;
    let refusal = Command::RecordApply {
        attempt: attempt.id,
        fence: fence
            .ok_or_else(|| StoreError::inconsistent("record.attempts", "fence", attempt.id))?,
        report: Box::new(ApplyReport::NotStarted {
            part: Some(part),
            detail: format!("`{part}` is not what was approved; nothing was applied."),
        }),
        at: clock::now(),
    };
    let context = system(attempt.offer.organization, attempt.offer.run, "refuse");
    // The run ends first: a closed attempt of an applying run would be a lost apply.
    store
        .runs
        .execute(attempt.offer.run, refusal, &context)
        .await?;
    attempts::drop_lease(store, attempt.id).await?;
    Ok(true)
}

async fn start(store: &Store, runner: RunnerId, leased: &LeasedAttempt) -> Result<(), StepError> {
    let row = &leased.attempt;
    let attempt = Attempt {
        id: row.id,
        number: row.offer.number,
        runner,
    };
    let command = match (row.offer.phase, row.offer.fence, row.offer.binding) {
        (Phase::Plan, _, _) => Command::StartPlan { attempt },
        (Phase::Apply, Some(fence), Some(binding)) => Command::StartApply {
            attempt,
            fence,
            binding,
            at: clock::now(),
        },
        (Phase::Apply, _, _) => {
            return Err(StoreError::inconsistent("record.attempts", "binding", row.id).into());
        }
    };
    let context = Context {
        organization: row.offer.organization,
        actor: Actor::Runner(runner),
        request_id: format!("lease-{}", row.id),
        command_id: format!("{}/start", row.id),
    };
    store.runs.execute(row.offer.run, command, &context).await?;
    Ok(())
}
