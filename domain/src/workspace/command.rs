//! What may be asked of a workspace.

use super::StateHead;
use crate::Fence;
use crate::ids::{RunId, UserId};
use crate::run::Predecessor;

/// One thing that may be asked of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Let a run wait for the lock.
    Enqueue {
        /// The run.
        run: RunId,
    },
    /// A waiting run ended.
    Dequeue {
        /// The run.
        run: RunId,
    },
    /// Give the lock to a run, if it is its turn.
    AcquireForRun {
        /// The run.
        run: RunId,
    },
    /// The run that holds the lock ended.
    ReleaseByRun {
        /// The run.
        run: RunId,
        /// The fence it held the lock under.
        fence: Fence,
        /// The state that its failed apply left.
        left_behind: Option<StateHead>,
    },
    /// A person takes the lock.
    LockByPerson {
        /// Who.
        by: UserId,
        /// Why.
        reason: Option<String>,
    },
    /// The person who holds the lock gives it back.
    UnlockByPerson {
        /// Who.
        by: UserId,
    },
    /// Break somebody else's lock.
    ForceUnlock {
        /// Who breaks it.
        by: UserId,
        /// Why.
        reason: String,
    },
    /// Make a run's staged state the workspace's state.
    PublishState {
        /// The run.
        run: RunId,
        /// The fence under which it wrote.
        fence: Fence,
        /// The state that the approved plan was made against.
        predecessor: Predecessor,
        /// The new state.
        state: StateHead,
    },
}

impl Command {
    /// The name in spans and in the reviewed table.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Enqueue { .. } => "enqueue",
            Self::Dequeue { .. } => "dequeue",
            Self::AcquireForRun { .. } => "acquire_for_run",
            Self::ReleaseByRun { .. } => "release_by_run",
            Self::LockByPerson { .. } => "lock_by_person",
            Self::UnlockByPerson { .. } => "unlock_by_person",
            Self::ForceUnlock { .. } => "force_unlock",
            Self::PublishState { .. } => "publish_state",
        }
    }
}
