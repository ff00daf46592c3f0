//! How much a plan-diff holds, and what goes first when it would be more.

use serde_json::{Value, json};
use stackship_plan_diff::{
    DIFF_BYTES_MAX, Limits, OUTLINE_BYTES_MAX, RESOURCES_MAX, inspect, outline,
};

use crate::support::{NOTHING, contains, inspected, parsed, plan, resource};

fn changed(name: &str, text: &str) -> Value {
    resource(
        name,
        &json!({ "before": { "a": "old" }, "after": { "a": text } }),
    )
}

fn listed(diff: &Value) -> &[Value] {
    diff["resources"].as_array().unwrap()
}

fn withheld(diff: &Value) -> Vec<&str> {
    let without = listed(diff)
        .iter()
        .filter(|resource| resource["detail"]["reason"] == "too_large");
    without
        .map(|resource| resource["name"].as_str().unwrap())
        .collect()
}

#[test]
fn of_5001_changed_resources_5000_are_listed_and_all_are_counted() {
    let mut changes: Vec<_> = (0..=RESOURCES_MAX)
        .map(|n| changed(&format!("r{n}"), "new"))
        .collect();
    let full = inspected(&plan(&changes[1..]));
    assert!(!full.summary.truncated);
    assert_eq!(listed(&parsed(&full.diff)).len(), RESOURCES_MAX);

    // What is not listed anyway takes no place.
    changes.insert(0, resource("same", &json!({ "actions": ["no-op"] })));
    let cut = inspected(&plan(&changes));
    let diff = parsed(&cut.diff);
    assert!(cut.summary.truncated && diff["truncated"] == true);
    assert_eq!(listed(&diff).len(), RESOURCES_MAX);
    assert_eq!(listed(&diff)[0]["name"], "r0");
    assert_eq!(
        diff["omitted"],
        json!({ "resources": 1, "outputs": 0, "details": 0 })
    );
    assert_eq!(diff["counts"]["change"], 5_001);
    assert!(!contains(&cut.diff, "test_thing.r5000"));
    // Policies see all of them.
    assert!(contains(&cut.policy_input.unwrap(), "\"test_thing.r5000\""));
}

#[test]
fn over_four_mebibytes_the_largest_details_go_one_by_one() {
    // Without the largest of eight the rest fits; with one more, the two largest have to go.
    let sizes = [
        900_000, 300_000, 800_000, 700_000, 650_000, 600_000, 650_001,
    ];
    let texts = sizes.map(|size| "x".repeat(size));
    let changes: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(n, text)| changed(&format!("r{n}"), text))
        .collect();
    let mut more = changes.clone();
    more.push(changed("last", &"y".repeat(480_000)));
    let (fits, cut) = (inspected(&plan(&changes[1..])), inspected(&plan(&more)));
    assert!(fits.diff.len() <= DIFF_BYTES_MAX && !fits.summary.truncated);
    let diff = parsed(&cut.diff);
    assert!(cut.diff.len() <= DIFF_BYTES_MAX && cut.summary.truncated);
    assert_eq!(listed(&diff).len(), 8);
    assert_eq!(withheld(&diff), ["r0"]);
    more.push(changed("more", &"z".repeat(400_000)));
    let cut = inspected(&plan(&more));
    let diff = parsed(&cut.diff);
    assert_eq!(withheld(&diff), ["r0", "r2"]);
    assert_eq!(
        diff["omitted"],
        json!({ "resources": 0, "outputs": 0, "details": 2 })
    );
    let first = &listed(&diff)[0];
    assert_eq!(
        (&first["address"], &first["provider"], &first["action"]),
        (
            &json!("test_thing.r0"),
            &json!("example.com/stackship/test"),
            &json!("update")
        )
    );
}

#[test]
fn only_when_no_detail_is_left_entries_are_dropped_from_the_end() {
    let name = |n: usize| format!("r{n:04}{}", "n".repeat(600));
    let changes: Vec<_> = (0..4_000)
        .map(|n| changed(&name(n), &"x".repeat(1_000)))
        .collect();
    let mut plan = plan(&changes);
    plan["output_changes"] = json!({ "o": { "actions": ["create"], "before": null, "after": "x".repeat(1_000), "before_sensitive": false, "after_sensitive": false, "after_unknown": false } });
    let inspection = inspected(&plan);
    let diff = parsed(&inspection.diff);
    let kept = listed(&diff).len();
    assert!(inspection.diff.len() <= DIFF_BYTES_MAX);
    assert!(
        inspection.diff.len() > DIFF_BYTES_MAX - 5_000,
        "no more is dropped than has to be"
    );
    assert!((2_500..4_000).contains(&kept), "{kept}");
    assert_eq!(withheld(&diff).len(), kept);
    assert_eq!(diff["omitted"]["resources"], 4_000 - kept);
    assert_eq!(listed(&diff)[kept - 1]["name"], name(kept - 1));
    assert_eq!(diff["outputs"][0]["detail"]["reason"], "too_large");
    assert!(inspection.summary.truncated);
}

#[test]
fn a_detail_that_repeats_long_paths_cannot_outgrow_the_limit() {
    let key = "k".repeat(100_000);
    let leaves: Vec<_> = (0..20_000).collect();
    let masks = vec![false; leaves.len()];
    let change = json!({ "after": { &key: leaves }, "after_sensitive": { &key: masks } });
    let inspection = inspected(&plan(&[resource("a", &change)]));
    assert!(inspection.diff.len() < 2_000);
    assert_eq!(withheld(&parsed(&inspection.diff)), ["a"]);
}

#[test]
fn a_name_that_is_too_long_is_not_shown() {
    let mut change = changed("a", "b");
    change["address"] = json!("a".repeat(5_000));
    let diff = parsed(&inspected(&plan(&[change])).diff);
    assert_eq!(listed(&diff)[0]["address"], Value::Null);
}

#[test]
fn a_policy_input_that_is_too_long_is_none_and_never_cut() {
    let plan = plan(&[changed("a", "b"), changed("c", "d")]).to_string();
    let with = |policy_input_bytes| {
        let limits = Limits {
            policy_input_bytes,
            ..Limits::default()
        };
        inspect(plan.as_bytes(), NOTHING, &limits).unwrap()
    };
    let length = with(usize::MAX).policy_input.unwrap().len();
    assert_eq!(with(length).policy_input.unwrap().len(), length);
    for shorter in [length - 1, length / 2, 10, 0] {
        let inspection = with(shorter);
        assert!(inspection.policy_input.is_none() && !inspection.summary.has_policy_input);
        assert!(!inspection.diff.is_empty());
    }
}

#[test]
fn outputs_have_a_limit_too() {
    let output = json!({ "actions": ["create"], "before": null, "after": 1, "before_sensitive": false, "after_sensitive": false, "after_unknown": false });
    let mut plan = plan(&[]);
    for n in 0..1_001 {
        plan["output_changes"][format!("o{n}")] = output.clone();
    }
    let inspection = inspected(&plan);
    let diff = parsed(&inspection.diff);
    assert_eq!(diff["outputs"].as_array().unwrap().len(), 1_000);
    assert_eq!(
        (&diff["omitted"]["outputs"], &diff["counts"]["output"]),
        (&json!(1), &json!(1_001))
    );
    assert!(inspection.summary.truncated);
}

#[test]
fn with_more_secrets_than_can_be_looked_for_nothing_is_shown() {
    let many: Vec<_> = (0..101).map(|n| format!("secret-{n}")).collect();
    let masks = vec![true; many.len()];
    let changes = [
        resource(
            "a",
            &json!({ "after": { "l": many }, "after_sensitive": { "l": masks } }),
        ),
        changed("b", "secret-100"),
        changed("c", "open"),
    ];
    let plan = plan(&changes).to_string();
    let with = |secrets| {
        let limits = Limits {
            secrets,
            ..Limits::default()
        };
        inspect(plan.as_bytes(), NOTHING, &limits).unwrap()
    };
    assert_eq!(with(101).summary.doubtful, 0);
    let inspection = with(100);
    assert_eq!(inspection.summary.doubtful, 3);
    assert!(!contains(&inspection.diff, "secret-100"));
    for resource in listed(&parsed(&inspection.diff)) {
        assert_eq!(resource["detail"]["reason"], "secrets_incomplete");
    }
}

#[test]
fn an_outline_lists_what_destroys_first_and_says_how_much_it_leaves_out() {
    let mut changes: Vec<_> = (0..=RESOURCES_MAX)
        .map(|n| changed(&format!("r{n}"), "new"))
        .collect();
    let gone = json!({ "actions": ["delete"], "before": { "a": "old" }, "after": null });
    changes.insert(3_000, resource("gone", &gone));
    let text = outline(&inspected(&plan(&changes)).diff).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "    - test_thing.gone: destroy");
    assert_eq!(lines[1], "    ~ test_thing.r0: update");
    let (sum, rest) = (lines[lines.len() - 1], lines[lines.len() - 2]);
    assert_eq!(sum, "Plan: 0 to add, 5001 to change, 1 to destroy.");
    let listed = lines.len() - 2;
    assert_eq!(rest, format!("  … and {} more", 5_002 - listed));
    assert!(text.len() <= OUTLINE_BYTES_MAX + rest.len() + sum.len() + 2);
}
