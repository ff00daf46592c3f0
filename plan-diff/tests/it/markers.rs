//! Random plans with secrets in masked places and in copies elsewhere. None of it may come out, in no
//! form.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use stackship_plan_diff::{Limits, inspect, outline};
use stackship_planted::{Planted, Search};

use crate::support::NOTHING;

/// How many random plans are tried.
const CASES: u32 = 1_000;

/// How many plans showed what they should, so that it can be told that they were worth reading.
#[derive(Default)]
struct Seen {
    shown: Cell<u32>,
    copies: Cell<u32>,
    errors: Cell<u32>,
}

fn add(count: &Cell<u32>, holds: bool) {
    count.set(count.get() + u32::from(holds));
}

#[test]
fn no_marker_comes_out_of_random_plans() {
    // A seed is not shrunk: a smaller one is another plan, and no smaller.
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..Config::default()
    });
    let seen = Seen::default();
    let outcome = runner.run(&any::<u64>(), |seed| {
        let planted = stackship_planted::plan(seed);
        let search = Search::of(&planted.markers);
        let json = planted.plan.to_string();
        both_documents(&planted, &search, &json, &seen)?;
        damaged(&search, &json, &seen)
    });
    println!(
        "leaked markers over {CASES} plans: {}; plans that show an open value: {}, that withhold a copy: {}; errors looked at: {}",
        if outcome.is_ok() { "0" } else { "some" },
        seen.shown.get(),
        seen.copies.get(),
        seen.errors.get()
    );
    outcome.unwrap();
    assert!(
        seen.shown.get() > CASES / 2 && seen.copies.get() > CASES / 2,
        "the plans are worth reading"
    );
}

fn both_documents(
    planted: &Planted,
    search: &Search,
    json: &str,
    seen: &Seen,
) -> Result<(), TestCaseError> {
    let inspection = inspect(json.as_bytes(), &planted.secrets, &Limits::default()).unwrap();
    prop_assert_eq!(inspection.summary.doubtful, 0, "the masks fit");
    let outline = outline(&inspection.diff).unwrap();
    for (name, bytes) in [
        ("plan-diff", &inspection.diff[..]),
        ("policy input", &inspection.policy_input.unwrap()),
        ("outline", outline.as_bytes()),
    ] {
        let found = search.found_in(bytes);
        prop_assert!(found.is_empty(), "{:?} in the {}", found, name);
    }
    let diff = String::from_utf8(inspection.diff).unwrap();
    add(&seen.shown, diff.contains("\"text\":\"open\""));
    add(&seen.copies, diff.contains("{\"kind\":\"withheld\"}"));
    Ok(())
}

/// Damaged plans: the error must not tell either.
fn damaged(search: &Search, json: &str, seen: &Seen) -> Result<(), TestCaseError> {
    for end in [json.len() / 3, json.len() - 1] {
        let cut = &json.as_bytes()[..end];
        let error = inspect(cut, NOTHING, &Limits::default()).unwrap_err();
        let told = format!("{error} {error:?}");
        prop_assert!(search.found_in(told.as_bytes()).is_empty());
        add(&seen.errors, true);
    }
    Ok(())
}
