//! The rules of the lock.

use super::{Event, Holder, Lock, QUEUE_LENGTH_MAX, StateHead, UnlockCause, Workspace};
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
    #[error("the workspace is locked by {}", describe(.holder))]
    Locked {
        /// Who.
        holder: Holder,
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
    #[error("`{run}` holds the lock; cancel or resolve that run")]
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

type Decision = Result<Vec<Event>, Refusal>;

impl Workspace {
    /// Answers a command with the events that follow from it, or says why none do. An empty list
    /// means that the command had been carried out before.
    pub fn decide(&self, command: Command) -> Decision {
        match command {
            Command::Enqueue { run } => self.enqueue(run),
            Command::Dequeue { run } => {
                let waits = self.queue.contains(&run);
                Ok(if waits {
                    vec![Event::RunDequeued { run }]
                } else {
                    vec![]
                })
            }
            Command::AcquireForRun { run } => self.acquire_for_run(run),
            Command::ReleaseByRun { run, fence } => match &self.lock {
                Some(lock) if lock.holder == (Holder::Run { run }) && lock.fence == fence => {
                    Ok(vec![released(lock, UnlockCause::RunEnded)])
                }
                // Given back before, or never held: releasing again is harmless.
                Some(_) | None => Ok(vec![]),
            },
            Command::LockByPerson { by, reason } => match &self.lock {
                None => Ok(vec![self.acquired(Holder::User { user: by }, reason)]),
                Some(lock) if lock.holder == (Holder::User { user: by }) => Ok(vec![]),
                Some(lock) => Err(Refusal::Locked {
                    holder: lock.holder,
                }),
            },
            Command::UnlockByPerson { by } => match &self.lock {
                None => Err(Refusal::NotLocked),
                Some(lock) if lock.holder == (Holder::User { user: by }) => {
                    Ok(vec![released(lock, UnlockCause::ByHolder)])
                }
                Some(lock) => Err(Refusal::NotYours {
                    holder: lock.holder,
                }),
            },
            Command::ForceUnlock { by, reason } => match &self.lock {
                None => Err(Refusal::NotLocked),
                Some(Lock {
                    holder: Holder::Run { run },
                    ..
                }) => Err(Refusal::HeldByRun { run: *run }),
                Some(_) if reason.trim().is_empty() => Err(Refusal::ReasonMissing),
                Some(lock) => Ok(vec![released(lock, UnlockCause::Forced { by, reason })]),
            },
            Command::PublishState {
                run,
                fence,
                predecessor,
                state,
            } => self.publish(run, fence, &predecessor, state),
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

    fn acquire_for_run(&self, run: RunId) -> Decision {
        match (&self.lock, self.queue.first()) {
            (Some(lock), _) if lock.holder == (Holder::Run { run }) => Ok(vec![]),
            (Some(lock), _) => Err(Refusal::Locked {
                holder: lock.holder,
            }),
            (None, Some(first)) if *first == run => {
                Ok(vec![self.acquired(Holder::Run { run }, None)])
            }
            (None, Some(first)) if self.queue.contains(&run) => {
                Err(Refusal::NotNext { first: *first })
            }
            (None, _) => Err(Refusal::NotQueued),
        }
    }

    fn publish(
        &self,
        run: RunId,
        fence: Fence,
        predecessor: &Predecessor,
        state: StateHead,
    ) -> Decision {
        match &self.lock {
            Some(lock) if lock.holder == (Holder::Run { run }) && lock.fence == fence => {}
            Some(_) | None => {
                return Err(Refusal::StaleFence {
                    presented: fence,
                    current: self.fence,
                });
            }
        }
        if self.head.as_ref() == Some(&state) {
            return Ok(vec![]);
        }
        let planned_against_head = match (&self.head, predecessor) {
            (None, Predecessor::None) => true,
            (Some(head), Predecessor::Version { id, digest, .. }) => {
                head.version == *id && head.digest == *digest
            }
            (None, Predecessor::Version { .. }) | (Some(_), Predecessor::None) => false,
        };
        if !planned_against_head {
            return Err(Refusal::PredecessorMoved);
        }
        let follows = match &self.head {
            None => state.serial >= 0,
            Some(head) => state.lineage == head.lineage && state.serial > head.serial,
        };
        if follows {
            Ok(vec![Event::StatePublished { run, fence, state }])
        } else {
            Err(Refusal::NotSuccessor)
        }
    }

    fn acquired(&self, holder: Holder, reason: Option<String>) -> Event {
        Event::LockAcquired {
            holder,
            fence: self.fence.next(),
            reason,
        }
    }
}

fn released(lock: &Lock, cause: UnlockCause) -> Event {
    Event::LockReleased {
        holder: lock.holder,
        fence: lock.fence,
        cause,
    }
}
