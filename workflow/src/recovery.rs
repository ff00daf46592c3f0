//! What an operator says became of a doubtful apply (S-STA-3).
//!
//! The state that the apply left is adopted, or nothing had changed. Adopting is two commits: first
//! the workspace gets its state, then the run ends. A crash between them leaves the run in doubt with
//! its state published; adopting again ends it, and nothing else does. The lock is given back by
//! [`crate::advance`], after the end, as for every run.

use stackship_domain::ids::{OrganizationId, RunId, WorkspaceId};
use stackship_domain::run::{self, Ending, RecoveryResolution, Run, Standing};
use stackship_domain::{Actor, workspace};
use stackship_store::log::{CommandError, Committed, Context};
use stackship_store::recoveries;
use stackship_store::states::{self, Author};
use stackship_store::{Store, StoreError, clock};

use crate::StepError;

/// Why a doubt was not resolved in the way that was asked for.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// There is nothing to adopt.
    #[error("the apply left no state that could be adopted")]
    NothingStaged,
    /// The state of this run is published already.
    #[error("the workspace's state is the one that this run left: it can only be adopted")]
    StatePublished,
    /// The rules of the run or its workspace say no, or something failed.
    #[error(transparent)]
    Step(#[from] StepError),
}

impl From<StoreError> for RecoveryError {
    fn from(error: StoreError) -> Self {
        Self::Step(error.into())
    }
}

impl From<CommandError<run::Refusal>> for RecoveryError {
    fn from(error: CommandError<run::Refusal>) -> Self {
        Self::Step(error.into())
    }
}

impl From<CommandError<workspace::Refusal>> for RecoveryError {
    fn from(error: CommandError<workspace::Refusal>) -> Self {
        Self::Step(error.into())
    }
}

impl From<run::Refusal> for RecoveryError {
    fn from(refusal: run::Refusal) -> Self {
        CommandError::Refused(refusal).into()
    }
}

/// A person's words about what a question would do, where the rules want some.
const ONLY_ASKED: &str = "only asked what would follow";

/// Makes the staged state of a doubtful apply the workspace's state and ends the run. Safe to repeat.
pub async fn adopt(
    store: &Store,
    context: &Context,
    run: RunId,
    reason: String,
) -> Result<Committed, RecoveryError> {
    alone(store, run, adopt_alone(store, context, run, reason)).await
}

async fn adopt_alone(
    store: &Store,
    context: &Context,
    run: RunId,
    reason: String,
) -> Result<Committed, RecoveryError> {
    let adoption = prepare_adoption(store, context.actor, run, reason).await?;
    if let Some((workspace, publish)) = adoption.publish {
        store
            .workspaces
            .execute(workspace, publish, context)
            .await?;
    }
    Ok(store.runs.execute(run, adoption.resolve, context).await?)
}

/// Ends a run whose apply changed nothing. Safe to repeat.
pub async fn declare_no_change(
    store: &Store,
    context: &Context,
    run: RunId,
    reason: String,
) -> Result<Committed, RecoveryError> {
    alone(store, run, no_change_alone(store, context, run, reason)).await
}

async fn no_change_alone(
    store: &Store,
    context: &Context,
    run: RunId,
    reason: String,
) -> Result<Committed, RecoveryError> {
    let resolve = prepare_no_change(store, context.actor, run, reason).await?;
    Ok(store.runs.execute(run, resolve, context).await?)
}

/// Whether [`adopt`] would be refused to this person now.
pub async fn could_adopt(store: &Store, by: Actor, run: RunId) -> Result<(), RecoveryError> {
    let adoption = prepare_adoption(store, by, run, ONLY_ASKED.to_owned()).await?;
    let Some((workspace, publish)) = adoption.publish else {
        return Ok(());
    };
    let (state, _) = store.workspaces.load(workspace).await?;
    match state.decide(publish) {
        Ok(_) => Ok(()),
        Err(refusal) => Err(CommandError::Refused(refusal).into()),
    }
}

/// Whether [`declare_no_change`] would be refused to this person now.
pub async fn could_declare_no_change(
    store: &Store,
    by: Actor,
    run: RunId,
) -> Result<(), RecoveryError> {
    prepare_no_change(store, by, run, ONLY_ASKED.to_owned())
        .await
        .map(drop)
}

async fn alone(
    store: &Store,
    run: RunId,
    decision: impl Future<Output = Result<Committed, RecoveryError>>,
) -> Result<Committed, RecoveryError> {
    let Some(deciding) = recoveries::decide_alone(store, run).await? else {
        return Err(CommandError::<run::Refusal>::Contended.into());
    };
    let outcome = decision.await;
    deciding.end().await;
    outcome
}

/// The two commits of an adoption; the first is absent once the run has ended.
struct Adoption {
    publish: Option<(WorkspaceId, workspace::Command)>,
    resolve: run::Command,
}

/// What is to be done, after the run's rules were asked: nothing is published for a run that would
/// not take it.
async fn prepare_adoption(
    store: &Store,
    by: Actor,
    run: RunId,
    reason: String,
) -> Result<Adoption, RecoveryError> {
    let (current, _) = store.runs.load(run).await?;
    let Run::Born {
        facts,
        hold,
        standing,
    } = &current
    else {
        return Err(run::Refusal::NoSuchRun.into());
    };
    let (publication, publish) = match &**standing {
        Standing::RecoveryRequired { evidence, doubt } => {
            let staged = doubt
                .emergency
                .as_ref()
                .ok_or(RecoveryError::NothingStaged)?;
            let publish = workspace::Command::PublishState {
                run,
                fence: hold.fence().ok_or(run::Refusal::LockNotHeld)?,
                predecessor: evidence.predecessor.clone(),
                state: staged.into(),
            };
            (staged.publication(), Some((facts.workspace, publish)))
        }
        Standing::Ended(Ending::Recovered {
            resolution: RecoveryResolution::AdoptEmergencyState { publication },
            ..
        }) => (publication.clone(), None),
        other => return Err(wrong_status(other)),
    };
    let resolution = RecoveryResolution::AdoptEmergencyState { publication };
    let resolve = checked(&current, by, resolution, reason)?;
    Ok(Adoption { publish, resolve })
}

async fn prepare_no_change(
    store: &Store,
    by: Actor,
    run: RunId,
    reason: String,
) -> Result<run::Command, RecoveryError> {
    let (current, _) = store.runs.load(run).await?;
    let resolve = checked(&current, by, RecoveryResolution::DeclareNoChange, reason)?;
    if current.status() == Some(run::Status::RecoveryRequired)
        && let Some(facts) = current.facts()
        && is_head_of(store, facts.organization, facts.workspace, run).await?
    {
        return Err(RecoveryError::StatePublished);
    }
    Ok(resolve)
}

/// Whether the workspace's state was written by this run: it cannot have changed nothing then.
async fn is_head_of(
    store: &Store,
    organization: OrganizationId,
    workspace: WorkspaceId,
    run: RunId,
) -> Result<bool, StoreError> {
    let current = states::current(store, organization, workspace).await?;
    Ok(current.is_some_and(|state| state.author == Author::Run(run)))
}

/// The command, if the run would take it.
fn checked(
    current: &Run,
    by: Actor,
    resolution: RecoveryResolution,
    reason: String,
) -> Result<run::Command, RecoveryError> {
    let resolve = run::Command::ResolveRecovery {
        by,
        resolution,
        reason,
        at: clock::now(),
    };
    current.decide(resolve.clone())?;
    Ok(resolve)
}

fn wrong_status(standing: &Standing) -> RecoveryError {
    let status = standing.status();
    let command = "resolve_recovery";
    run::Refusal::WrongStatus { command, status }.into()
}
