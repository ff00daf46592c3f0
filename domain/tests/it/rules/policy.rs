//! Policy, overrides, approvals and their deadlines.

use jiff::SignedDuration;
use stackship_domain::run::samples::{self, at, attempt};
use stackship_domain::run::{
    Command, Event, EvidencePart, PlanChanges, PlanRecord, PolicyOutcome, PolicyResult, Refusal,
    Standing, Status, TerminalReason,
};
use stackship_domain::{Actor, Sha256Digest, Timestamp};

use super::{Given, approve, start_apply};

fn override_policy(by: Actor, now: i64, until: i64) -> Command {
    override_until(by, at(now), at(until))
}

fn override_until(by: Actor, now: Timestamp, until: Timestamp) -> Command {
    Command::OverridePolicy {
        by,
        result: samples::policy(PolicyOutcome::SoftFailed).digest,
        reason: "Agreed in review.".to_owned(),
        at: now,
        expires_at: until,
        approval_expires_at: at(7200),
    }
}

fn approve_overridden(now: i64) -> (Given, Sha256Digest) {
    let given = Given::override_required().and(override_policy(samples::reviewer(), 40, 600));
    let evidence = stackship_domain::run::Evidence {
        policy: samples::policy(PolicyOutcome::SoftFailed).digest,
        ..samples::evidence()
    };
    let binding = evidence.binding();
    let approve = Command::Approve {
        by: samples::reviewer(),
        binding,
        at: at(now),
    };
    (given.and(approve), binding)
}

#[test]
fn a_plan_without_changes_that_passes_policy_succeeds_without_approval() {
    let no_changes = Command::RecordPlan {
        attempt: attempt(1).id,
        plan: Box::new(PlanRecord {
            changes: PlanChanges::None,
            ..samples::plan()
        }),
    };
    let ended = Given::locked()
        .planning(1)
        .and(no_changes)
        .evaluated(PolicyOutcome::Pass);
    assert_eq!(ended.status(), Status::NoChanges);
}

#[test]
fn a_plan_with_changes_stops_for_a_person() {
    assert_eq!(
        Given::awaiting_approval().status(),
        Status::AwaitingApproval
    );
}

#[test]
fn a_hard_mandatory_failure_and_a_policy_that_cannot_be_evaluated_end_the_run() {
    let planned = Given::locked().planning(1).planned();
    for (outcome, reason) in [
        (PolicyOutcome::HardFailed, TerminalReason::PolicyDenied),
        (PolicyOutcome::Error, TerminalReason::PolicyError),
    ] {
        let ended = planned.clone().evaluated(outcome);
        assert_eq!(ended.status(), Status::Failed);
        assert_eq!(ended.last().terminal_reason(), Some(reason));
    }
}

#[test]
fn a_speculative_run_ends_after_policy_and_is_never_approved_or_applied() {
    let ended = |outcome| {
        Given::speculative()
            .planning(1)
            .planned()
            .evaluated(outcome)
    };
    for outcome in [PolicyOutcome::Pass, PolicyOutcome::SoftFailed] {
        let given = ended(outcome);
        assert_eq!(given.status(), Status::SpeculativeFinished);
        assert_eq!(
            given.refuses(approve(samples::reviewer())),
            Refusal::Speculative
        );
        assert_eq!(
            given.refuses(start_apply(1, samples::fence())),
            Refusal::Speculative
        );
    }
}

#[test]
fn an_override_is_for_the_exact_result_that_was_reviewed() {
    let given = Given::override_required();
    let other = Command::OverridePolicy {
        by: samples::reviewer(),
        result: Sha256Digest::of(b"another result"),
        reason: "Agreed in review.".to_owned(),
        at: at(40),
        expires_at: at(600),
        approval_expires_at: at(7200),
    };
    assert_eq!(given.refuses(other), Refusal::StalePolicyResult);
}

#[test]
fn an_override_lasts_a_day_at_most_to_the_nanosecond() {
    let day = SignedDuration::from_hours(24);
    let given = Given::override_required();
    let until = |excess: i64| {
        let expires_at = at(40) + day + SignedDuration::from_nanos(excess);
        override_until(samples::reviewer(), at(40), expires_at)
    };
    assert!(given.run.decide(until(0)).is_ok());
    assert_eq!(given.refuses(until(1)), Refusal::OverrideTime);
}

#[test]
fn an_approval_lapses_with_the_override_it_rests_on() {
    let given = Given::override_required().and(override_policy(samples::reviewer(), 40, 600));
    assert_eq!(given.run.expires_at(), Some(at(600)));
}

#[test]
fn an_apply_does_not_start_once_the_override_is_over_and_the_run_lapses() {
    let (approved, binding) = approve_overridden(60);
    let start = Command::StartApply {
        attempt: attempt(1),
        fence: samples::fence(),
        binding,
        at: at(600),
    };
    assert_eq!(approved.refuses(start), Refusal::OverrideExpired);
    assert_eq!(
        approved.refuses(Command::Expire { at: at(599) }),
        Refusal::ApprovalNotExpired
    );
    let ended = approved.and(Command::Expire { at: at(600) });
    assert_eq!(ended.status(), Status::Expired);
    assert_eq!(
        ended.last().terminal_reason(),
        Some(TerminalReason::PolicyOverrideExpired)
    );
}

#[test]
fn an_approval_that_comes_after_the_override_is_over_is_told_so() {
    let given = Given::override_required().and(override_policy(samples::reviewer(), 40, 600));
    let evidence = stackship_domain::run::Evidence {
        policy: samples::policy(PolicyOutcome::SoftFailed).digest,
        ..samples::evidence()
    };
    let late = Command::Approve {
        by: samples::reviewer(),
        binding: evidence.binding(),
        at: at(600),
    };
    assert_eq!(given.refuses(late), Refusal::OverrideExpired);
    let ended = given.and(Command::Expire { at: at(600) });
    assert_eq!(
        ended.last().terminal_reason(),
        Some(TerminalReason::PolicyOverrideExpired)
    );
}

#[test]
fn a_result_about_other_policies_than_the_pinned_ones_is_refused() {
    let checking = Given::locked()
        .planning(1)
        .planned()
        .and(Command::StartPolicyCheck);
    let other = Command::RecordPolicy {
        result: PolicyResult {
            bundle: Sha256Digest::of(b"other policies"),
            ..samples::policy(PolicyOutcome::Pass)
        },
        approval_expires_at: at(3600),
    };
    assert_eq!(checking.refuses(other), Refusal::OtherPolicies);
}

#[test]
fn a_run_that_could_not_be_judged_says_why() {
    let ended = Given::locked()
        .planning(1)
        .planned()
        .evaluated(PolicyOutcome::Error);
    let Event::RunFailed { detail, .. } = ended.last() else {
        panic!("{:?}", ended.last())
    };
    assert!(detail.ends_with("(policy_crashed)"), "{detail}");
}

#[test]
fn an_override_that_nobody_gives_lapses() {
    let given = Given::override_required();
    assert_eq!(
        given.refuses(Command::Expire { at: at(3599) }),
        Refusal::ApprovalNotExpired
    );
    assert_eq!(
        given.refuses(override_policy(samples::reviewer(), 3600, 3700)),
        Refusal::ApprovalExpired
    );
    let ended = given.and(Command::Expire { at: at(3600) });
    assert_eq!(ended.status(), Status::Expired);
    ended.shrugs_at(Command::Expire { at: at(3601) });
}

#[test]
fn only_a_person_overrides_and_approves() {
    let machine = Actor::Runner(samples::attempt(1).runner);
    for by in [Actor::System, machine] {
        assert!(matches!(
            Given::override_required().refuses(override_policy(by, 40, 600)),
            Refusal::PersonRequired { .. }
        ));
        assert!(matches!(
            Given::awaiting_approval().refuses(approve(by)),
            Refusal::PersonRequired { .. }
        ));
    }
}

#[test]
fn an_approval_for_other_evidence_is_refused() {
    let other = Command::Approve {
        by: samples::reviewer(),
        binding: Sha256Digest::of(b"what another plan was bound to"),
        at: at(60),
    };
    assert_eq!(
        Given::awaiting_approval().refuses(other),
        Refusal::StaleEvidence {
            part: EvidencePart::Binding
        }
    );
}

#[test]
fn an_approval_at_the_deadline_comes_too_late() {
    let late = Command::Approve {
        by: samples::reviewer(),
        binding: samples::evidence().binding(),
        at: at(3600),
    };
    assert_eq!(
        Given::awaiting_approval().refuses(late),
        Refusal::ApprovalExpired
    );
}

#[test]
fn saying_yes_twice_is_harmless_and_a_second_person_is_told_who_was_first() {
    let approved = Given::approved();
    approved.shrugs_at(approve(samples::reviewer()));
    assert_eq!(
        approved.refuses(approve(Actor::Operator)),
        Refusal::AlreadyApproved {
            by: samples::reviewer()
        }
    );
}

#[test]
fn the_approval_carries_the_binding_of_the_evidence_it_is_about() {
    let approved = Given::approved();
    let stackship_domain::run::Run::Born { standing, .. } = &approved.run else {
        panic!("created above")
    };
    let Standing::Approved {
        evidence, approval, ..
    } = &**standing
    else {
        panic!("approved above")
    };
    assert_eq!(approval.binding, evidence.binding());
}

/// Two processes may evaluate one plan, and find different things. What comes second is no result of the
/// run, so it takes nothing from what was said about the first one, and gives nobody a new word.
#[test]
fn a_plan_is_judged_once_whatever_is_found_later() {
    let overridden = Given::override_required().and(override_policy(samples::reviewer(), 40, 600));
    let (approved, binding) = approve_overridden(60);
    let applying = approved.clone().and(Command::StartApply {
        attempt: attempt(1),
        fence: samples::fence(),
        binding,
        at: at(90),
    });
    let results = |outcome| Command::RecordPolicy {
        result: PolicyResult {
            digest: Sha256Digest::of(b"found by another process"),
            ..samples::policy(outcome)
        },
        approval_expires_at: at(3600),
    };
    let judged = [
        Given::override_required(),
        Given::awaiting_approval(),
        overridden,
        approved,
        applying,
    ];
    for given in judged {
        let status = given.status();
        let again = PolicyOutcome::ALL.iter().map(|outcome| results(*outcome));
        for command in again.chain([Command::StartPolicyCheck]) {
            let refused = Refusal::WrongStatus {
                command: command.name(),
                status,
            };
            assert_eq!(given.refuses(command), refused);
        }
    }
}
