//! Plans of the real OpenTofu, one for every kind of change, and what is shown of them.

use std::fmt::Write as _;

use serde_json::Value;
use stackship_plan_diff::{Inspection, Limits, inspect, outline};

use crate::support::tofu::Directory;
use crate::support::{NOTHING, contains, parsed};

/// What every secret of the configurations contains.
const MARKER: &str = "S3CRET";
/// A run of digits that is masked in one place and repeated in another.
const NUMBER: &str = "987654321";

fn plan(name: &str) -> Vec<u8> {
    let directory = Directory::new(name);
    directory.apply_before();
    directory.plan_after()
}

/// Inspects the plan and compares the plan-diff with the committed one.
fn golden(name: &str) -> (Vec<u8>, Inspection) {
    let json = plan(name);
    let inspection = inspect(json.as_slice(), NOTHING, &Limits::default()).unwrap();
    let policy_input = inspection.policy_input.as_deref().unwrap();
    insta::assert_snapshot!(name, readable(&inspection.diff));
    insta::assert_snapshot!(format!("{name}.policy"), readable(policy_input));
    let outline = outline(&inspection.diff).unwrap();
    insta::assert_snapshot!(format!("{name}.outline"), outline);
    for secret in [
        MARKER,
        NUMBER,
        "UzNDUkVU",
        "533343524554",
        "IMPORT-id",
        "constant_value",
    ] {
        assert!(!contains(&inspection.diff, secret), "{secret} is shown");
        assert!(!contains(policy_input, secret), "{secret} reaches policies");
        assert!(!outline.contains(secret), "{secret} is in the outline");
    }
    assert_eq!(inspection.summary.doubtful, 0, "the masks of OpenTofu fit");
    (json, inspection)
}

/// Indented, with the ids that differ from run to run numbered.
fn readable(bytes: &[u8]) -> String {
    let text = serde_json::to_string_pretty(&parsed(bytes)).unwrap();
    let mut ids: Vec<&str> = Vec::new();
    let mut out = String::new();
    for (index, part) in text.split('"').enumerate() {
        if index > 0 {
            out.push('"');
        }
        if is_uuid(part) {
            let known = ids.iter().position(|id| *id == part);
            let number = known.unwrap_or_else(|| {
                ids.push(part);
                ids.len() - 1
            });
            write!(out, "uuid-{number}").unwrap();
        } else {
            out.push_str(part);
        }
    }
    out
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12]
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

fn actions(inspection: &Inspection) -> Vec<(String, String)> {
    let diff = parsed(&inspection.diff);
    let text = |value: &Value| value.as_str().unwrap_or("(withheld)").to_owned();
    diff["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| (text(&resource["address"]), text(&resource["action"])))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(address, action)| ((*address).to_owned(), (*action).to_owned()))
        .collect()
}

#[test]
fn a_plan_that_creates_shows_every_leaf_and_no_secret() {
    let (json, inspection) = golden("create");
    assert!(contains(&json, MARKER) && contains(&json, NUMBER));
    assert_eq!(inspection.summary.counts.create, 7);
    assert_eq!(inspection.summary.counts.output, 4);
    let every_digit = "12345678901234567890";
    assert!(
        contains(&inspection.diff, every_digit)
            && contains(&inspection.policy_input.unwrap(), every_digit)
    );
}

#[test]
fn a_plan_that_updates_shows_what_changes_even_where_the_provider_dropped_the_marks() {
    let (json, inspection) = golden("update");
    // The reason for the second pass: what was applied comes back from the provider without a mask.
    let plan = parsed(&json);
    let changes = plan["resource_changes"].as_array().unwrap();
    let whole = changes
        .iter()
        .find(|change| change["address"] == "terraform_data.whole")
        .unwrap();
    assert_eq!(
        whole["change"]["before"]["output"],
        "S3CRET-of-the-first-day"
    );
    assert_eq!(whole["change"]["before_sensitive"]["output"], Value::Null);
    assert_eq!(inspection.summary.counts.change, 2);
}

#[test]
fn replacements_are_told_apart_by_what_becomes_of_the_old_object() {
    let (_, inspection) = golden("replace");
    assert_eq!(
        actions(&inspection),
        pairs(&[
            ("terraform_data.create_first", "replace_create_first"),
            ("terraform_data.destroy_first", "replace_destroy_first"),
            ("terraform_data.forget", "replace_forget"),
        ])
    );
    let counts = inspection.summary.counts;
    assert_eq!(
        (counts.create, counts.destroy, counts.replace, counts.forget),
        (3, 2, 2, 1)
    );
}

#[test]
fn what_is_deleted_and_what_is_forgotten_is_shown_without_its_secrets() {
    let (json, inspection) = golden("remove");
    assert!(contains(&json, MARKER));
    assert_eq!(
        actions(&inspection),
        pairs(&[
            ("terraform_data.deleted", "delete"),
            ("terraform_data.forgotten", "forget"),
            ("terraform_data.shrinking[1]", "delete"),
        ])
    );
}

#[test]
fn a_move_is_shown_as_a_move_unless_more_happens() {
    let (_, inspection) = golden("move");
    assert_eq!(
        actions(&inspection),
        pairs(&[
            ("terraform_data.changed_and_moved", "update"),
            ("terraform_data.each[\"e[0].f\"]", "move"),
            ("terraform_data.new_name", "move"),
        ])
    );
    assert_eq!(inspection.summary.counts.moved, 3);
}

#[test]
fn an_import_is_shown_as_an_import_unless_more_happens() {
    let (json, inspection) = golden_import();
    assert!(contains(&json, "\"importing\":{\"id\":\"IMPORT-id-one\"}"));
    assert_eq!(
        actions(&inspection),
        pairs(&[
            ("terraform_data.changed_too", "update"),
            ("terraform_data.only_imported", "import"),
        ])
    );
    assert_eq!(inspection.summary.counts.import, 2);
}

/// The id of an imported `terraform_data` is an attribute, too, and as such it is shown.
fn golden_import() -> (Vec<u8>, Inspection) {
    let json = plan("import");
    let inspection = inspect(json.as_slice(), NOTHING, &Limits::default()).unwrap();
    insta::assert_snapshot!("import", readable(&inspection.diff));
    (json, inspection)
}

#[test]
fn a_plan_that_only_changes_outputs_lists_them() {
    let (_, inspection) = golden("outputs");
    assert_eq!(actions(&inspection), []);
    assert_eq!(inspection.summary.counts.output, 1);
}

#[test]
fn a_plan_without_changes_lists_nothing() {
    let (json, inspection) = golden("unchanged");
    assert!(contains(&json, MARKER));
    assert_eq!(
        inspection.summary.counts,
        stackship_domain::run::Counts::default()
    );
    let diff = parsed(&inspection.diff);
    assert_eq!(
        (&diff["resources"], &diff["outputs"]),
        (
            &Value::from([(); 0].to_vec()),
            &Value::from([(); 0].to_vec())
        )
    );
}

#[test]
fn a_plan_that_failed_says_so() {
    let (json, inspection) = golden("errored");
    assert!(contains(&json, "\"errored\":true"));
    assert!(inspection.summary.errored);
}

#[test]
fn a_secret_in_an_address_or_passed_to_a_module_is_shown_nowhere() {
    let (json, inspection) = golden("module");
    for place in [
        "S3CRET-in-an-address",
        "S3CRET-in-a-call",
        "S3CRET-in-a-default",
    ] {
        assert!(contains(&json, place));
    }
    assert_eq!(
        actions(&inspection),
        pairs(&[
            ("(withheld)", "create"),
            ("module.child[\"blue\"].terraform_data.inner", "create"),
        ])
    );
}
