//! The fold of a run's review: given these events, then this document.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;
use stackship_domain::ids::RunId;
use stackship_domain::run::{
    Event, LossReason, PlanChanges, PlanRecord, PolicyOutcome, RecoveryResolution, Run, RunKind,
    Status, TerminalReason, samples,
};
use stackship_domain::{Actor, Timestamp};
use stackship_projections::run_review::{ApplyStatus, AttemptStatus, PlanStatus};
use stackship_projections::{Recorded, RunReview};

fn run_id() -> RunId {
    samples::id(1000)
}

fn recorded(sequence: i64, event: Event) -> Recorded<Event> {
    Recorded {
        event,
        sequence,
        recorded_at: recorded_at(sequence),
        actor: Actor::System,
    }
}

fn recorded_at(sequence: i64) -> Timestamp {
    samples::at(10_000 + sequence)
}

/// The document after each event.
fn tell(events: Vec<Event>) -> Vec<RunReview> {
    let mut told: Vec<RunReview> = Vec::new();
    for (sequence, event) in (1..).zip(events) {
        let recorded = recorded(sequence, event);
        let review = match told.last() {
            None => RunReview::begin(run_id(), &recorded).expect("a story begins with a run"),
            Some(before) => {
                let mut review = before.clone();
                review.take(&recorded);
                review
            }
        };
        told.push(review);
    }
    told
}

fn queued() -> Event {
    Event::RunQueued {
        facts: samples::facts(),
        auto_apply: false,
    }
}

fn plan_started(number: u32) -> Event {
    Event::PlanStarted {
        attempt: samples::attempt(number),
    }
}

fn plan_recorded(changes: PlanChanges) -> Event {
    let plan = PlanRecord {
        changes,
        ..samples::plan()
    };
    Event::PlanRecorded { plan }
}

fn evaluated(outcome: PolicyOutcome) -> Event {
    Event::PolicyEvaluated {
        result: samples::policy(outcome),
        approval_expires_at: samples::at(3600),
    }
}

fn approval_requested() -> Event {
    Event::ApprovalRequested {
        binding: samples::evidence().binding(),
        evidence: samples::evidence(),
        expires_at: samples::at(3600),
    }
}

fn approved() -> Event {
    Event::RunApproved {
        by: samples::reviewer(),
        binding: samples::evidence().binding(),
        at: samples::at(60),
    }
}

fn apply_started(number: u32) -> Event {
    Event::ApplyStarted {
        attempt: samples::attempt(number),
        fence: samples::fence(),
        binding: samples::evidence().binding(),
    }
}

fn canceled() -> Event {
    Event::RunCanceled {
        by: samples::reviewer(),
        reason: Some("Wrong branch.".to_owned()),
        at: samples::at(50),
    }
}

fn cancel_requested() -> Event {
    Event::CancelRequested {
        by: samples::reviewer(),
        reason: None,
        at: samples::at(50),
    }
}

fn to_plan() -> Vec<Event> {
    vec![
        queued(),
        Event::LockGranted {
            fence: samples::fence(),
            warnings: Vec::new(),
        },
        plan_started(1),
    ]
}

fn to_policy(changes: PlanChanges) -> Vec<Event> {
    let mut events = to_plan();
    events.extend([plan_recorded(changes), Event::PolicyCheckStarted]);
    events
}

fn to_question() -> Vec<Event> {
    let mut events = to_policy(PlanChanges::Some);
    events.extend([evaluated(PolicyOutcome::Pass), approval_requested()]);
    events
}

fn to_apply() -> Vec<Event> {
    let mut events = to_question();
    events.extend([approved(), apply_started(1)]);
    events
}

fn and(mut events: Vec<Event>, more: impl IntoIterator<Item = Event>) -> Vec<Event> {
    events.extend(more);
    events
}

/// Lives of runs, each with a name for the reviewed table. Longer than most functions because it is
/// a list.
#[expect(clippy::too_many_lines, reason = "it is a list of stories")]
fn stories() -> Vec<(&'static str, Vec<Event>)> {
    let by = samples::reviewer();
    let resolved = Event::RecoveryResolved {
        by,
        resolution: RecoveryResolution::DeclareNoChange,
        reason: "Checked by hand.".to_owned(),
        at: samples::at(200),
    };
    let denied = Event::RunFailed {
        reason: TerminalReason::PolicyDenied,
        detail: "Denied.".to_owned(),
    };
    let overridden = Event::PolicyOverridden {
        by,
        result: samples::policy(PolicyOutcome::SoftFailed).digest,
        reason: "Agreed in review.".to_owned(),
        expires_at: samples::at(3640),
    };
    let lost = |number: u32| Event::PlanAttemptLost {
        attempt: samples::attempt(number).id,
        reason: LossReason::LeaseExpired,
    };
    let discarded = Event::RunDiscarded {
        by,
        reason: Some("Not today.".to_owned()),
        at: samples::at(60),
    };
    let apply_failed = Event::ApplyFailed {
        reason: TerminalReason::ApplyFailed,
        detail: "tofu apply ended with exit code 1.".to_owned(),
        emergency: Some(samples::staged()),
    };
    let superseded = Event::RunSuperseded {
        by: samples::id(99),
        at: samples::at(50),
    };
    vec![
        (
            "applied",
            and(
                to_apply(),
                [Event::ApplySucceeded {
                    publication: samples::publication(),
                }],
            ),
        ),
        (
            "no changes",
            and(
                to_policy(PlanChanges::None),
                [
                    evaluated(PolicyOutcome::Pass),
                    Event::RunFinishedWithoutChanges,
                ],
            ),
        ),
        (
            "speculative",
            vec![
                Event::RunQueued {
                    facts: samples::speculative_facts(),
                    auto_apply: false,
                },
                plan_started(1),
                plan_recorded(PlanChanges::Some),
                Event::PolicyCheckStarted,
                evaluated(PolicyOutcome::SoftFailed),
                Event::SpeculativeRunFinished,
            ],
        ),
        ("discarded", and(to_question(), [discarded])),
        (
            "expired",
            and(
                to_question(),
                [Event::ApprovalExpired {
                    at: samples::at(3600),
                }],
            ),
        ),
        ("canceled in the queue", vec![queued(), canceled()]),
        (
            "canceled while it plans",
            and(to_plan(), [cancel_requested(), canceled()]),
        ),
        (
            "canceled before policy is known",
            and(to_policy(PlanChanges::Some), [canceled()]),
        ),
        (
            "canceled while a person decides",
            and(to_question(), [canceled()]),
        ),
        (
            "canceled after its approval",
            and(to_question(), [approved(), canceled()]),
        ),
        (
            "canceled before OpenTofu applied",
            and(to_apply(), [cancel_requested(), canceled()]),
        ),
        (
            "superseded while a person decides",
            and(to_question(), [superseded]),
        ),
        (
            "plan failed",
            and(
                to_plan(),
                [Event::PlanFailed {
                    failure: samples::failure(),
                }],
            ),
        ),
        (
            "credentials missing",
            and(
                to_plan(),
                [Event::PlanCredentialsMissing {
                    detail: "No profile.".to_owned(),
                }],
            ),
        ),
        (
            "plan lost twice, then given up",
            and(
                to_plan(),
                [
                    lost(1),
                    plan_started(2),
                    lost(2),
                    Event::RunFailed {
                        reason: TerminalReason::PlanAttemptsExhausted,
                        detail: "2 attempts.".to_owned(),
                    },
                ],
            ),
        ),
        (
            "denied by policy",
            and(
                to_policy(PlanChanges::Some),
                [evaluated(PolicyOutcome::HardFailed), denied],
            ),
        ),
        (
            "overridden, approved",
            and(
                to_policy(PlanChanges::Some),
                [
                    evaluated(PolicyOutcome::SoftFailed),
                    overridden,
                    approval_requested(),
                    approved(),
                ],
            ),
        ),
        (
            "apply handed back, then applied",
            and(
                to_apply(),
                [
                    Event::ApplyHandedBack {
                        attempt: samples::attempt(1).id,
                    },
                    apply_started(2),
                    Event::ApplySucceeded {
                        publication: samples::publication(),
                    },
                ],
            ),
        ),
        ("apply failed", and(to_apply(), [apply_failed])),
        (
            "recovered",
            and(
                to_apply(),
                [
                    Event::RecoveryRequired {
                        doubt: samples::doubt(),
                    },
                    resolved,
                ],
            ),
        ),
    ]
}

fn text(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value).unwrap() {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[test]
fn every_stage_of_every_story_is_reviewed() {
    let mut table = String::new();
    for (name, events) in stories() {
        writeln!(table, "\n{name}").unwrap();
        let names: Vec<&str> = events.iter().map(Event::name).collect();
        for (event, review) in names.into_iter().zip(tell(events)) {
            let policy = review.policy.result.as_ref().map(|result| result.outcome);
            let decision = review.approval.decision.as_ref();
            let decision =
                decision.map(|decision| text(&serde_json::to_value(decision).unwrap()["kind"]));
            let row = format!(
                "  {event:<29} {status:<25} plan {plan:<9} policy {policy:<12} decision {decision:<10} apply {apply:<12} {end}",
                status = review.status.as_str(),
                plan = text(review.plan.status),
                policy = policy.map_or("-", PolicyOutcome::as_str),
                decision = decision.as_deref().unwrap_or("-"),
                apply = text(review.apply.status),
                end = review.ended.map_or("", |end| end.reason.as_str()),
            );
            writeln!(table, "{}", row.trim_end()).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

fn document(story: &str) -> Value {
    let (_, events) = stories()
        .into_iter()
        .find(|(name, _)| *name == story)
        .expect("a story");
    serde_json::to_value(tell(events).pop().unwrap()).unwrap()
}

#[test]
fn an_applied_run_shows_everything_it_rested_on() {
    insta::assert_json_snapshot!(document("applied"));
}

#[test]
fn what_is_told_once_is_left_out_of_the_other_documents() {
    for story in [
        "canceled while it plans",
        "plan lost twice, then given up",
        "overridden, approved",
        "apply handed back, then applied",
        "recovered",
    ] {
        let mut document = document(story);
        let object = document.as_object_mut().unwrap();
        object.remove("facts");
        object["plan"].as_object_mut().unwrap().remove("record");
        object["approval"]
            .as_object_mut()
            .unwrap()
            .remove("request");
        insta::assert_json_snapshot!(story.replace([' ', ','], "_"), document);
    }
}

#[test]
fn a_run_that_was_never_created_has_no_review() {
    for event in samples::one_event_of_each() {
        let creates = matches!(event, Event::RunQueued { .. });
        assert_eq!(
            RunReview::begin(run_id(), &recorded(1, event)).is_some(),
            creates
        );
    }
}

#[test]
fn the_question_that_stands_has_an_end_and_an_answered_one_has_none() {
    let question = tell(to_question()).pop().unwrap();
    assert_eq!(question.decide_by(), Some(samples::at(3600)));
    let answered = tell(and(to_question(), [approved()])).pop().unwrap();
    assert_eq!(answered.decide_by(), None);
    let soft = and(
        to_policy(PlanChanges::Some),
        [evaluated(PolicyOutcome::SoftFailed)],
    );
    assert_eq!(
        tell(soft).pop().unwrap().decide_by(),
        Some(samples::at(3600))
    );
    let hard = and(
        to_policy(PlanChanges::Some),
        [evaluated(PolicyOutcome::HardFailed)],
    );
    assert_eq!(tell(hard).pop().unwrap().decide_by(), None);
}

/// Walks through the real rules at random and compares the review with the aggregate at each step.
#[test]
fn the_review_stands_where_the_run_stands() {
    const WALKS: u64 = 400;
    const STEPS_MAX: usize = 30;
    let mut reached = BTreeSet::new();
    for seed in 0..WALKS {
        let mut random = StdRng::seed_from_u64(seed);
        let mut run = Run::default();
        let mut review: Option<RunReview> = None;
        let mut sequence = 0;
        for _ in 0..STEPS_MAX {
            let Some(events) = step(&run, &mut random) else {
                break;
            };
            for event in events {
                sequence += 1;
                run.evolve(&event);
                let recorded = recorded(sequence, event);
                match &mut review {
                    None => review = RunReview::begin(run_id(), &recorded),
                    Some(review) => review.take(&recorded),
                }
            }
            let told = review.as_ref().expect("the first event creates the run");
            agree(&run, told, seed);
            reached.insert(told.status);
        }
    }
    let all: BTreeSet<Status> = Status::ALL.iter().copied().collect();
    assert_eq!(reached, all, "the walks must reach every status");
}

/// What one of the accepted commands leads to; `None` when nothing can follow.
fn step(run: &Run, random: &mut StdRng) -> Option<Vec<Event>> {
    let accepted: Vec<Vec<Event>> = samples::one_command_of_each()
        .into_iter()
        .filter_map(|(_, command)| run.decide(command).ok())
        .filter(|events| !events.is_empty())
        .collect();
    let goes_on =
        |events: &&Vec<Event>| events.iter().all(|event| event.terminal_reason().is_none());
    let going_on: Vec<&Vec<Event>> = accepted.iter().filter(goes_on).collect();
    // Most ways end a run, and most walks are to get as far as an apply before one does.
    let late = matches!(run.status(), Some(Status::Applying | Status::Canceling));
    let go_on = random.random_bool(if late { 0.3 } else { 0.97 });
    let mut events = match going_on.choose(random) {
        Some(events) if go_on => (*events).clone(),
        _ => accepted.choose(random)?.clone(),
    };
    for event in &mut events {
        vary(event, random);
    }
    Some(events)
}

/// The samples are all of one kind, and all plans change something.
fn vary(event: &mut Event, random: &mut StdRng) {
    match event {
        Event::RunQueued { facts, .. } if random.random_bool(0.2) => {
            facts.kind = RunKind::Speculative;
        }
        Event::PlanRecorded { plan } if random.random_bool(0.3) => {
            plan.changes = PlanChanges::None;
        }
        _ => {}
    }
}

fn agree(run: &Run, told: &RunReview, seed: u64) {
    assert_eq!(Some(told.status), run.status(), "seed {seed}");
    assert_eq!(told.run_state().as_ref(), Some(run), "seed {seed}");
    assert_eq!(
        told.status.is_terminal(),
        told.ended.is_some(),
        "seed {seed}"
    );
    let judged = told.policy.result.is_some() || told.ended.is_some();
    assert!(
        told.plan.status != PlanStatus::Finished || judged,
        "a plan was finished before its policy outcome was known, seed {seed}"
    );
    let attempts = || told.plan.attempts.iter().chain(&told.apply.attempts);
    let working = attempts().any(|attempt| attempt.status == AttemptStatus::Running);
    let expected = matches!(
        told.status,
        Status::Planning | Status::Applying | Status::Canceling
    );
    assert_eq!(working, expected, "seed {seed}");
    assert_eq!(
        told.apply.status == ApplyStatus::Finished,
        told.apply.published.is_some(),
        "seed {seed}"
    );
    assert_eq!(
        told.apply.status == ApplyStatus::Interrupted,
        told.recovery.is_some(),
        "seed {seed}"
    );
}
