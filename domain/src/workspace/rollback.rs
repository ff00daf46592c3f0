//! Going back to an older state. It is a new state with a higher serial, so that whatever rests on the
//! one before, a plan, an approval, is seen to be stale; the history goes on and nothing in it is undone.

use serde::{Deserialize, Serialize};

use super::decide::released;
use super::{Event, Holder, Lock, Refusal, StateHead, UnlockCause, Workspace};
use crate::ids::{ObjectId, StateVersionId, UserId};

/// An older state that becomes the workspace's state again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// The state whose place it takes.
    pub predecessor: StateVersionId,
    /// The older state.
    pub restored: StateVersionId,
    /// The new state: the content of the older one under a higher serial.
    pub state: StateHead,
    /// Where its bytes are.
    pub object: ObjectId,
    /// Why.
    pub reason: String,
}

impl Workspace {
    /// The state that a rollback by this person would follow, or why there can be none: a run holds the
    /// lock, or somebody else, or the workspace's state is not `predecessor`, or is `restored` itself.
    pub fn rolled_back_from(
        &self,
        by: UserId,
        predecessor: StateVersionId,
        restored: StateVersionId,
    ) -> Result<&StateHead, Refusal> {
        if let Some(lock) = &self.lock
            && lock.holder != (Holder::User { user: by })
        {
            return Err(lock.in_the_way());
        }
        match &self.head {
            Some(head) if head.version == restored => Err(Refusal::RestoresCurrent),
            Some(head) if head.version == predecessor => Ok(head),
            other => Err(Refusal::StateMoved {
                current: other.as_ref().map(|head| head.version),
            }),
        }
    }

    /// Under the person's own lock, or one that is taken and given back in the same breath: either way
    /// it has a fence, and the fences of whoever held the lock before are stale.
    pub(super) fn roll_back(&self, by: UserId, rollback: Rollback) -> Result<Vec<Event>, Refusal> {
        if self.head.as_ref() == Some(&rollback.state) {
            return Ok(vec![]);
        }
        if rollback.reason.trim().is_empty() {
            return Err(Refusal::ReasonMissing);
        }
        self.rolled_back_from(by, rollback.predecessor, rollback.restored)?;
        if !self.is_followed_by(&rollback.state) {
            return Err(Refusal::NotSuccessor);
        }
        if let Some(Lock { fence, .. }) = self.lock {
            return Ok(vec![Event::StateRolledBack {
                by,
                fence,
                rollback,
            }]);
        }
        let lock = Lock {
            holder: Holder::User { user: by },
            fence: self.fence.next(),
            reason: Some(rollback.reason.clone()),
        };
        Ok(vec![
            self.acquired(lock.holder, lock.reason.clone()),
            Event::StateRolledBack {
                by,
                fence: lock.fence,
                rollback,
            },
            released(&lock, UnlockCause::ByHolder, None),
        ])
    }
}
