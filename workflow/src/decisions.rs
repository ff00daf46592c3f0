//! What people decide, in the words of the domain; both edges come through here.

use std::time::Duration;

use stackship_domain::ids::{RunId, UserId, WorkspaceId};
use stackship_domain::run::{self, EvidencePart, Run, Standing};
use stackship_domain::{Sha256Digest, workspace};
use stackship_store::log::{CommandError, Committed, Context};
use stackship_store::{Store, clock};

use crate::advance::approval_deadline;

type RunDecision = Result<Committed, CommandError<run::Refusal>>;
type WorkspaceDecision = Result<Committed, CommandError<workspace::Refusal>>;

/// Approves exactly the evidence whose digest the person reviewed.
pub async fn approve(
    store: &Store,
    context: &Context,
    run: RunId,
    binding: Sha256Digest,
) -> RunDecision {
    let command = run::Command::Approve {
        by: context.actor,
        binding,
        at: clock::now(),
    };
    store.runs.execute(run, command, context).await
}

/// Approves the evidence that the run asks about now: the tofu CLI's approval carries no digest, so
/// the binding is the server's part. Evidence that changes between the look and the approval is
/// still refused.
pub async fn approve_current(store: &Store, context: &Context, run: RunId) -> RunDecision {
    let (current, _) = store.runs.load(run).await.map_err(CommandError::Store)?;
    let binding = match &current {
        Run::Born { standing, .. } => match &**standing {
            Standing::AwaitingApproval { evidence, .. } => Some(evidence.binding()),
            Standing::Approved { approval, .. }
            | Standing::Applying { approval, .. }
            | Standing::ApplyCanceling { approval, .. }
            | Standing::Ended(run::Ending::Applied { approval, .. }) => Some(approval.binding),
            _ => None,
        },
        Run::Unborn => None,
    };
    match (binding, current.status()) {
        (Some(binding), _) => approve(store, context, run, binding).await,
        (None, Some(status)) => Err(CommandError::Refused(run::Refusal::WrongStatus {
            command: "approve",
            status,
        })),
        (None, None) => Err(CommandError::Refused(run::Refusal::StaleEvidence {
            part: EvidencePart::Binding,
        })),
    }
}

/// A person's word that a plan may pass although a soft-mandatory policy denied it.
#[derive(Debug, Clone)]
pub struct Override {
    /// The digest of the exact result that was reviewed.
    pub result: Sha256Digest,
    /// Why.
    pub reason: String,
    /// For how long from now; the run's rules bound it.
    pub lasts: Duration,
}

/// Lets a soft-mandatory failure pass for a limited time.
pub async fn override_policy(
    store: &Store,
    context: &Context,
    run: RunId,
    given: Override,
) -> RunDecision {
    let (current, _) = store.runs.load(run).await.map_err(CommandError::Store)?;
    let facts = current
        .facts()
        .ok_or(CommandError::Refused(run::Refusal::NoSuchRun))?;
    let approval_expires_at = approval_deadline(store, facts)
        .await
        .map_err(CommandError::Store)?;
    let at = clock::now();
    let command = run::Command::OverridePolicy {
        by: context.actor,
        result: given.result,
        reason: given.reason,
        at,
        expires_at: at.saturating_add(given.lasts).unwrap_or(at),
        approval_expires_at,
    };
    store.runs.execute(run, command, context).await
}

/// How long an override holds that was given at the prompt of the tofu CLI, which asks for no time:
/// long enough for the question that follows, and for the apply to begin.
pub const PROMPT_OVERRIDE_LASTS: Duration = Duration::from_hours(1);
/// Why it was given: the CLI asks for no reason either.
pub const PROMPT_OVERRIDE_REASON: &str = "Overridden at the prompt of the tofu CLI.";

/// Overrides the result that the run asks about now: the tofu CLI's override names none. One that
/// changes between the look and the override is still refused.
pub async fn override_current_policy(store: &Store, context: &Context, run: RunId) -> RunDecision {
    let (current, _) = store.runs.load(run).await.map_err(CommandError::Store)?;
    let asked = match &current {
        Run::Born { standing, .. } => match &**standing {
            Standing::OverrideRequired { policy, .. } => Ok(policy.digest),
            other => Err(run::Refusal::WrongStatus {
                command: "override_policy",
                status: other.status(),
            }),
        },
        Run::Unborn => Err(run::Refusal::NoSuchRun),
    };
    let given = Override {
        result: asked.map_err(CommandError::Refused)?,
        reason: PROMPT_OVERRIDE_REASON.to_owned(),
        lasts: PROMPT_OVERRIDE_LASTS,
    };
    override_policy(store, context, run, given).await
}

/// Turns a plan down.
pub async fn discard(
    store: &Store,
    context: &Context,
    run: RunId,
    reason: Option<String>,
) -> RunDecision {
    let command = run::Command::Discard {
        by: context.actor,
        reason,
        at: clock::now(),
    };
    store.runs.execute(run, command, context).await
}

/// Stops a run.
pub async fn cancel(
    store: &Store,
    context: &Context,
    run: RunId,
    reason: Option<String>,
) -> RunDecision {
    let command = run::Command::Cancel {
        by: context.actor,
        reason,
        at: clock::now(),
    };
    store.runs.execute(run, command, context).await
}

/// Takes a workspace's lock by hand.
pub async fn lock(
    store: &Store,
    context: &Context,
    workspace: WorkspaceId,
    by: UserId,
    reason: Option<String>,
) -> WorkspaceDecision {
    store
        .workspaces
        .execute(
            workspace,
            workspace::Command::LockByPerson { by, reason },
            context,
        )
        .await
}

/// Gives a lock taken by hand back.
pub async fn unlock(
    store: &Store,
    context: &Context,
    workspace: WorkspaceId,
    by: UserId,
) -> WorkspaceDecision {
    store
        .workspaces
        .execute(
            workspace,
            workspace::Command::UnlockByPerson { by },
            context,
        )
        .await
}

/// Breaks another person's lock; a run's lock does not yield.
pub async fn force_unlock(
    store: &Store,
    context: &Context,
    workspace: WorkspaceId,
    by: UserId,
    reason: String,
) -> WorkspaceDecision {
    store
        .workspaces
        .execute(
            workspace,
            workspace::Command::ForceUnlock { by, reason },
            context,
        )
        .await
}
