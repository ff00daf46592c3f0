//! The apply: once, under the current fence, and never a guess.

use stackship_domain::run::samples::{self, at, attempt};
use stackship_domain::run::{
    ApplyReport, Command, DoubtReason, Event, LossReason, RecoveryResolution, Refusal, Status,
    TerminalReason,
};
use stackship_domain::{Actor, Fence, Sha256Digest};

use super::{Given, cancel, start_apply};

fn record(report: ApplyReport) -> Command {
    Command::RecordApply {
        attempt: attempt(1).id,
        fence: samples::fence(),
        report: Box::new(report),
        at: at(120),
    }
}

fn published() -> ApplyReport {
    ApplyReport::Published {
        publication: samples::publication(),
    }
}

fn not_started() -> ApplyReport {
    ApplyReport::NotStarted {
        part: None,
        detail: "The plan file differs.".to_owned(),
    }
}

fn failed() -> ApplyReport {
    ApplyReport::Failed {
        detail: "tofu apply ended with exit code 1.".to_owned(),
        emergency: Some(samples::staged()),
    }
}

fn lose() -> Command {
    Command::LoseApply {
        attempt: attempt(1).id,
        reason: LossReason::LeaseExpired,
        emergency: Some(samples::staged()),
    }
}

fn hand_back() -> Command {
    Command::HandBackApply {
        attempt: attempt(1).id,
        at: at(95),
    }
}

fn resolve(by: Actor, resolution: RecoveryResolution, reason: &str) -> Command {
    Command::ResolveRecovery {
        by,
        resolution,
        reason: reason.to_owned(),
        at: at(200),
    }
}

#[test]
fn an_apply_starts_under_the_current_fence_with_the_approved_binding_only() {
    let approved = Given::approved();
    let stale = Fence::from_stored(4);
    assert!(matches!(
        approved.refuses(start_apply(1, stale)),
        Refusal::StaleFence { .. }
    ));
    let other = |attempt| Command::StartApply {
        attempt,
        fence: samples::fence(),
        binding: Sha256Digest::of(b"other"),
        at: at(90),
    };
    assert!(matches!(
        approved.refuses(other(attempt(1))),
        Refusal::StaleEvidence { .. }
    ));
    let applying = approved.and(start_apply(1, samples::fence()));
    applying.shrugs_at(start_apply(1, samples::fence()));
    assert!(
        matches!(
            applying.refuses(other(attempt(1))),
            Refusal::StaleEvidence { .. }
        ),
        "a repeated start is for the same plan, too"
    );
}

#[test]
fn nothing_is_applied_without_an_approval() {
    for given in [Given::awaiting_approval(), Given::override_required()] {
        assert!(matches!(
            given.refuses(start_apply(1, samples::fence())),
            Refusal::WrongStatus { .. }
        ));
    }
}

#[test]
fn only_a_published_state_makes_a_run_applied() {
    let ended = Given::applying().and(record(published()));
    assert_eq!(ended.status(), Status::Applied);
}

#[test]
fn an_apply_that_reported_its_error_failed_and_keeps_its_partial_state() {
    let ended = Given::applying().and(record(failed()));
    let Event::ApplyFailed {
        reason, emergency, ..
    } = ended.last()
    else {
        panic!("{:?}", ended.last())
    };
    assert_eq!(*reason, TerminalReason::ApplyFailed);
    assert_eq!(*emergency, Some(samples::staged()));
}

#[test]
fn a_lost_apply_needs_an_operator_and_is_never_tried_again() {
    let lost = Given::applying().and(lose());
    assert_eq!(lost.status(), Status::RecoveryRequired);
    for command in [
        start_apply(2, samples::fence()),
        record(published()),
        record(failed()),
        cancel(),
        hand_back(),
    ] {
        assert!(matches!(lost.refuses(command), Refusal::WrongStatus { .. }));
    }
}

#[test]
fn an_apply_that_was_interrupted_and_then_failed_is_in_doubt() {
    let given = Given::applying().and(cancel()).and(record(failed()));
    let Event::RecoveryRequired { doubt } = given.last() else {
        panic!("{:?}", given.last())
    };
    assert_eq!(doubt.reason, DoubtReason::Interrupted);
    assert_eq!(doubt.emergency, Some(samples::staged()));
}

#[test]
fn a_cancel_that_came_too_late_does_not_hide_what_happened() {
    let canceling = Given::applying().and(cancel());
    let applied = canceling.clone().and(record(published()));
    assert_eq!(applied.status(), Status::Applied);
    let lost = canceling.and(lose());
    assert_eq!(lost.status(), Status::RecoveryRequired);
}

#[test]
fn a_cancel_that_came_before_opentofu_cancels() {
    let canceling = Given::applying().and(cancel());
    for report in [record(not_started()), hand_back()] {
        assert_eq!(canceling.clone().and(report).status(), Status::Canceled);
    }
}

#[test]
fn an_approved_run_that_was_canceled_does_not_start() {
    let canceled = Given::approved().and(cancel());
    assert_eq!(canceled.status(), Status::Canceled);
    assert!(matches!(
        canceled.refuses(start_apply(1, samples::fence())),
        Refusal::WrongStatus { .. }
    ));
}

#[test]
fn an_apply_that_was_handed_back_waits_for_another_runner() {
    let given = Given::applying().and(hand_back());
    assert_eq!(given.status(), Status::Approved);
    let second = given.and(start_apply(2, samples::fence()));
    assert_eq!(second.refuses(hand_back()), Refusal::StaleAttempt);
    assert_eq!(second.refuses(record(published())), Refusal::StaleAttempt);
    assert_eq!(second.refuses(lose()), Refusal::StaleAttempt);
}

#[test]
fn a_report_under_a_stale_fence_is_refused() {
    let stale = Command::RecordApply {
        attempt: attempt(1).id,
        fence: Fence::from_stored(4),
        report: Box::new(published()),
        at: at(120),
    };
    assert!(matches!(
        Given::applying().refuses(stale),
        Refusal::StaleFence { .. }
    ));
}

#[test]
fn a_doubt_is_resolved_by_a_person_who_says_why() {
    let lost = Given::applying().and(lose());
    let no_change = || RecoveryResolution::DeclareNoChange;
    let person = samples::reviewer();
    assert_eq!(
        lost.refuses(resolve(person, no_change(), " ")),
        Refusal::ReasonMissing
    );
    assert!(matches!(
        lost.refuses(resolve(Actor::System, no_change(), "Checked.")),
        Refusal::PersonRequired { .. }
    ));
    let ended = lost.and(resolve(person, no_change(), "Checked."));
    assert_eq!(ended.status(), Status::Recovered);
    ended.shrugs_at(resolve(person, no_change(), "Checked."));
}

#[test]
fn only_what_the_apply_left_behind_is_adopted() {
    let lost = Given::applying().and(lose());
    let adopt = |publication| {
        let resolution = RecoveryResolution::AdoptEmergencyState { publication };
        resolve(samples::reviewer(), resolution, "Checked.")
    };
    assert_eq!(
        lost.refuses(adopt(samples::publication())),
        Refusal::NotTheEmergencyState
    );
    let ended = lost.and(adopt(samples::adopted()));
    assert_eq!(ended.status(), Status::Recovered);
}
