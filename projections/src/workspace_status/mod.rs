//! The status of a workspace: who holds its lock, who waits, which state is current.

mod table;

use stackship_domain::ids::{OrganizationId, RunId, WorkspaceId};
use stackship_domain::run::Warning;
use stackship_domain::workspace::{Event, Holder, LeftBehind, StateHead};
use stackship_domain::{Fence, Timestamp};

pub(crate) use table::{load, upsert};

use crate::Recorded;

/// A workspace as its events tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceStatus {
    /// Which workspace.
    pub workspace: WorkspaceId,
    /// The tenant.
    pub organization: OrganizationId,
    /// Who holds the lock.
    pub lock: Option<HeldLock>,
    /// The fence of the newest acquisition, whether the lock is held or not.
    pub fence: Fence,
    /// Runs that wait for the lock, first come first.
    pub queue: Vec<RunId>,
    /// The published state.
    pub head: Option<StateHead>,
    /// What failed applies left since a state was last published, oldest first.
    pub left_behind: Vec<LeftBehind>,
    /// The newest event in here.
    pub last_sequence: i64,
}

/// A held lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLock {
    /// By whom.
    pub holder: Holder,
    /// Since when.
    pub since: Timestamp,
    /// Why, in a person's words.
    pub reason: Option<String>,
}

/// Where a run waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePlace {
    /// Counts from 1.
    pub position: usize,
    /// Who has to be done first: whoever holds the lock, else the run whose turn it is. `None`: it is
    /// this run's turn.
    pub blocked_by: Option<Holder>,
}

impl WorkspaceStatus {
    /// A workspace to which nothing has happened.
    pub const fn new(workspace: WorkspaceId, organization: OrganizationId) -> Self {
        Self {
            workspace,
            organization,
            lock: None,
            fence: Fence::NEVER,
            queue: Vec::new(),
            head: None,
            left_behind: Vec::new(),
            last_sequence: 0,
        }
    }

    /// Takes an event that has happened.
    pub fn take(&mut self, recorded: &Recorded<Event>) {
        match &recorded.event {
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
                self.fence = *fence;
                self.lock = Some(HeldLock {
                    holder: *holder,
                    since: recorded.recorded_at,
                    reason: reason.clone(),
                });
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
        }
        self.last_sequence = recorded.sequence;
    }

    /// What a run that gets the lock now is warned of.
    pub fn warnings(&self) -> Vec<Warning> {
        self.left_behind.iter().map(Warning::from).collect()
    }

    /// Where a run waits; `None` when it does not.
    pub fn place_of(&self, run: RunId) -> Option<QueuePlace> {
        let index = self.queue.iter().position(|waiting| *waiting == run)?;
        let first = self.queue.first().filter(|first| **first != run);
        Some(QueuePlace {
            position: index + 1,
            blocked_by: match &self.lock {
                Some(lock) => Some(lock.holder),
                None => first.map(|first| Holder::Run { run: *first }),
            },
        })
    }
}
