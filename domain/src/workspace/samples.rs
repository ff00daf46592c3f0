//! One valid value of everything, for tests here and in other rooms. Hidden from the documentation.

use super::{
    Command, Event, Holder, LeftBehind, Lock, Rollback, StateHead, UnlockCause, Workspace,
};
use crate::ids::{RunId, StateVersionId, UserId};
use crate::run::Predecessor;
use crate::run::samples::id;
use crate::{Fence, Sha256Digest};

/// The run that comes first in most samples.
pub fn run() -> RunId {
    id(20)
}

/// A run that comes after [`run`].
pub fn later_run() -> RunId {
    id(21)
}

/// A person who locks by hand.
pub fn person() -> UserId {
    id(7)
}

/// Somebody else.
pub fn other_person() -> UserId {
    id(8)
}

/// The state with this serial.
pub fn head(serial: i64) -> StateHead {
    StateHead {
        version: id::<StateVersionId>(30 + u128::from(serial.unsigned_abs())),
        serial,
        lineage: "6d6f2a52-2b0a-4f2c-9d1e-000000000000".to_owned(),
        digest: Sha256Digest::of(format!("state {serial}").as_bytes()),
    }
}

/// The state a plan was made against, as the plan names it.
pub fn predecessor(head: &StateHead) -> Predecessor {
    Predecessor::Version {
        id: head.version,
        serial: head.serial,
        digest: head.digest,
    }
}

/// The newest fence of every sample workspace.
pub const fn fence() -> Fence {
    Fence::from_stored(5)
}

/// Why people lock here.
const REASON: &str = "Maintenance.";

fn workspace(holder: Option<Holder>, queue: Vec<RunId>) -> Workspace {
    Workspace {
        lock: holder.map(|holder| Lock {
            holder,
            fence: fence(),
            reason: matches!(holder, Holder::User { .. }).then(|| REASON.to_owned()),
        }),
        fence: fence(),
        queue,
        head: Some(head(3)),
        left_behind: Vec::new(),
    }
}

/// A workspace in every situation that a rule tells apart, each with a name for the reviewed table.
pub fn one_workspace_of_each() -> Vec<(&'static str, Workspace)> {
    let by_run = Some(Holder::Run { run: run() });
    let by_person = Some(Holder::User { user: person() });
    vec![
        ("new", Workspace::default()),
        ("free", workspace(None, vec![])),
        (
            "free, both runs wait",
            workspace(None, vec![run(), later_run()]),
        ),
        (
            "free, the later run waits first",
            workspace(None, vec![later_run(), run()]),
        ),
        ("held by the run", workspace(by_run, vec![later_run()])),
        (
            "held by the later run",
            workspace(Some(Holder::Run { run: later_run() }), vec![run()]),
        ),
        ("held by the person", workspace(by_person, vec![run()])),
        (
            "held by somebody else",
            workspace(
                Some(Holder::User {
                    user: other_person(),
                }),
                vec![],
            ),
        ),
        (
            "held by the run after a failed apply",
            after_a_failed_apply(),
        ),
        (
            "free, the queue is full",
            workspace(
                None,
                (1_000..1_000 + super::QUEUE_LENGTH_MAX as u128)
                    .map(id)
                    .collect(),
            ),
        ),
    ]
}

/// A workspace in which the later run's apply failed half-way before the run got the lock.
fn after_a_failed_apply() -> Workspace {
    Workspace {
        left_behind: vec![LeftBehind {
            run: later_run(),
            state: head(4),
        }],
        ..workspace(Some(Holder::Run { run: run() }), vec![])
    }
}

/// Every command, each with a name for the reviewed table.
pub fn one_command_of_each() -> Vec<(&'static str, Command)> {
    [of_the_queue(), of_people(), of_the_state(), of_rollbacks()].concat()
}

fn of_the_queue() -> Vec<(&'static str, Command)> {
    let release = |fence: Fence, left_behind: Option<StateHead>| Command::ReleaseByRun {
        run: run(),
        fence,
        left_behind,
    };
    vec![
        ("enqueue", Command::Enqueue { run: run() }),
        ("dequeue", Command::Dequeue { run: run() }),
        ("acquire for run", Command::AcquireForRun { run: run() }),
        ("release by run", release(fence(), None)),
        (
            "release by run, a state left",
            release(fence(), Some(head(4))),
        ),
        (
            "release by run, stale fence",
            release(Fence::from_stored(4), Some(head(4))),
        ),
    ]
}

fn of_people() -> Vec<(&'static str, Command)> {
    let by = person();
    let break_lock = |reason: &str| Command::ForceUnlock {
        by,
        reason: reason.to_owned(),
    };
    let reason = Some(REASON.to_owned());
    vec![
        ("lock by person", Command::LockByPerson { by, reason }),
        ("unlock by person", Command::UnlockByPerson { by }),
        ("force unlock", break_lock("They left.")),
        ("force unlock, no reason", break_lock(" ")),
    ]
}

fn of_the_state() -> Vec<(&'static str, Command)> {
    let publish = |fence: Fence, predecessor: Predecessor, state: StateHead| {
        let run = run();
        Command::PublishState {
            run,
            fence,
            predecessor,
            state,
        }
    };
    let current = predecessor(&head(3));
    let older = predecessor(&head(2));
    let foreign = StateHead {
        lineage: "another".to_owned(),
        ..head(4)
    };
    vec![
        ("publish state", publish(fence(), current.clone(), head(4))),
        (
            "publish state, first",
            publish(fence(), Predecessor::None, head(1)),
        ),
        (
            "publish state, again",
            publish(fence(), older.clone(), head(3)),
        ),
        (
            "publish state, older predecessor",
            publish(fence(), older, head(4)),
        ),
        (
            "publish state, older serial",
            publish(fence(), current.clone(), head(2)),
        ),
        (
            "publish state, other lineage",
            publish(fence(), current.clone(), foreign),
        ),
        (
            "publish state, stale fence",
            publish(Fence::from_stored(4), current, head(4)),
        ),
    ]
}

/// The first state's content again, as the successor of the third.
pub fn rollback() -> Rollback {
    Rollback {
        predecessor: head(3).version,
        restored: head(1).version,
        state: head(4),
        object: id(40),
        reason: "The upgrade broke the gateway.".to_owned(),
    }
}

fn of_rollbacks() -> Vec<(&'static str, Command)> {
    let by_person = |rollback: Rollback| Command::RollBackState {
        by: person(),
        rollback,
    };
    let moved = Rollback {
        predecessor: head(2).version,
        ..rollback()
    };
    let current = Rollback {
        restored: head(3).version,
        ..rollback()
    };
    let lower = Rollback {
        state: head(2),
        ..rollback()
    };
    let foreign = Rollback {
        state: StateHead {
            lineage: "another".to_owned(),
            ..head(4)
        },
        ..rollback()
    };
    let silent = Rollback {
        reason: " ".to_owned(),
        ..rollback()
    };
    let again = Rollback {
        state: head(3),
        ..rollback()
    };
    vec![
        ("roll back state", by_person(rollback())),
        ("roll back state, again", by_person(again)),
        ("roll back state, moved", by_person(moved)),
        ("roll back state, to the current", by_person(current)),
        ("roll back state, older serial", by_person(lower)),
        ("roll back state, other lineage", by_person(foreign)),
        ("roll back state, no reason", by_person(silent)),
    ]
}

/// Every event there is.
pub fn one_event_of_each() -> Vec<Event> {
    vec![
        Event::RunEnqueued { run: run() },
        Event::RunDequeued { run: run() },
        Event::LockAcquired {
            holder: Holder::Run { run: run() },
            fence: fence(),
            reason: None,
        },
        Event::LockReleased {
            holder: Holder::User { user: person() },
            fence: fence(),
            cause: UnlockCause::Forced {
                by: other_person(),
                reason: "They left.".to_owned(),
            },
            left_behind: None,
        },
        Event::StatePublished {
            run: run(),
            fence: fence(),
            state: head(4),
        },
        Event::StateRolledBack {
            by: person(),
            fence: fence(),
            rollback: rollback(),
        },
    ]
}

/// Events with the parts that only some of them have, each with a name for its golden file.
pub fn events_with_more() -> Vec<(&'static str, Event)> {
    vec![(
        "lock_released_state_left_behind",
        Event::LockReleased {
            holder: Holder::Run { run: run() },
            fence: fence(),
            cause: UnlockCause::RunEnded,
            left_behind: Some(head(4)),
        },
    )]
}
