//! The lock before the plan, attempts, and a cancel on the way.

use stackship_domain::run::samples::{self, at, attempt};
use stackship_domain::run::{
    Command, Event, LossReason, PLAN_ATTEMPTS_MAX, PlanFailure, Refusal, Status, TerminalReason,
};

use super::{Given, cancel};

fn lose(number: u32) -> Command {
    Command::LosePlan {
        attempt: attempt(number).id,
        reason: LossReason::LeaseExpired,
        at: at(30),
    }
}

fn start(number: u32) -> Command {
    Command::StartPlan {
        attempt: attempt(number),
    }
}

#[test]
fn a_plan_waits_for_the_workspace_lock() {
    assert_eq!(Given::created().refuses(start(1)), Refusal::LockNotHeld);
    assert_eq!(Given::locked().planning(1).status(), Status::Planning);
}

#[test]
fn a_speculative_plan_needs_no_lock_and_takes_none() {
    let grant = Command::GrantLock {
        fence: samples::fence(),
        warnings: Vec::new(),
    };
    assert!(matches!(
        Given::speculative().refuses(grant),
        Refusal::WrongStatus { .. }
    ));
    assert_eq!(Given::speculative().planning(1).status(), Status::Planning);
}

#[test]
fn the_lock_is_granted_once_under_one_fence() {
    let given = Given::locked();
    given.shrugs_at(Command::GrantLock {
        fence: samples::fence(),
        warnings: Vec::new(),
    });
    let newer = samples::fence().next();
    assert_eq!(
        given.refuses(Command::GrantLock {
            fence: newer,
            warnings: Vec::new()
        }),
        Refusal::StaleFence {
            presented: newer,
            current: samples::fence()
        }
    );
}

#[test]
fn a_plan_whose_runner_was_lost_is_tried_again_until_it_was_tried_often_enough() {
    let mut given = Given::locked();
    for number in 1..PLAN_ATTEMPTS_MAX {
        given = given.planning(number).and(lose(number));
        assert_eq!(given.status(), Status::Queued);
    }
    given = given
        .planning(PLAN_ATTEMPTS_MAX)
        .and(lose(PLAN_ATTEMPTS_MAX));
    assert_eq!(given.status(), Status::Failed);
    let reason = given.last().terminal_reason();
    assert_eq!(reason, Some(TerminalReason::PlanAttemptsExhausted));
}

#[test]
fn a_report_from_a_lost_attempt_is_refused() {
    let given = Given::locked().planning(1).and(lose(1)).planning(2);
    let late = Command::RecordPlan {
        attempt: attempt(1).id,
        plan: Box::new(samples::plan()),
    };
    assert_eq!(given.refuses(late), Refusal::StaleAttempt);
    assert_eq!(given.refuses(lose(1)), Refusal::StaleAttempt);
}

#[test]
fn a_plan_fails_only_for_a_reason_that_is_a_failure() {
    let given = Given::locked().planning(1);
    for reason in TerminalReason::ALL {
        let failure = PlanFailure {
            reason: *reason,
            detail: String::new(),
        };
        let answer = given.run.decide(Command::FailPlan {
            attempt: attempt(1).id,
            failure,
        });
        assert_eq!(answer.is_ok(), reason.is_failure_before_apply(), "{reason}");
    }
}

#[test]
fn whatever_a_plan_still_found_the_cancel_holds() {
    let canceling = Given::locked().planning(1).and(cancel());
    assert_eq!(canceling.status(), Status::Canceling);
    let current = attempt(1).id;
    let reports = [
        Command::RecordPlan {
            attempt: current,
            plan: Box::new(samples::plan()),
        },
        Command::FailPlan {
            attempt: current,
            failure: samples::failure(),
        },
        Command::RequirePlanCredentials {
            attempt: current,
            detail: String::new(),
        },
        Command::StopPlan {
            attempt: current,
            at: at(55),
        },
        lose(1),
    ];
    for report in reports {
        let ended = canceling.clone().and(report);
        let Event::RunCanceled { by, .. } = ended.last() else {
            panic!("{:?}", ended.last());
        };
        assert_eq!(*by, samples::reviewer());
    }
}

#[test]
fn a_newer_run_takes_the_place_of_one_that_waits() {
    let supersede = || Command::Supersede {
        by: samples::id(99),
        at: at(50),
    };
    for waiting in [
        Given::created(),
        Given::awaiting_approval(),
        Given::approved(),
    ] {
        let ended = waiting.and(supersede());
        assert_eq!(ended.status(), Status::Canceled);
        assert_eq!(
            ended.last().terminal_reason(),
            Some(TerminalReason::Superseded)
        );
        ended.shrugs_at(supersede());
    }
    let speculative = Given::speculative().planning(1).and(supersede());
    assert_eq!(speculative.status(), Status::Canceled);
    let planning = Given::locked().planning(1).and(supersede());
    assert_eq!(
        planning.status(),
        Status::Canceling,
        "its runner stops first"
    );
    assert!(matches!(
        Given::applying().refuses(supersede()),
        Refusal::WrongStatus { .. }
    ));
}
