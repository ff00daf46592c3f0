//! Masks that do not fit their value: nothing of it is shown, whatever they say elsewhere.

use serde_json::{Value, json};

use crate::support::{contains, diff, inspected, parsed, plan, policy, resource};

/// A change with every kind of mask, all of which fit.
fn sound() -> Value {
    json!({
        "before": { "map": { "hidden": "old-S3CRET", "open": "old" }, "list": ["a", "old-S3CRET", { "deep": "old-S3CRET" }], "whole": "old-S3CRET", "nothing": null },
        "before_sensitive": { "map": { "hidden": true }, "list": [false, true, { "deep": true }], "whole": true },
        "after": { "map": { "hidden": "new-S3CRET", "open": "new" }, "list": ["b", "new-S3CRET", { "deep": "new-S3CRET" }, null], "whole": "new-S3CRET", "nothing": null, "partly": {} },
        "after_sensitive": { "map": { "hidden": true }, "list": [false, true, { "deep": true }, false], "whole": true, "partly": {} },
        "after_unknown": { "id": true, "list": [false, false, {}, true], "map": {}, "partly": { "unknown": true } },
    })
}

fn detail(change: &Value) -> Value {
    let inspection = inspected(&plan(&[resource("a", change)]));
    for bytes in [&inspection.diff, inspection.policy_input.as_ref().unwrap()] {
        assert!(!contains(bytes, "S3CRET"), "{change}");
    }
    let mut diff = parsed(&inspection.diff);
    diff["resources"][0]["detail"].take()
}

fn reason(change: &Value) -> Value {
    let mut detail = detail(change);
    assert_eq!(detail["status"], "withheld", "{change}");
    detail["reason"].take()
}

#[test]
fn masks_that_fit_give_every_changed_leaf() {
    let leaf = |kind: &str, text: &str| json!({ "kind": "value", "type": kind, "text": text });
    let (hidden, absent, unknown) = (
        json!({ "kind": "sensitive" }),
        json!({ "kind": "absent" }),
        json!({ "kind": "unknown" }),
    );
    let changes = json!([
        { "path": "id", "before": absent, "after": unknown },
        { "path": "list[0]", "before": leaf("string", "a"), "after": leaf("string", "b") },
        { "path": "list[1]", "before": hidden, "after": hidden },
        { "path": "list[2].deep", "before": hidden, "after": hidden },
        { "path": "list[3]", "before": absent, "after": unknown },
        { "path": "map.hidden", "before": hidden, "after": hidden },
        { "path": "map.open", "before": leaf("string", "old"), "after": leaf("string", "new") },
        { "path": "partly.unknown", "before": absent, "after": unknown },
        { "path": "whole", "before": hidden, "after": hidden },
    ]);
    assert_eq!(
        detail(&sound()),
        json!({ "status": "shown", "changes": changes })
    );
}

#[test]
fn policies_see_markers_in_the_places_of_values() {
    let policy = policy(&plan(&[resource("a", &sound())]));
    let (hidden, unknown) = (
        json!({ "__stackship": "sensitive" }),
        json!({ "__stackship": "unknown" }),
    );
    assert_eq!(
        policy["resource_changes"][0]["change"]["after"],
        json!({
            "id": unknown, "list": ["b", hidden, { "deep": hidden }, unknown], "map": { "hidden": hidden, "open": "new" },
            "nothing": null, "partly": { "unknown": unknown }, "whole": hidden,
        })
    );
}

/// Every node of a mask, as a JSON pointer.
fn nodes(mask: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match mask {
        Value::Array(masks) => {
            for (index, mask) in masks.iter().enumerate() {
                nodes(mask, &format!("{at}/{index}"), out);
            }
        }
        Value::Object(masks) => {
            for (key, mask) in masks {
                nodes(mask, &format!("{at}/{key}"), out);
            }
        }
        _ => {}
    }
}

/// Everything that can be wrong with one node of a mask.
fn broken(node: &Value) -> Vec<Value> {
    let mut out = vec![json!(null), json!("true"), json!(1)];
    match node {
        Value::Bool(_) => out.extend([json!([true]), json!({ "stray": true })]),
        Value::Array(masks) => {
            out.extend([json!({}), json!({ "stray": true }), json!(masks[1..])]);
            out.push(json!([masks.as_slice(), &[json!(true)]].concat()));
        }
        Value::Object(masks) => {
            let mut stray = masks.clone();
            stray.insert("stray".to_owned(), json!({ "deep": true }));
            out.extend([json!([]), json!([true]), json!(stray)]);
        }
        _ => {}
    }
    out
}

#[test]
fn each_node_of_each_mask_that_is_broken_withholds_the_detail() {
    let mut tried = 0;
    for name in ["before_sensitive", "after_sensitive", "after_unknown"] {
        let mut pointers = Vec::new();
        nodes(&sound()[name], "", &mut pointers);
        for pointer in pointers {
            for wrong in broken(sound()[name].pointer(&pointer).unwrap()) {
                let mut change = sound();
                *change[name].pointer_mut(&pointer).unwrap() = wrong.clone();
                // Under what is unknown nothing is shown, so a mask there cannot matter.
                if name == "after_sensitive" && pointer == "/list/3" {
                    continue;
                }
                assert_eq!(
                    reason(&change),
                    "mask_mismatch",
                    "{name}{pointer} = {wrong}"
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 100, "{tried}");
}

#[test]
fn a_mask_that_is_missing_withholds_the_detail() {
    for name in ["before_sensitive", "after_sensitive", "after_unknown"] {
        let mut whole = resource("a", &sound());
        whole["change"].as_object_mut().unwrap().remove(name);
        let diff = diff(&plan(&[whole]));
        assert_eq!(
            diff["resources"][0]["detail"]["reason"], "mask_missing",
            "{name}"
        );
    }
}

#[test]
fn a_plain_false_above_a_container_withholds_a_resource_and_is_normal_for_an_output() {
    let containers = json!({ "before": { "a": ["b"] }, "after": { "a": ["c"] }, "before_sensitive": false, "after_sensitive": false, "after_unknown": false });
    assert_eq!(reason(&containers), "mask_mismatch");
    let inner = json!({ "before": { "a": ["b"] }, "after": { "a": ["c"] }, "before_sensitive": { "a": false }, "after_sensitive": { "a": [false] } });
    assert_eq!(reason(&inner), "mask_mismatch");
    let left_out = json!({ "before": { "a": ["b"] }, "after": { "a": ["c"] }, "before_sensitive": {}, "after_sensitive": { "a": [false] } });
    assert_eq!(reason(&left_out), "mask_mismatch");

    let mut plan = plan(&[]);
    plan["output_changes"] = json!({ "o": { "actions": ["update"], "before": ["b"], "after": ["c"], "before_sensitive": false, "after_sensitive": false, "after_unknown": false } });
    let outputs = &diff(&plan)["outputs"];
    assert_eq!(outputs[0]["detail"]["changes"][0]["path"], "[0]");
}

#[test]
fn an_unknown_value_that_is_also_given_withholds_the_detail() {
    let change = json!({ "after": { "a": "S3CRET" }, "after_unknown": { "a": true } });
    assert_eq!(reason(&change), "mask_mismatch");
}

#[test]
fn a_value_is_shown_down_to_64_levels_and_no_further() {
    let nested = |depth: usize, leaf: Value| (0..depth).fold(leaf, |inner, _| json!([inner]));
    let change = |depth: usize| {
        json!({
            "before": { "a": null }, "after": { "a": nested(depth, json!("S3C")) },
            "after_sensitive": { "a": nested(depth, json!(false)) },
        })
    };
    assert_eq!(detail(&change(63))["status"], "shown");
    // The whole document nests a little deeper than the value.
    assert_eq!(reason(&change(64)), "too_deep");
}

#[test]
fn what_becomes_sensitive_or_stops_being_so_is_hidden_on_both_sides() {
    for (before, after) in [(true, false), (false, true)] {
        let change = json!({
            "before": { "a": "pin-1", "b": ["pin-2"] }, "after": { "a": "pin-9", "b": ["pin-8"] },
            "before_sensitive": { "a": before, "b": if before { json!(true) } else { json!([false]) } },
            "after_sensitive": { "a": after, "b": if after { json!(true) } else { json!([false]) } },
        });
        let inspection = inspected(&plan(&[resource("a", &change)]));
        assert!(
            !contains(&inspection.diff, "pin-"),
            "shorter than what is looked for"
        );
        assert!(!contains(&inspection.policy_input.unwrap(), "pin-"));
        let hidden = json!({ "kind": "sensitive" });
        assert_eq!(
            detail(&change)["changes"],
            json!([{ "path": "a", "before": hidden, "after": hidden }, { "path": "b", "before": hidden, "after": hidden }])
        );
    }
}

#[test]
fn a_sensitive_value_that_stays_is_not_listed_and_one_that_changes_only_says_so() {
    let change = |after: &str| json!({ "before": { "a": "S3CRET" }, "after": { "a": after }, "before_sensitive": { "a": true }, "after_sensitive": { "a": true } });
    assert_eq!(detail(&change("S3CRET"))["changes"], json!([]));
    let hidden = json!({ "kind": "sensitive" });
    // Neither its length nor that it equals another value can be seen.
    let longer = detail(&change("S3CRET and much longer than before"));
    assert_eq!(
        longer["changes"],
        json!([{ "path": "a", "before": hidden, "after": hidden }])
    );
}
