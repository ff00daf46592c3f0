//! How a run comes into the world and gets its workspace.

use super::{Born, Decision};
use crate::Fence;
use crate::run::{Event, Hold, NewRun, Refusal, Standing, Warning};

/// Creates a run that asks for nothing StackShip never does.
pub(super) fn create(new: NewRun) -> Decision {
    if new.auto_apply {
        return Err(Refusal::AutoApply);
    }
    if new.destroy {
        return Err(Refusal::DestroyMode);
    }
    Ok(vec![Event::RunQueued {
        facts: new.facts,
        auto_apply: false,
    }])
}

impl Born<'_> {
    /// The lock is granted once, before the plan, and kept to the end under the same fence.
    pub(super) fn grant_lock(&self, fence: Fence, warnings: Vec<Warning>) -> Decision {
        match (self.hold, self.standing) {
            (Hold::Waiting, Standing::Queued { .. }) => {
                Ok(vec![Event::LockGranted { fence, warnings }])
            }
            (Hold::Held(current), _) if current == fence => Ok(vec![]),
            (Hold::Held(current), _) => Err(Refusal::StaleFence {
                presented: fence,
                current,
            }),
            (Hold::NotNeeded | Hold::Waiting, _) => Err(self.wrong_status()),
        }
    }
}
