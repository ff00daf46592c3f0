//! The workspace: who may change its state, in which order, and which state is current.
//!
//! The lock, its fence and the queue are decided here; the database holds a row that follows the
//! events and against which every late write is checked.

mod command;
mod decide;
mod event;
mod refusal;
mod rollback;
#[doc(hidden)]
pub mod samples;

pub use command::Command;
pub use event::{Event, Holder, LeftBehind, StateHead, UnlockCause};
pub use refusal::Refusal;
pub use rollback::Rollback;

use crate::Fence;
use crate::ids::RunId;

/// The most runs that may wait for one workspace.
pub const QUEUE_LENGTH_MAX: usize = 1_000;
/// The most states left behind that a workspace remembers; the newest ones.
pub const LEFT_BEHIND_MAX: usize = 20;

/// A held lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// Who holds it.
    pub holder: Holder,
    /// The fence of this acquisition.
    pub fence: Fence,
    /// Why, in a person's words.
    pub reason: Option<String>,
}

impl Lock {
    /// The refusal of somebody else who wants it.
    pub(crate) fn in_the_way(&self) -> Refusal {
        Refusal::Locked {
            holder: self.holder,
            reason: self.reason.clone(),
        }
    }
}

/// A workspace, as its events tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// The lock, when held.
    pub lock: Option<Lock>,
    /// The fence of the newest acquisition.
    pub fence: Fence,
    /// Runs that wait for the lock, first come first.
    pub queue: Vec<RunId>,
    /// The published state.
    pub head: Option<StateHead>,
    /// What failed applies left since a state was last published, oldest first: resources that a new
    /// plan does not know of.
    pub left_behind: Vec<LeftBehind>,
}

impl Default for Workspace {
    fn default() -> Self {
        Self {
            lock: None,
            fence: Fence::NEVER,
            queue: Vec::new(),
            head: None,
            left_behind: Vec::new(),
        }
    }
}

impl Workspace {
    /// Takes an event that has happened.
    pub fn evolve(&mut self, event: &Event) {
        match event {
            Event::RunEnqueued { run } => self.queue.push(*run),
            Event::RunDequeued { run } => self.queue.retain(|waiting| waiting != run),
            Event::LockAcquired {
                holder,
                fence,
                reason,
            } => {
                if let Holder::Run { run } = holder {
                    self.queue.retain(|waiting| waiting != run);
                }
                self.lock = Some(Lock {
                    holder: *holder,
                    fence: *fence,
                    reason: reason.clone(),
                });
                self.fence = *fence;
            }
            Event::LockReleased {
                holder,
                left_behind,
                ..
            } => {
                self.lock = None;
                LeftBehind::remember(&mut self.left_behind, *holder, left_behind.as_ref());
            }
            Event::StatePublished { state, .. } => {
                self.head = Some(state.clone());
                self.left_behind.clear();
            }
            // What a failed apply left is still in no state.
            Event::StateRolledBack { rollback, .. } => self.head = Some(rollback.state.clone()),
        }
    }

    /// Rebuilds a workspace from its events.
    pub fn replay<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut workspace = Self::default();
        for event in events {
            workspace.evolve(event);
        }
        workspace
    }
}
