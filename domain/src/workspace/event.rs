//! What happened to a workspace's lock, queue and state.

use serde::{Deserialize, Serialize};

use super::LEFT_BEHIND_MAX;
use crate::ids::{RunId, StateVersionId, UserId};
use crate::run::StagedState;
use crate::{Fence, Sha256Digest};

/// Who holds a workspace's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Holder {
    /// A run, from the start of its plan to its end.
    Run {
        /// Which one.
        run: RunId,
    },
    /// A person, by hand.
    User {
        /// Who.
        user: UserId,
    },
}

/// The published state of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateHead {
    /// The state version.
    pub version: StateVersionId,
    /// Its serial.
    pub serial: i64,
    /// Its lineage.
    pub lineage: String,
    /// SHA-256 of its exact bytes.
    pub digest: Sha256Digest,
}

impl From<&StagedState> for StateHead {
    fn from(staged: &StagedState) -> Self {
        Self {
            version: staged.version,
            serial: staged.serial,
            lineage: staged.lineage.clone(),
            digest: staged.digest,
        }
    }
}

/// A state that a failed apply left and that is not the workspace's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftBehind {
    /// Whose apply failed.
    pub run: RunId,
    /// What it left.
    pub state: StateHead,
}

impl LeftBehind {
    /// Takes note of what a lock's holder left; the oldest note goes when there are too many.
    pub fn remember(notes: &mut Vec<Self>, holder: Holder, state: Option<&StateHead>) {
        let (Holder::Run { run }, Some(state)) = (holder, state) else {
            return;
        };
        if notes.len() == LEFT_BEHIND_MAX {
            notes.remove(0);
        }
        notes.push(Self {
            run,
            state: state.clone(),
        });
    }
}

/// Why a lock was released.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum UnlockCause {
    /// The run that held it ended.
    RunEnded,
    /// The person who held it gave it back.
    ByHolder,
    /// Somebody else broke it.
    Forced {
        /// Who.
        by: UserId,
        /// Why.
        reason: String,
    },
}

/// One thing that happened to a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A run began to wait.
    RunEnqueued {
        /// Which one.
        run: RunId,
    },
    /// A waiting run ended before its turn.
    RunDequeued {
        /// Which one.
        run: RunId,
    },
    /// Somebody got the lock.
    LockAcquired {
        /// Who.
        holder: Holder,
        /// The fence of this acquisition.
        fence: Fence,
        /// Why, in a person's words.
        reason: Option<String>,
    },
    /// The lock was given back.
    LockReleased {
        /// Who had it.
        holder: Holder,
        /// The fence it was held under.
        fence: Fence,
        /// Why.
        cause: UnlockCause,
        /// The state that the holder's failed apply left, which nobody has adopted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_behind: Option<StateHead>,
    },
    /// A run's successor state became the workspace's state.
    StatePublished {
        /// The run.
        run: RunId,
        /// The fence under which it wrote.
        fence: Fence,
        /// The state.
        state: StateHead,
    },
}

impl Event {
    /// The version of every event shape written today.
    pub const VERSION: &'static str = "1.0";

    /// The name under which the log stores it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunEnqueued { .. } => "run_enqueued",
            Self::RunDequeued { .. } => "run_dequeued",
            Self::LockAcquired { .. } => "lock_acquired",
            Self::LockReleased { .. } => "lock_released",
            Self::StatePublished { .. } => "state_published",
        }
    }
}
