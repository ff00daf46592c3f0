//! The rules of the lock.

use super::{
    Command, Event, Holder, Lock, QUEUE_LENGTH_MAX, Refusal, StateHead, UnlockCause, Workspace,
};
use crate::Fence;
use crate::ids::{RunId, UserId};
use crate::run::Predecessor;

type Decision = Result<Vec<Event>, Refusal>;

impl Workspace {
    /// Answers a command with the events that follow from it, or says why none do. An empty list
    /// means that the command had been carried out before.
    pub fn decide(&self, command: Command) -> Decision {
        match command {
            Command::Enqueue { run } => self.enqueue(run),
            Command::Dequeue { run } => Ok(self.dequeue(run)),
            Command::AcquireForRun { run } => self.acquire_for_run(run),
            Command::ReleaseByRun {
                run,
                fence,
                left_behind,
            } => Ok(self.release_by_run(run, fence, left_behind)),
            Command::LockByPerson { by, reason } => self.lock_by_person(by, reason),
            Command::UnlockByPerson { by } => self.unlock_by_person(by),
            Command::ForceUnlock { by, reason } => self.force_unlock(by, reason),
            Command::PublishState {
                run,
                fence,
                predecessor,
                state,
            } => self.publish(run, fence, &predecessor, state),
            Command::RollBackState { by, rollback } => self.roll_back(by, rollback),
        }
    }

    fn enqueue(&self, run: RunId) -> Decision {
        let holds = self
            .lock
            .as_ref()
            .is_some_and(|lock| lock.holder == Holder::Run { run });
        if holds || self.queue.contains(&run) {
            return Ok(vec![]);
        }
        if self.queue.len() >= QUEUE_LENGTH_MAX {
            return Err(Refusal::QueueFull);
        }
        Ok(vec![Event::RunEnqueued { run }])
    }

    fn dequeue(&self, run: RunId) -> Vec<Event> {
        if self.queue.contains(&run) {
            vec![Event::RunDequeued { run }]
        } else {
            vec![]
        }
    }

    fn acquire_for_run(&self, run: RunId) -> Decision {
        match (&self.lock, self.queue.first()) {
            (Some(lock), _) if lock.holder == (Holder::Run { run }) => Ok(vec![]),
            (Some(lock), _) => Err(lock.in_the_way()),
            (None, Some(first)) if *first == run => {
                Ok(vec![self.acquired(Holder::Run { run }, None)])
            }
            (None, Some(first)) if self.queue.contains(&run) => {
                Err(Refusal::NotNext { first: *first })
            }
            (None, _) => Err(Refusal::NotQueued),
        }
    }

    /// The lock, when this run holds it under this fence.
    fn held_by_run(&self, run: RunId, fence: Fence) -> Option<&Lock> {
        self.lock
            .as_ref()
            .filter(|lock| lock.holder == Holder::Run { run } && lock.fence == fence)
    }

    /// Given back before, or never held: releasing again is harmless.
    fn release_by_run(
        &self,
        run: RunId,
        fence: Fence,
        left_behind: Option<StateHead>,
    ) -> Vec<Event> {
        self.held_by_run(run, fence)
            .map(|lock| released(lock, UnlockCause::RunEnded, left_behind))
            .into_iter()
            .collect()
    }

    /// Asked for again it is there already, unless another reason is given: that one would be lost.
    fn lock_by_person(&self, by: UserId, reason: Option<String>) -> Decision {
        match &self.lock {
            None => Ok(vec![self.acquired(Holder::User { user: by }, reason)]),
            Some(lock)
                if lock.holder == (Holder::User { user: by })
                    && (reason.is_none() || reason == lock.reason) =>
            {
                Ok(vec![])
            }
            Some(lock) => Err(lock.in_the_way()),
        }
    }

    fn unlock_by_person(&self, by: UserId) -> Decision {
        match &self.lock {
            None => Err(Refusal::NotLocked),
            Some(lock) if lock.holder == (Holder::User { user: by }) => {
                Ok(vec![released(lock, UnlockCause::ByHolder, None)])
            }
            Some(lock) => Err(Refusal::NotYours {
                holder: lock.holder,
            }),
        }
    }

    fn force_unlock(&self, by: UserId, reason: String) -> Decision {
        match &self.lock {
            None => Err(Refusal::NotLocked),
            Some(Lock {
                holder: Holder::Run { run },
                ..
            }) => Err(Refusal::HeldByRun { run: *run }),
            Some(_) if reason.trim().is_empty() => Err(Refusal::ReasonMissing),
            Some(lock) => Ok(vec![released(
                lock,
                UnlockCause::Forced { by, reason },
                None,
            )]),
        }
    }

    fn publish(
        &self,
        run: RunId,
        fence: Fence,
        predecessor: &Predecessor,
        state: StateHead,
    ) -> Decision {
        if self.held_by_run(run, fence).is_none() {
            return Err(Refusal::StaleFence {
                presented: fence,
                current: self.fence,
            });
        }
        if self.head.as_ref() == Some(&state) {
            return Ok(vec![]);
        }
        if !self.is_head(predecessor) {
            Err(Refusal::PredecessorMoved)
        } else if !self.is_followed_by(&state) {
            Err(Refusal::NotSuccessor)
        } else {
            Ok(vec![Event::StatePublished { run, fence, state }])
        }
    }

    fn is_head(&self, predecessor: &Predecessor) -> bool {
        match (&self.head, predecessor) {
            (None, Predecessor::None) => true,
            (Some(head), Predecessor::Version { id, digest, .. }) => {
                head.version == *id && head.digest == *digest
            }
            (None, Predecessor::Version { .. }) | (Some(_), Predecessor::None) => false,
        }
    }

    pub(super) fn is_followed_by(&self, state: &StateHead) -> bool {
        match &self.head {
            None => state.serial >= 0,
            Some(head) => state.lineage == head.lineage && state.serial > head.serial,
        }
    }

    pub(super) fn acquired(&self, holder: Holder, reason: Option<String>) -> Event {
        Event::LockAcquired {
            holder,
            fence: self.fence.next(),
            reason,
        }
    }
}

pub(super) fn released(lock: &Lock, cause: UnlockCause, left_behind: Option<StateHead>) -> Event {
    Event::LockReleased {
        holder: lock.holder,
        fence: lock.fence,
        cause,
        left_behind,
    }
}
