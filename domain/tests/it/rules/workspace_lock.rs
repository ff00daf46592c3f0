//! The workspace: one holder, first come first served, and a state that only moves forward.

use stackship_domain::Fence;
use stackship_domain::run::Predecessor;
use stackship_domain::workspace::samples::{head, later_run, person, predecessor, run};
use stackship_domain::workspace::{
    Command, Event, LEFT_BEHIND_MAX, LeftBehind, Refusal, Workspace,
};

fn after(workspace: &Workspace, command: Command) -> Workspace {
    let mut next = workspace.clone();
    for event in workspace.decide(command).unwrap() {
        next.evolve(&event);
    }
    next
}

fn with(commands: impl IntoIterator<Item = Command>) -> Workspace {
    commands
        .into_iter()
        .fold(Workspace::default(), |workspace, command| {
            after(&workspace, command)
        })
}

fn held_by_run() -> Workspace {
    with([
        Command::Enqueue { run: run() },
        Command::Enqueue { run: later_run() },
        Command::AcquireForRun { run: run() },
    ])
}

#[test]
fn runs_get_the_lock_in_the_order_they_came() {
    let queued = with([
        Command::Enqueue { run: run() },
        Command::Enqueue { run: later_run() },
    ]);
    let acquire = |run| Command::AcquireForRun { run };
    assert_eq!(
        queued.decide(acquire(later_run())),
        Err(Refusal::NotNext { first: run() })
    );
    assert!(matches!(
        held_by_run().decide(acquire(later_run())),
        Err(Refusal::Locked { .. })
    ));
}

#[test]
fn another_reason_for_ones_own_lock_is_not_dropped_in_silence() {
    let lock = |reason: Option<&str>| Command::LockByPerson {
        by: person(),
        reason: reason.map(str::to_owned),
    };
    let locked = with([lock(Some("the network is being moved"))]);
    for same in [Some("the network is being moved"), None] {
        assert_eq!(locked.decide(lock(same)), Ok(vec![]), "{same:?}");
    }
    let refused = locked.decide(lock(Some("another"))).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "the workspace is locked by {}, who says: the network is being moved",
            person()
        )
    );
}

#[test]
fn every_acquisition_raises_the_fence() {
    let mut workspace = held_by_run();
    let first = workspace.fence;
    workspace = after(
        &workspace,
        Command::ReleaseByRun {
            run: run(),
            fence: first,
            left_behind: None,
        },
    );
    workspace = after(&workspace, Command::AcquireForRun { run: later_run() });
    assert!(workspace.fence > first);
}

#[test]
fn a_state_is_published_under_the_current_fence_only() {
    let workspace = held_by_run();
    let publish = |fence| Command::PublishState {
        run: run(),
        fence,
        predecessor: Predecessor::None,
        state: head(1),
    };
    assert!(workspace.decide(publish(workspace.fence)).is_ok());
    assert!(matches!(
        workspace.decide(publish(Fence::NEVER)),
        Err(Refusal::StaleFence { .. })
    ));
    let released = after(
        &workspace,
        Command::ReleaseByRun {
            run: run(),
            fence: workspace.fence,
            left_behind: None,
        },
    );
    assert!(matches!(
        released.decide(publish(workspace.fence)),
        Err(Refusal::StaleFence { .. })
    ));
}

#[test]
fn a_state_follows_the_one_its_plan_was_made_against() {
    let workspace = Workspace {
        head: Some(head(3)),
        ..held_by_run()
    };
    let publish = |planned_against: i64, serial: i64| {
        workspace.decide(Command::PublishState {
            run: run(),
            fence: workspace.fence,
            predecessor: predecessor(&head(planned_against)),
            state: head(serial),
        })
    };
    assert_eq!(publish(2, 4), Err(Refusal::PredecessorMoved));
    assert_eq!(publish(3, 2), Err(Refusal::NotSuccessor));
    assert!(matches!(
        publish(3, 4).as_deref(),
        Ok([Event::StatePublished { .. }])
    ));
    assert_eq!(publish(2, 3), Ok(vec![]), "published before");
}

#[test]
fn nobody_breaks_the_lock_of_a_run() {
    let break_lock = Command::ForceUnlock {
        by: person(),
        reason: "I am in a hurry.".to_owned(),
    };
    assert_eq!(
        held_by_run().decide(break_lock),
        Err(Refusal::HeldByRun { run: run() })
    );
}

#[test]
fn a_run_waits_once_however_often_it_is_enqueued() {
    let workspace = with([
        Command::Enqueue { run: run() },
        Command::Enqueue { run: run() },
    ]);
    assert_eq!(workspace.queue, [run()]);
    assert_eq!(
        held_by_run().decide(Command::Enqueue { run: run() }),
        Ok(vec![])
    );
}

/// The run that holds the lock gives it back; its apply failed and left the state with this serial.
fn failed_half_way(workspace: &Workspace, serial: i64) -> Workspace {
    let (waiting, fence) = (Command::Enqueue { run: run() }, workspace.fence.next());
    [
        waiting,
        Command::AcquireForRun { run: run() },
        Command::ReleaseByRun {
            run: run(),
            fence,
            left_behind: Some(head(serial)),
        },
    ]
    .into_iter()
    .fold(workspace.clone(), |workspace, command| {
        after(&workspace, command)
    })
}

#[test]
fn what_a_failed_apply_left_is_known_until_a_state_is_published() {
    let left = |serial| LeftBehind {
        run: run(),
        state: head(serial),
    };
    let mut workspace = failed_half_way(&Workspace::default(), 1);
    assert_eq!(workspace.left_behind, [left(1)]);
    workspace = failed_half_way(&workspace, 2);
    assert_eq!(workspace.left_behind, [left(1), left(2)]);
    for command in [
        Command::Enqueue { run: later_run() },
        Command::AcquireForRun { run: later_run() },
    ] {
        workspace = after(&workspace, command);
    }
    assert_eq!(
        workspace.left_behind.len(),
        2,
        "taking the lock says nothing"
    );
    let publish = Command::PublishState {
        run: later_run(),
        fence: workspace.fence,
        predecessor: Predecessor::None,
        state: head(1),
    };
    assert_eq!(after(&workspace, publish).left_behind, []);
}

#[test]
fn of_what_failed_applies_left_the_newest_is_remembered() {
    let many = i64::try_from(LEFT_BEHIND_MAX).unwrap() + 1;
    let workspace = (1..=many).fold(Workspace::default(), |workspace, serial| {
        failed_half_way(&workspace, serial)
    });
    assert_eq!(workspace.left_behind.len(), LEFT_BEHIND_MAX);
    assert_eq!(workspace.left_behind[0].state, head(2));
    assert_eq!(workspace.left_behind.last().unwrap().state, head(many));
}

#[test]
fn a_release_that_comes_late_leaves_nothing_behind() {
    let workspace = held_by_run();
    let late = Command::ReleaseByRun {
        run: run(),
        fence: Fence::NEVER,
        left_behind: Some(head(1)),
    };
    assert_eq!(after(&workspace, late), workspace);
}
