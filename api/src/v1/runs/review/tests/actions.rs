//! Who could do what, in every standing and for every role.

use std::fmt::Write as _;

use stackship_domain::Role;
use stackship_domain::run::samples::{self, at};

use super::super::actions::{Asked, Ends};
use super::{BOTH_ENDS, viewer};

fn available(run: &stackship_domain::run::Run, role: Role, ends: Option<Ends>) -> Vec<String> {
    let asked = Asked {
        run,
        viewer: viewer(role),
        now: at(60),
        ends,
    };
    let name = |action| serde_json::to_value(action).unwrap();
    let available = asked.available().into_iter();
    available
        .map(|one| name(one.action).as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn each_role_could_do_this_in_each_standing() {
    let mut table = String::new();
    for (name, run) in samples::one_run_of_each() {
        writeln!(table, "{name}").unwrap();
        for role in Role::ALL {
            let actions = available(&run, role, Some(BOTH_ENDS)).join(" ");
            let actions = if actions.is_empty() { "-" } else { &actions };
            writeln!(table, "    {:<10} {actions}", role.as_str()).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn an_end_that_the_workspace_would_refuse_is_not_offered() {
    let (_, run) = samples::one_run_of_each()
        .into_iter()
        .find(|(name, _)| *name == "recovery_required")
        .unwrap();
    let of = |ends| available(&run, Role::Owner, ends);
    assert_eq!(of(None), [""; 0]);
    let adopt = Ends {
        no_change: false,
        ..BOTH_ENDS
    };
    assert_eq!(of(Some(adopt)), ["recovery_adopt"]);
    let no_change = Ends {
        adopt: false,
        ..BOTH_ENDS
    };
    assert_eq!(of(Some(no_change)), ["recovery_no_change"]);
}

#[test]
fn a_plan_is_not_offered_for_approval_once_its_time_is_over() {
    let (_, run) = samples::one_run_of_each()
        .into_iter()
        .find(|(name, _)| *name == "awaiting_approval")
        .unwrap();
    let at_second = |second| {
        let asked = Asked {
            run: &run,
            viewer: viewer(Role::Owner),
            now: at(second),
            ends: None,
        };
        serde_json::to_value(asked.available()).unwrap()
    };
    assert_eq!(at_second(3599)[0]["action"], "approve");
    assert_eq!(
        at_second(3599)[0]["digest"],
        samples::evidence().binding().to_string()
    );
    assert_eq!(at_second(3600)[0]["action"], "discard");
}
