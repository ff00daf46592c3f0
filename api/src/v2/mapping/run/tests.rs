use stackship_domain::run::samples::{self, at, id};
use stackship_domain::run::{Event, Facts, LossReason, PlanRecord, PolicyOutcome, TerminalReason};
use stackship_domain::{Actor, Fence};
use stackship_projections::Recorded;

use super::*;
use crate::v2::mapping::policy_check;

/// The review of a run that went through these events, a second each.
fn review(facts: Facts, events: Vec<Event>) -> RunReview {
    let queued = Event::RunQueued {
        facts,
        auto_apply: false,
    };
    let recorded = |event, sequence| Recorded {
        event,
        sequence,
        actor: samples::reviewer(),
        recorded_at: at(sequence),
    };
    let mut review = RunReview::begin(id(42), &recorded(queued, 1)).unwrap();
    for (event, sequence) in events.into_iter().zip(2..) {
        review.take(&recorded(event, sequence));
    }
    review
}

fn granted() -> Event {
    Event::LockGranted {
        fence: Fence::from_stored(5),
        warnings: Vec::new(),
    }
}

fn planning() -> Vec<Event> {
    vec![
        granted(),
        Event::PlanStarted {
            attempt: samples::attempt(1),
        },
    ]
}

fn planned(plan: PlanRecord) -> Vec<Event> {
    then(planning(), Event::PlanRecorded { plan })
}

fn evaluated(outcome: PolicyOutcome) -> Event {
    Event::PolicyEvaluated {
        result: samples::policy(outcome),
        approval_expires_at: at(1_000),
    }
}

fn judged(outcome: PolicyOutcome) -> Vec<Event> {
    then(planned(samples::plan()), evaluated(outcome))
}

fn failed(reason: TerminalReason) -> Event {
    Event::RunFailed {
        reason,
        detail: reason.sentence().to_owned(),
    }
}

/// A soft denial that somebody let through.
fn overridden() -> Vec<Event> {
    let evidence = samples::evidence();
    let given = Event::PolicyOverridden {
        by: samples::reviewer(),
        result: samples::policy(PolicyOutcome::SoftFailed).digest,
        reason: "Agreed in review.".to_owned(),
        expires_at: at(500),
    };
    let request = Event::ApprovalRequested {
        binding: evidence.binding(),
        evidence,
        expires_at: at(500),
    };
    [judged(PolicyOutcome::SoftFailed), vec![given, request]].concat()
}

fn asked() -> Vec<Event> {
    let evidence = samples::evidence();
    let binding = evidence.binding();
    let request = Event::ApprovalRequested {
        evidence,
        binding,
        expires_at: at(1_000),
    };
    let policy = vec![
        Event::PolicyCheckStarted,
        evaluated(PolicyOutcome::Pass),
        request,
    ];
    [planned(samples::plan()), policy].concat()
}

fn approved() -> Vec<Event> {
    let approval = samples::approval();
    let approved = Event::RunApproved {
        by: approval.by,
        binding: approval.binding,
        at: approval.at,
    };
    [asked(), vec![approved]].concat()
}

fn applying() -> Vec<Event> {
    let started = Event::ApplyStarted {
        attempt: samples::attempt(1),
        fence: samples::fence(),
        binding: samples::evidence().binding(),
    };
    [approved(), vec![started]].concat()
}

fn canceled() -> Event {
    Event::RunCanceled {
        by: samples::reviewer(),
        reason: None,
        at: at(50),
    }
}

fn then(mut events: Vec<Event>, event: Event) -> Vec<Event> {
    events.push(event);
    events
}

/// Every way a run can stand, by name.
#[expect(clippy::too_many_lines, reason = "it is a list")]
fn every_way() -> Vec<(&'static str, RunReview)> {
    let run = |events| review(samples::facts(), events);
    let superseded = || Event::RunSuperseded {
        by: id(43),
        at: at(60),
    };
    let discarded = Event::RunDiscarded {
        by: samples::reviewer(),
        reason: None,
        at: at(60),
    };
    let lost = Event::PlanAttemptLost {
        attempt: samples::attempt(1).id,
        reason: LossReason::LeaseExpired,
    };
    let asked_to_stop = || Event::CancelRequested {
        by: samples::reviewer(),
        reason: None,
        at: at(50),
    };
    let failed_apply = Event::ApplyFailed {
        reason: TerminalReason::ApplyFailed,
        detail: "exit code 1".to_owned(),
        emergency: None,
    };
    vec![
        ("queued behind another", run(vec![])),
        ("sandbox starting", run(vec![granted()])),
        (
            "speculative, sandbox starting",
            review(samples::speculative_facts(), vec![]),
        ),
        ("planning", run(planning())),
        ("plan lost, to be tried again", run(then(planning(), lost))),
        ("canceling the plan", run(then(planning(), asked_to_stop()))),
        ("planned, policy not begun", run(planned(samples::plan()))),
        (
            "policy being evaluated",
            run(then(planned(samples::plan()), Event::PolicyCheckStarted)),
        ),
        ("soft failure", run(judged(PolicyOutcome::SoftFailed))),
        (
            "discarded at the override",
            run(then(judged(PolicyOutcome::SoftFailed), discarded.clone())),
        ),
        (
            "expired at the override",
            run(then(
                judged(PolicyOutcome::SoftFailed),
                Event::ApprovalExpired { at: at(99) },
            )),
        ),
        ("overridden", run(overridden())),
        (
            "override over at the prompt",
            run(then(
                overridden(),
                Event::PolicyOverrideExpired { at: at(500) },
            )),
        ),
        (
            "override over after the approval",
            run(then(
                approved(),
                Event::PolicyOverrideExpired { at: at(500) },
            )),
        ),
        (
            "hard failure",
            run(then(
                judged(PolicyOutcome::HardFailed),
                failed(TerminalReason::PolicyDenied),
            )),
        ),
        (
            "policies not evaluated",
            run(then(
                judged(PolicyOutcome::Error),
                failed(TerminalReason::PolicyError),
            )),
        ),
        ("awaiting approval", run(asked())),
        ("approved", run(approved())),
        ("applying", run(applying())),
        (
            "canceling the apply",
            run(then(applying(), asked_to_stop())),
        ),
        (
            "applied",
            run(then(
                applying(),
                Event::ApplySucceeded {
                    publication: samples::publication(),
                },
            )),
        ),
        ("apply failed", run(then(applying(), failed_apply))),
        (
            "apply in doubt",
            run(then(
                applying(),
                Event::RecoveryRequired {
                    doubt: samples::doubt(),
                },
            )),
        ),
        (
            "no changes",
            run([
                planned(PlanRecord {
                    changes: PlanChanges::None,
                    ..samples::plan()
                }),
                vec![
                    evaluated(PolicyOutcome::Pass),
                    Event::RunFinishedWithoutChanges,
                ],
            ]
            .concat()),
        ),
        (
            "plan failed",
            run(then(
                planning(),
                Event::PlanFailed {
                    failure: samples::failure(),
                },
            )),
        ),
        ("discarded at the prompt", run(then(asked(), discarded))),
        (
            "expired at the prompt",
            run(then(asked(), Event::ApprovalExpired { at: at(99) })),
        ),
        ("canceled at the prompt", run(then(asked(), canceled()))),
        ("superseded at the prompt", run(then(asked(), superseded()))),
        (
            "canceled after the approval",
            run(then(approved(), canceled())),
        ),
        ("canceled while queued", run(vec![canceled()])),
        ("canceled while planning", run(then(planning(), canceled()))),
        ("superseded while queued", run(vec![superseded()])),
    ]
}

#[test]
fn every_way_a_run_can_stand_in_the_clients_words() {
    let rows: Vec<String> = every_way()
        .iter()
        .map(|(name, review)| {
            let flags = actions(review.status);
            let can = [
                (flags.is_cancelable, "cancel"),
                (flags.is_confirmable, "confirm"),
                (flags.is_discardable, "discard"),
            ];
            let can: Vec<&str> = can
                .iter()
                .filter_map(|(is, word)| is.then_some(*word))
                .collect();
            format!(
                "{name:34} run {:21} plan {:9} apply {:12} changes {:5} {}",
                run_status(review),
                plan_status(review),
                apply_status(review),
                has_changes(review),
                can.join(" ")
            )
            .trim_end()
            .to_owned()
        })
        .collect();
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn a_plan_is_over_only_when_the_decision_can_be_seen() {
    for (name, review) in every_way() {
        if plan_status(&review) == "finished" && has_changes(&review) && review.ended.is_none() {
            let flags = actions(review.status);
            let is_decidable = flags.is_confirmable || review.approval.decision.is_some();
            assert!(
                is_decidable || review.status == Status::OverrideRequired,
                "{name}"
            );
        }
    }
}

#[test]
fn whoever_leaves_the_prompt_is_discarded_or_has_an_apply_that_ends() {
    for (name, review) in every_way() {
        let is_answered = review.approval.decision.is_some() && review.ended.is_some();
        if is_answered && run_status(&review) != "discarded" {
            assert!(
                is_over(&review, Phase::Apply),
                "{name}: the client would wait for ever"
            );
        }
    }
}

#[test]
fn a_run_that_ends_before_the_question_or_after_a_yes_is_never_discarded() {
    for (name, review) in every_way() {
        if run_status(&review) == "discarded" {
            let asked = review.approval.request.is_some() || review.policy.decide_by.is_some();
            assert!(
                asked && actions(review.status) == ActionFlags::default(),
                "{name}"
            );
            assert!(turned_down(&review), "{name}: `tofu apply` would exit 0");
        }
    }
}

#[test]
fn an_ended_run_has_no_phase_that_goes_on() {
    for (name, review) in every_way()
        .into_iter()
        .filter(|(_, review)| review.ended.is_some())
    {
        assert!(
            is_over(&review, Phase::Plan) && is_over(&review, Phase::Apply),
            "{name}"
        );
    }
}

#[test]
fn a_run_as_a_document() {
    let review = review(samples::facts(), asked());
    let rights = Rights::of(Some(stackship_domain::Role::Operator));
    let view = RunView {
        review: &review,
        rights,
    };
    assert_eq!(review.facts.created_by, Actor::User(id(6)));
    insta::assert_json_snapshot!(run_resource(view));
}

#[test]
fn every_policy_check_as_a_document() {
    let rights = Rights::of(Some(stackship_domain::Role::Owner));
    let checks = [
        judged(PolicyOutcome::Pass),
        judged(PolicyOutcome::SoftFailed),
        overridden(),
        judged(PolicyOutcome::HardFailed),
        judged(PolicyOutcome::Error),
    ]
    .map(|events| policy_check(&review(samples::judged_facts(), events), rights));
    insta::assert_json_snapshot!(checks);
}

#[test]
fn a_run_points_at_a_check_only_where_there_is_something_to_print() {
    let shown = |facts: Facts, outcome| {
        let events = then(planned(samples::plan()), evaluated(outcome));
        shown_policy_check(&review(facts, events)).is_some()
    };
    assert!(
        !shown(samples::facts(), PolicyOutcome::Pass),
        "no policy applies"
    );
    assert!(shown(samples::facts(), PolicyOutcome::Error));
    assert!(shown(samples::judged_facts(), PolicyOutcome::Pass));
    let unjudged = review(samples::judged_facts(), planned(samples::plan()));
    assert_eq!(shown_policy_check(&unjudged), None);
}
