//! The status of a workspace: who holds its lock, who waits, which state is current.

mod table;

use std::mem;

use stackship_domain::ids::{OrganizationId, RunId, WorkspaceId};
use stackship_domain::run::Warning;
use stackship_domain::workspace::{Event, Holder, LeftBehind, Lock, StateHead, Workspace};
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

    /// Takes an event that has happened. What it does to the workspace, the workspace's own fold says;
    /// added here is what only readers ask for: since when and why the lock is held.
    pub fn take(&mut self, recorded: &Recorded<Event>) {
        let mut workspace = Workspace {
            lock: self.lock.as_ref().map(|lock| Lock {
                holder: lock.holder,
                fence: self.fence,
                reason: lock.reason.clone(),
            }),
            fence: self.fence,
            queue: mem::take(&mut self.queue),
            head: self.head.take(),
            left_behind: mem::take(&mut self.left_behind),
        };
        workspace.evolve(&recorded.event);
        if let Event::LockAcquired { holder, reason, .. } = &recorded.event {
            self.lock = Some(HeldLock {
                holder: *holder,
                since: recorded.recorded_at,
                reason: reason.clone(),
            });
        } else if workspace.lock.is_none() {
            self.lock = None;
        }
        self.fence = workspace.fence;
        self.queue = workspace.queue;
        self.head = workspace.head;
        self.left_behind = workspace.left_behind;
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
