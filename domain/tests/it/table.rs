//! Every standing against every command, as one table to review. A new status, command or rule
//! shows up in its diff.

use std::fmt::Write as _;

use stackship_domain::run::{self, Run, Status, TerminalReason};
use stackship_domain::workspace::{self, Workspace};

/// The longest name of a sample command, and two spaces.
const NAME_WIDTH: usize = 34;
const LISTED_PER_LINE: usize = 4;

/// One line: the command, then the events with where they lead, or the refusal in its own words.
fn line(out: &mut String, command: &str, answer: &str) {
    assert!(command.len() < NAME_WIDTH, "{command} needs a wider column");
    writeln!(out, "  {command:NAME_WIDTH$}{answer}").unwrap();
}

fn answer_of_run(before: &Run, command: run::Command) -> Option<String> {
    match before.decide(command) {
        // Listed on one line for all, so that what is peculiar stands out.
        Err(
            run::Refusal::WrongStatus { .. }
            | run::Refusal::NoSuchRun
            | run::Refusal::AlreadyCreated,
        ) => None,
        Err(refusal) => Some(format!("no: {refusal}")),
        Ok(events) if events.is_empty() => Some("done before".to_owned()),
        Ok(events) => {
            let mut after = before.clone();
            for event in &events {
                after.evolve(event);
            }
            let names: Vec<_> = events.iter().map(run::Event::name).collect();
            let status = after.status().expect("a run with events has a status");
            Some(format!("{} -> {status}", names.join(", ")))
        }
    }
}

#[test]
fn every_standing_answers_every_command_of_a_run() {
    let mut out = String::new();
    for (standing, before) in run::samples::one_run_of_each() {
        writeln!(out, "{standing}").unwrap();
        let mut wrong = Vec::new();
        for (name, command) in run::samples::one_command_of_each() {
            match answer_of_run(&before, command) {
                Some(answer) => line(&mut out, name, &answer),
                None => wrong.push(name),
            }
        }
        out.push_str("  not possible here:\n");
        for few in wrong.chunks(LISTED_PER_LINE) {
            writeln!(out, "    {}", few.join("; ")).unwrap();
        }
        out.push('\n');
    }
    insta::assert_snapshot!(out);
}

#[test]
fn every_situation_answers_every_command_of_a_workspace() {
    let mut out = String::new();
    for (situation, before) in workspace::samples::one_workspace_of_each() {
        writeln!(out, "{situation}").unwrap();
        for (name, command) in workspace::samples::one_command_of_each() {
            line(&mut out, name, &answer_of_workspace(&before, command));
        }
        out.push('\n');
    }
    insta::assert_snapshot!(out);
}

fn answer_of_workspace(before: &Workspace, command: workspace::Command) -> String {
    match before.decide(command) {
        Err(refusal) => format!("no: {refusal}"),
        Ok(events) if events.is_empty() => "done before".to_owned(),
        Ok(events) => {
            let mut after = before.clone();
            for event in &events {
                after.evolve(event);
            }
            let names: Vec<_> = events.iter().map(workspace::Event::name).collect();
            format!("{} -> {}", names.join(", "), describe(&after))
        }
    }
}

fn describe(workspace: &Workspace) -> String {
    let holder = match workspace.lock.as_ref().map(|lock| lock.holder) {
        None => "free".to_owned(),
        Some(workspace::Holder::Run { run }) if run == workspace::samples::run() => {
            "held by the run".to_owned()
        }
        Some(workspace::Holder::Run { .. }) => "held by the later run".to_owned(),
        Some(workspace::Holder::User { .. }) => "held by a person".to_owned(),
    };
    let serial = workspace.head.as_ref().map_or(0, |head| head.serial);
    let waiting = workspace.queue.len();
    let left = match workspace.left_behind.len() {
        0 => String::new(),
        some => format!(", {some} left behind"),
    };
    format!(
        "{holder}, fence {}, {waiting} waiting, serial {serial}{left}",
        workspace.fence
    )
}

#[test]
fn the_samples_leave_no_status_and_no_command_out() {
    let runs = run::samples::one_run_of_each();
    for status in Status::ALL {
        assert!(
            runs.iter().any(|(_, run)| run.status() == Some(*status)),
            "no sample run is {status}"
        );
    }
    let of_a_run = run::samples::one_command_of_each();
    for name in names_in(include_str!("../../src/run/command.rs")) {
        assert!(
            of_a_run.iter().any(|(_, command)| command.name() == name),
            "no sample of {name}"
        );
    }
    let of_a_workspace = workspace::samples::one_command_of_each();
    for name in names_in(include_str!("../../src/workspace/command.rs")) {
        assert!(
            of_a_workspace
                .iter()
                .any(|(_, command)| command.name() == name),
            "no sample of {name}"
        );
    }
}

/// The names that the exhaustive match in `Command::name` gives, read from its source: a variant
/// without a sample has no other list to be missing from.
fn names_in(source: &str) -> Vec<&str> {
    let names: Vec<_> = source
        .lines()
        .filter_map(|line| line.split_once("=> \"")?.1.split_once('"'))
        .map(|(name, _)| name)
        .collect();
    assert!(!names.is_empty(), "the names moved");
    names
}

#[test]
fn every_end_has_a_code_and_a_sentence() {
    let mut out = String::new();
    for reason in TerminalReason::ALL {
        writeln!(out, "{reason}: {}", reason.sentence()).unwrap();
    }
    insta::assert_snapshot!(out);
}

#[test]
fn exactly_the_events_that_end_a_run_record_a_reason() {
    for event in run::samples::one_event_of_each() {
        let ends = run::samples::one_run_of_each()
            .into_iter()
            .any(|(_, before)| {
                let mut after = before.clone();
                after.evolve(&event);
                after != before && after.status().is_some_and(Status::is_terminal)
            });
        assert_eq!(event.terminal_reason().is_some(), ends, "{}", event.name());
    }
}
