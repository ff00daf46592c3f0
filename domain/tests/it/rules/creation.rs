//! What is never accepted, and what never changes.

use stackship_domain::run::samples::{self, at};
use stackship_domain::run::{Command, Event, NewRun, Refusal, RunKind, Status};

use super::Given;

fn new(auto_apply: bool, destroy: bool) -> Command {
    Command::Create(Box::new(NewRun {
        facts: samples::facts(),
        auto_apply,
        destroy,
    }))
}

#[test]
fn an_automatic_apply_is_refused_before_anything_exists() {
    assert_eq!(
        Given::nothing().refuses(new(true, false)),
        Refusal::AutoApply
    );
}

#[test]
fn a_destroy_mode_run_is_refused_before_anything_exists() {
    assert_eq!(
        Given::nothing().refuses(new(false, true)),
        Refusal::DestroyMode
    );
}

#[test]
fn a_run_is_created_once_and_says_that_it_applies_nothing_by_itself() {
    let given = Given::created();
    assert!(matches!(
        given.last(),
        Event::RunQueued {
            auto_apply: false,
            ..
        }
    ));
    assert_eq!(given.status(), Status::Queued);
    assert_eq!(given.refuses(new(false, false)), Refusal::AlreadyCreated);
}

#[test]
fn nothing_can_be_asked_of_a_run_that_does_not_exist() {
    for (name, command) in samples::one_command_of_each() {
        if !matches!(command, Command::Create(_)) {
            assert_eq!(
                Given::nothing().refuses(command),
                Refusal::NoSuchRun,
                "{name}"
            );
        }
    }
}

#[test]
fn no_event_changes_what_a_run_pinned() {
    for (name, before) in samples::one_run_of_each() {
        for event in another_run_queued()
            .into_iter()
            .chain(samples::one_event_of_each())
        {
            let mut after = before.clone();
            after.evolve(&event);
            if let Some(pinned) = before.facts() {
                assert_eq!(after.facts(), Some(pinned), "{name}, {}", event.name());
            }
        }
    }
}

fn another_run_queued() -> [Event; 1] {
    let mut facts = samples::facts();
    facts.kind = RunKind::Speculative;
    facts.created_at = at(7);
    facts.pins.tofu_version = "1.11.0".parse().unwrap();
    [Event::RunQueued {
        facts,
        auto_apply: true,
    }]
}

#[test]
fn an_event_after_the_end_changes_nothing() {
    for (name, ended) in samples::one_run_of_each() {
        if !ended.status().is_some_and(Status::is_terminal) {
            continue;
        }
        for event in samples::one_event_of_each() {
            let mut after = ended.clone();
            after.evolve(&event);
            assert_eq!(after, ended, "{name}, {}", event.name());
        }
    }
}
