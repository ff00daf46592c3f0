//! What holds in every history. A history is random, but most of its steps are drawn from what the
//! rules accept where it stands, so that it gets somewhere.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree as _;
use stackship_domain::run::samples::{at, attempt};
use stackship_domain::run::{self, Event, PlanChanges, PolicyOutcome, Run, RunKind, Status};
use stackship_domain::workspace::{self, Workspace};
use stackship_domain::{Fence, Sha256Digest};

const STEPS_MAX: usize = 40;
const CASES: u32 = 100;

/// How a step is drawn.
#[derive(Debug, Clone, Copy)]
enum Draw {
    /// From all commands.
    Any,
    /// From those that are accepted.
    Accepted,
    /// From those that are accepted and do not end the run, if there are any.
    Onward,
}

type Step = (Draw, Index);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let draw = prop_oneof![
        1 => Just(Draw::Any),
        2 => Just(Draw::Accepted),
        12 => Just(Draw::Onward),
    ];
    prop::collection::vec((draw, any::<Index>()), 1..STEPS_MAX)
}

/// The sample commands; those of later attempts and of a speculative run; and what fits a plan
/// without changes and a plan that policy let through by an override.
fn commands() -> Vec<run::Command> {
    let samples = run::samples::one_command_of_each();
    let mut commands: Vec<_> = samples.into_iter().map(|(_, command)| command).collect();
    commands.push(run::Command::Create(Box::new(run::NewRun {
        facts: run::samples::speculative_facts(),
        auto_apply: false,
        destroy: false,
    })));
    commands.push(run::Command::RecordPlan {
        attempt: attempt(1).id,
        plan: Box::new(run::PlanRecord {
            changes: PlanChanges::None,
            ..run::samples::plan()
        }),
    });
    let overridden = run::Evidence {
        policy: run::samples::policy(PolicyOutcome::SoftFailed).digest,
        ..run::samples::evidence()
    };
    commands.push(run::Command::Approve {
        by: run::samples::reviewer(),
        binding: overridden.binding(),
        at: at(60),
    });
    commands.push(run::Command::Expire { at: at(4000) });
    for binding in [run::samples::evidence().binding(), overridden.binding()] {
        commands.extend([1, 2].map(|number| start_apply(number, binding)));
    }
    commands
}

fn start_apply(number: u32, binding: Sha256Digest) -> run::Command {
    run::Command::StartApply {
        attempt: attempt(number),
        fence: run::samples::fence(),
        binding,
        at: at(90),
    }
}

/// Where a history of a run went, with the run as it was before each event.
struct History {
    run: Run,
    log: Vec<(Run, Event)>,
}

fn history(commands: &[run::Command], steps: &[Step]) -> History {
    let mut run = Run::default();
    let mut log = Vec::new();
    for (draw, index) in steps {
        let answers: Vec<_> = commands
            .iter()
            .map(|command| run.decide(command.clone()).unwrap_or_default())
            .collect();
        let of_any = answers.iter();
        let accepted: Vec<_> = answers.iter().filter(|events| !events.is_empty()).collect();
        let onward: Vec<_> = accepted
            .iter()
            .copied()
            .filter(|events| goes_on(events))
            .collect();
        let pool = match draw {
            Draw::Any => of_any.collect(),
            Draw::Onward if !onward.is_empty() => onward,
            Draw::Accepted | Draw::Onward => accepted,
        };
        if pool.is_empty() {
            break;
        }
        for event in (*index.get(&pool)).clone() {
            let before = run.clone();
            run.evolve(&event);
            log.push((before, event));
        }
    }
    History { run, log }
}

fn goes_on(events: &[Event]) -> bool {
    events.iter().all(|event| event.terminal_reason().is_none())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn a_replay_equals_what_was_lived(steps in steps()) {
        let lived = history(&commands(), &steps);
        let replayed = Run::replay(lived.log.iter().map(|(_, event)| event));
        prop_assert_eq!(replayed, lived.run);
    }

    #[test]
    fn nothing_follows_an_end(steps in steps()) {
        for (before, event) in history(&commands(), &steps).log {
            prop_assert!(!before.status().is_some_and(Status::is_terminal), "{}", event.name());
        }
    }

    #[test]
    fn every_event_that_is_decided_changes_the_run_or_is_a_policy_result(steps in steps()) {
        for (before, event) in history(&commands(), &steps).log {
            let mut after = before.clone();
            after.evolve(&event);
            prop_assert!(
                after != before || matches!(event, Event::PolicyEvaluated { .. }),
                "{} was ignored",
                event.name()
            );
        }
    }

    #[test]
    fn an_apply_rests_on_an_approval_of_the_same_binding(steps in steps()) {
        let mut asked: Option<Sha256Digest> = None;
        let mut approved: Option<Sha256Digest> = None;
        for (_, event) in history(&commands(), &steps).log {
            match event {
                Event::ApprovalRequested { evidence, binding, .. } => {
                    prop_assert_eq!(evidence.binding(), binding);
                    asked = Some(binding);
                }
                Event::RunApproved { binding, by, .. } => {
                    prop_assert_eq!(Some(binding), asked);
                    prop_assert!(by.is_person());
                    approved = Some(binding);
                }
                Event::ApplyStarted { binding, .. } => prop_assert_eq!(Some(binding), approved),
                _ => {}
            }
        }
    }

    #[test]
    fn a_run_is_judged_by_what_it_pinned_and_goes_on_only_where_that_lets_it(steps in steps()) {
        let mut judged: Option<PolicyOutcome> = None;
        let mut overridden_until = None;
        for (before, event) in history(&commands(), &steps).log {
            match event {
                Event::PolicyEvaluated { result, .. } => {
                    let pinned = before.facts().map(|facts| facts.pins.policies.digest());
                    prop_assert_eq!(Some(result.bundle), pinned);
                    prop_assert_eq!(judged, None, "a plan is judged once");
                    judged = Some(result.outcome);
                }
                Event::PolicyOverridden { expires_at, by, .. } => {
                    prop_assert_eq!(judged, Some(PolicyOutcome::SoftFailed));
                    prop_assert!(by.is_person());
                    overridden_until = Some(expires_at);
                }
                Event::PolicyOverrideExpired { at } => {
                    prop_assert!(overridden_until.is_some_and(|until| at >= until));
                }
                Event::ApprovalRequested { .. } | Event::ApplyStarted { .. } => {
                    let passed = judged == Some(PolicyOutcome::Pass);
                    prop_assert!(passed || overridden_until.is_some(), "{judged:?}");
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_speculative_run_never_takes_a_lock_and_never_applies(steps in steps()) {
        for (before, event) in history(&commands(), &steps).log {
            let speculative = before.facts().is_some_and(|facts| facts.kind == RunKind::Speculative);
            let forbidden = matches!(
                event,
                Event::LockGranted { .. } | Event::RunApproved { .. } | Event::ApplyStarted { .. }
            );
            prop_assert!(!(speculative && forbidden), "{}", event.name());
        }
    }

    #[test]
    fn no_record_says_that_a_run_applies_by_itself(steps in steps()) {
        for (_, event) in history(&commands(), &steps).log {
            if let Event::RunQueued { auto_apply, .. } = event {
                prop_assert!(!auto_apply);
            }
        }
    }

    #[test]
    fn a_lost_apply_is_only_ever_recovered(steps in steps()) {
        let mut lost = false;
        for (_, event) in history(&commands(), &steps).log {
            prop_assert!(!lost || matches!(event, Event::RecoveryResolved { .. }), "{}", event.name());
            lost |= matches!(event, Event::RecoveryRequired { .. });
        }
    }

    #[test]
    fn no_event_in_any_order_makes_a_run_panic_or_change_its_facts(
        events in prop::collection::vec(prop::sample::select(run::samples::one_event_of_each()), 0..STEPS_MAX)
    ) {
        let mut run = Run::default();
        for event in &events {
            let pinned = run.facts().cloned();
            let ended = run.status().is_some_and(Status::is_terminal);
            let before = run.clone();
            run.evolve(event);
            prop_assert!(pinned.is_none() || run.facts() == pinned.as_ref());
            prop_assert!(!ended || run == before);
        }
    }

    #[test]
    fn a_workspaces_fence_only_grows_and_names_one_holder(steps in steps()) {
        let commands = workspace::samples::one_command_of_each();
        let mut workspace = Workspace::default();
        let mut log = Vec::new();
        let mut newest = Fence::NEVER;
        for (_, index) in steps {
            let (_, command) = index.get(&commands);
            let command = under_current_fence(command, &workspace);
            for event in workspace.decide(command).unwrap_or_default() {
                if let workspace::Event::LockAcquired { fence, .. } = &event {
                    prop_assert!(*fence > newest);
                    prop_assert_eq!(&workspace.lock, &None, "one holder at a time");
                    newest = *fence;
                }
                workspace.evolve(&event);
                log.push(event);
            }
            prop_assert_eq!(workspace.fence, newest);
        }
        prop_assert_eq!(Workspace::replay(&log), workspace);
    }
}

/// The sample commands know one fence; a release under it would never fit a history.
fn under_current_fence(command: &workspace::Command, now: &Workspace) -> workspace::Command {
    match command {
        workspace::Command::ReleaseByRun {
            run, left_behind, ..
        } => workspace::Command::ReleaseByRun {
            run: *run,
            fence: now.fence,
            left_behind: left_behind.clone(),
        },
        other => other.clone(),
    }
}

#[test]
fn random_histories_get_somewhere() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut met = std::collections::BTreeSet::new();
    let commands = commands();
    for _ in 0..1_500 {
        let tree = steps().new_tree(&mut runner).unwrap();
        met.extend(history(&commands, &tree.current()).run.status());
    }
    let missing: Vec<_> = Status::ALL
        .iter()
        .filter(|status| status.is_terminal() && !met.contains(status))
        .collect();
    assert!(missing.is_empty(), "no history ended as {missing:?}");
}
