//! A no by the rules of the lock: what the caller can act upon.

use super::{Holder, QUEUE_LENGTH_MAX};
use crate::Fence;
use crate::ids::{RunId, StateVersionId};

/// Why a command was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Too many runs wait.
    #[error("{QUEUE_LENGTH_MAX} runs wait for this workspace already; cancel some first")]
    QueueFull,
    /// Another run's turn comes first.
    #[error("`{first}` waits for this workspace first")]
    NotNext {
        /// The run whose turn it is.
        first: RunId,
    },
    /// The run does not wait.
    #[error("the run does not wait for this workspace")]
    NotQueued,
    /// Somebody holds the lock.
    #[error("the workspace is locked by {}{}", describe(.holder), in_words(.reason.as_deref()))]
    Locked {
        /// Who.
        holder: Holder,
        /// Why, in a person's words.
        reason: Option<String>,
    },
    /// Nobody holds the lock.
    #[error("the workspace is not locked")]
    NotLocked,
    /// Somebody else holds the lock.
    #[error("the workspace is locked by {}, who alone can unlock it", describe(.holder))]
    NotYours {
        /// Who.
        holder: Holder,
    },
    /// A run's lock is not broken: it ends with its run.
    #[error(
        "`{run}` holds the lock until it ends: cancel it, or if it is in `recovery_required`, end it with \
         POST /v1/runs/{run}/recovery/adopt or .../recovery/no-change"
    )]
    HeldByRun {
        /// The run.
        run: RunId,
    },
    /// A fence that is not the current one (S-STA-2).
    #[error(
        "the workspace lock has moved on: fence {presented} was presented, {current} is current"
    )]
    StaleFence {
        /// What was presented.
        presented: Fence,
        /// What is current.
        current: Fence,
    },
    /// The workspace's state is not the one the plan was made against.
    #[error("the workspace's state is not the one that the plan was made against")]
    PredecessorMoved,
    /// The new state does not follow the current one.
    #[error(
        "the new state does not follow the current one: its lineage differs or its serial is not higher"
    )]
    NotSuccessor,
    /// The workspace's state is not the one that was to be rolled back.
    #[error("the workspace's state is {}, not the one you named; look again", describe_state(.current.as_ref()))]
    StateMoved {
        /// What it is.
        current: Option<StateVersionId>,
    },
    /// There is nothing to roll back.
    #[error("this version is the workspace's state")]
    RestoresCurrent,
    /// A decision without a reason.
    #[error("`reason` must say why")]
    ReasonMissing,
}

fn describe(holder: &Holder) -> String {
    match holder {
        Holder::Run { run } => run.to_string(),
        Holder::User { user } => user.to_string(),
    }
}

fn in_words(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(", who says: {reason}"))
}

fn describe_state(state: Option<&StateVersionId>) -> String {
    state.map_or_else(|| "none".to_owned(), ToString::to_string)
}
