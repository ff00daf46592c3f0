//! One look at a run, one step that is due; again until nothing is due.

mod apply;
mod end;
mod plan;
mod policy;
mod queue;

use stackship_domain::ids::RunId;
use stackship_domain::run::{Command, Facts, Hold, Run, Standing};
use stackship_store::log::CommandError;
use stackship_store::{Store, clock};

use crate::{StepError, system};

pub use policy::check_policies;
pub(crate) use queue::approval_deadline;

/// The most steps that one look may lead to; a run needs fewer, so more would be a loop.
const STEPS_MAX: usize = 24;

/// Whether a look led to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Something was done: look again.
    Done,
    /// Nothing is due: the run waits for a person, a runner, its turn or the clock.
    Waiting,
    /// Its policy check is due.
    PolicyCheck,
}

/// What is due after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Nothing.
    Nothing,
    /// The plan is to be judged: [`check_policies`], and then another look.
    PolicyCheck,
}

/// A born run under the eye of the workflow.
struct Subject<'a> {
    store: &'a Store,
    id: RunId,
    facts: &'a Facts,
    hold: Hold,
    standing: &'a Standing,
    /// The sequence of its newest event: it names the step that is due, so that two processes
    /// taking the same step append it once.
    sequence: i64,
}

impl<'a> Subject<'a> {
    /// What was loaded of a run; `None` when it was never born.
    fn of(store: &'a Store, id: RunId, (run, sequence): &'a (Run, i64)) -> Option<Self> {
        match run {
            Run::Born {
                facts,
                hold,
                standing,
            } => Some(Self {
                store,
                id,
                facts,
                hold: *hold,
                standing,
                sequence: *sequence,
            }),
            Run::Unborn => None,
        }
    }

    /// Carries out a command on the run, as the system.
    async fn command(&self, command: Command) -> Result<Step, StepError> {
        let step = format!("{}@{}", command.name(), self.sequence);
        let context = system(self.facts.organization, self.id, &step);
        self.store.runs.execute(self.id, command, &context).await?;
        Ok(Step::Done)
    }
}

/// Takes every step of `run` that is due now and takes no time.
pub async fn advance(store: &Store, run: RunId) -> Result<Due, StepError> {
    for _ in 0..STEPS_MAX {
        match step(store, run).await {
            Ok(Step::Done) => {}
            Ok(Step::Waiting) => return Ok(Due::Nothing),
            Ok(Step::PolicyCheck) => return Ok(Due::PolicyCheck),
            // Somebody else moved the run between the look and the step: look again.
            Err(StepError::Run(CommandError::Refused(refusal))) => {
                tracing::debug!(run.id = %run, reason = %refusal, "A step was no longer due");
            }
            Err(error) => return Err(error),
        }
    }
    tracing::error!(run.id = %run, steps = STEPS_MAX, "A run keeps having steps due; leaving it to the next sweep");
    Ok(Due::Nothing)
}

async fn step(store: &Store, id: RunId) -> Result<Step, StepError> {
    let loaded = store.runs.load(id).await?;
    let Some(subject) = Subject::of(store, id, &loaded) else {
        return Ok(Step::Waiting);
    };
    match subject.standing {
        Standing::Queued { .. } => queue::step(&subject).await,
        Standing::Planning { attempt, .. } | Standing::PlanCanceling { attempt, .. } => {
            plan::step(&subject, attempt.id).await
        }
        Standing::Planned { .. } => subject.command(Command::StartPolicyCheck).await,
        Standing::PolicyChecking { .. } => Ok(Step::PolicyCheck),
        Standing::AwaitingApproval { expires_at, .. }
        | Standing::OverrideRequired { expires_at, .. } => {
            let at = clock::now();
            if at < *expires_at {
                policy::waits(&subject).await
            } else {
                subject.command(Command::Expire { at }).await
            }
        }
        Standing::Approved {
            approval,
            override_expires_at,
            ..
        } => {
            let at = clock::now();
            if override_expires_at.is_some_and(|until| at >= until) {
                return subject.command(Command::Expire { at }).await;
            }
            apply::offer(&subject, approval.binding).await
        }
        Standing::Applying {
            attempt, evidence, ..
        }
        | Standing::ApplyCanceling {
            attempt, evidence, ..
        } => apply::step(&subject, attempt.id, &evidence.predecessor).await,
        Standing::RecoveryRequired { .. } => end::close_logs(&subject).await,
        Standing::Ended(ending) => end::step(&subject, ending).await,
    }
}
