//! Going back to an older state: a new state under a fence, never while a run relies on the present one.

use stackship_domain::workspace::samples::{
    head, other_person, person, predecessor, rollback, run,
};
use stackship_domain::workspace::{
    Command, Event, Holder, Lock, Refusal, Rollback, UnlockCause, Workspace,
};

fn free() -> Workspace {
    Workspace {
        head: Some(head(3)),
        ..Workspace::default()
    }
}

fn held_by(holder: Holder) -> Workspace {
    let fence = free().fence.next();
    Workspace {
        lock: Some(Lock {
            holder,
            fence,
            reason: None,
        }),
        fence,
        ..free()
    }
}

fn roll_back(workspace: &Workspace, rollback: Rollback) -> Result<Vec<Event>, Refusal> {
    let by = person();
    workspace.decide(Command::RollBackState { by, rollback })
}

fn after(workspace: &Workspace, events: &[Event]) -> Workspace {
    let mut next = workspace.clone();
    for event in events {
        next.evolve(event);
    }
    next
}

#[test]
fn a_free_workspace_is_locked_rolled_back_and_unlocked_in_one_decision() {
    let events = roll_back(&free(), rollback()).unwrap();
    let fence = free().fence.next();
    let holder = Holder::User { user: person() };
    let expected = [
        Event::LockAcquired {
            holder,
            fence,
            reason: Some(rollback().reason),
        },
        Event::StateRolledBack {
            by: person(),
            fence,
            rollback: rollback(),
        },
    ];
    assert_eq!(events[..2], expected);
    let [.., Event::LockReleased { cause, .. }] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(*cause, UnlockCause::ByHolder);
    let after = after(&free(), &events);
    assert_eq!((after.lock, after.fence), (None, fence));
    assert_eq!(after.head, Some(rollback().state));
}

#[test]
fn under_ones_own_lock_the_lock_stays() {
    let workspace = held_by(Holder::User { user: person() });
    let events = roll_back(&workspace, rollback()).unwrap();
    let after = after(&workspace, &events);
    assert_eq!(
        (&after.lock, after.fence),
        (&workspace.lock, workspace.fence)
    );
    assert_eq!(after.head, Some(rollback().state));
}

#[test]
fn nobody_elses_lock_is_passed() {
    for holder in [
        Holder::Run { run: run() },
        Holder::User {
            user: other_person(),
        },
    ] {
        let refused = roll_back(&held_by(holder), rollback());
        assert_eq!(
            refused,
            Err(Refusal::Locked {
                holder,
                reason: None
            })
        );
    }
}

#[test]
fn only_what_was_seen_as_current_is_rolled_back() {
    let seen = |version: i64| Rollback {
        predecessor: head(version).version,
        ..rollback()
    };
    let current = Some(head(3).version);
    let refused = roll_back(&free(), seen(2));
    assert_eq!(refused, Err(Refusal::StateMoved { current }));
    let refused = roll_back(&Workspace::default(), seen(3));
    assert_eq!(refused, Err(Refusal::StateMoved { current: None }));
}

#[test]
fn what_rests_on_the_state_before_a_rollback_is_stale_after_it() {
    let events = roll_back(&free(), rollback()).unwrap();
    let free = after(&free(), &events);
    let taken = [
        Command::Enqueue { run: run() },
        Command::AcquireForRun { run: run() },
    ];
    let held = taken.into_iter().fold(free, |workspace, command| {
        let events = workspace.decide(command).unwrap();
        after(&workspace, &events)
    });
    let publish = |planned_against: i64| {
        held.decide(Command::PublishState {
            run: run(),
            fence: held.fence,
            predecessor: predecessor(&head(planned_against)),
            state: head(5),
        })
    };
    assert_eq!(publish(3), Err(Refusal::PredecessorMoved));
    assert_eq!(
        publish(1),
        Err(Refusal::PredecessorMoved),
        "the older one itself"
    );
    assert!(publish(4).is_ok(), "a plan against the new one");
}
