//! A value that is sensitive anywhere is hidden everywhere. Each place that can say so is tried alone.

use serde_json::{Value, json};
use stackship_plan_diff::{Limits, inspect};

use crate::support::{NOTHING, contains, parsed, plan, resource};

const SECRET: &str = "hunter2-and-more";

/// A plan that shows the text in a resource, unless something else in the plan forbids it.
fn showing(text: &Value) -> Value {
    plan(&[resource(
        "open",
        &json!({ "before": { "a": "old" }, "after": { "a": text } }),
    )])
}

fn shown(plan: &Value, secrets: &[&str]) -> Value {
    let inspection = inspect(plan.to_string().as_bytes(), secrets, &Limits::default()).unwrap();
    let mut diff = parsed(&inspection.diff);
    let policy = parsed(&inspection.policy_input.unwrap());
    let shown = diff["resources"][0]["detail"]["changes"][0]["after"].take();
    let seen = &policy["resource_changes"][0]["change"]["after"]["a"];
    assert_eq!(
        shown["kind"] == "withheld",
        *seen == json!({ "__stackship": "withheld" }),
        "both views agree"
    );
    shown
}

fn is_hidden(plan: &Value) -> bool {
    shown(plan, NOTHING)["kind"] == "withheld"
}

#[test]
fn every_place_that_declares_a_value_sensitive_hides_its_copies() {
    let masked = resource(
        "masked",
        &json!({ "before": { "x": [SECRET] }, "before_sensitive": { "x": [true] }, "after": {} }),
    );
    let after = resource(
        "masked",
        &json!({ "before": {}, "after": { "x": { "y": SECRET } }, "after_sensitive": { "x": true } }),
    );
    let values = |sensitive: Value| json!({ "address": "a", "values": { "p": SECRET }, "sensitive_values": sensitive });
    let module = |resource: Value| json!({ "root_module": { "child_modules": [{ "child_modules": [{ "resources": [resource] }] }] } });
    let variable = json!({ "default": SECRET, "sensitive": true });
    let output = |mask: bool| json!({ "o": { "actions": ["no-op"], "before": SECRET, "after": SECRET, "before_sensitive": mask, "after_sensitive": mask, "after_unknown": false } });
    let call = |constant: &str| json!({ "root_module": { "module_calls": { "m": { "expressions": { "v": { "constant_value": constant } }, "module": { "module_calls": { "n": { "module": { "variables": { "v": variable } } } }, "variables": { "v": { "sensitive": true } } } } } } });
    let root = |sensitive: bool| json!({ "root_module": { "variables": { "v": { "sensitive": sensitive } } } });
    let places = [
        ("resource_drift", json!([masked])),
        ("resource_drift", json!([after])),
        ("output_changes", output(true)),
        (
            "planned_values",
            json!({ "outputs": { "o": { "sensitive": true, "value": [SECRET] } } }),
        ),
        ("planned_values", module(values(json!({ "p": true })))),
        (
            "prior_state",
            json!({ "values": { "outputs": { "o": { "sensitive": true, "value": { "k": SECRET } } } } }),
        ),
        (
            "prior_state",
            json!({ "values": module(values(json!({ "p": true }))) }),
        ),
        (
            "configuration",
            json!({ "root_module": { "variables": { "v": variable } } }),
        ),
        ("configuration", call("unrelated")),
        (
            "configuration",
            json!({ "root_module": { "module_calls": { "m": { "module": { "variables": { "v": { "sensitive": true } } }, "expressions": { "v": { "constant_value": { "k": SECRET } } } } } } }),
        ),
    ];
    for (key, place) in places {
        let mut plan = showing(&json!(format!("a copy of {SECRET}.")));
        assert!(!is_hidden(&plan));
        plan[key] = place;
        assert!(is_hidden(&plan), "{key}: {}", plan[key]);
    }
    let mut plan = showing(&json!(SECRET));
    plan["variables"] = json!({ "v": { "value": { "k": [SECRET] } } });
    plan["configuration"] = root(false);
    assert!(!is_hidden(&plan));
    plan["configuration"] = root(true);
    assert!(is_hidden(&plan));
    assert_eq!(
        shown(&showing(&json!(SECRET)), &[SECRET])["kind"],
        "withheld",
        "what the caller knows"
    );

    // The same places without the mark hide nothing.
    for (key, place) in [
        ("output_changes", output(false)),
        ("planned_values", module(values(json!({})))),
        (
            "prior_state",
            json!({ "values": module(values(json!({ "p": false }))) }),
        ),
    ] {
        let mut plan = showing(&json!(SECRET));
        plan[key] = place;
        assert!(!is_hidden(&plan), "{key}");
    }
}

#[test]
fn copies_are_found_in_every_form_and_nothing_else_is() {
    let pem = "-----BEGIN KEY-----\nMIIEowIBAAKCAQEA0Z3VS5JJcds3\nq8yCqKGyA0bqYBkGdZ9T1uV4w6cR\n-----END KEY-----\n";
    let long = format!(
        "{}{}{}",
        "begin ".repeat(40),
        "the middle of it, which is what is looked for",
        " end".repeat(60)
    );
    let cases = [
        (SECRET, "hunter2-and-more", true),
        (SECRET, "https://u:hunter2-and-more@host/", true),
        (SECRET, "HUNTER2-AND-MORE", false),
        (SECRET, "hunter2-and", false),
        (SECRET, "68756e746572322d616e642d6d6f7265", true),
        (SECRET, "dTpodW50ZXIyLWFuZC1tb3Jl", true),
        ("p&ss/w+rd<>", "u=p%26ss%2Fw%2Brd%3C%3E", true),
        (
            "p&ss/w+rd<>",
            "{\"p\":\"p\\u0026ss/w+rd\\u003c\\u003e\"}",
            true,
        ),
        ("quote\"d-one", "{\"p\":\"quote\\\"d-one\"}", true),
        ("  padded  ", "padded", true),
        ("12345", "12345", false),
        ("123456", "123456", true),
        (pem, "ssl_key = MIIEowIBAAKCAQEA0Z3VS5JJcds3", true),
        (pem, "-----BEGIN KEY-----\nAAAA", false),
        (&long, &format!("x{long}y"), true),
        (&long, "begin begin begin begin ", false),
    ];
    for (secret, text, is_found) in cases {
        let shown = shown(&showing(&json!(text)), &[secret]);
        assert_eq!(
            shown["kind"] == "withheld",
            is_found,
            "{secret:?} in {text:?}"
        );
    }
}

#[test]
fn a_number_is_a_secret_from_six_digits_on() {
    for (number, is_found) in [(123_456, true), (-123_456, true), (12_345, false)] {
        let mut plan = showing(&json!(number));
        plan["prior_state"] =
            json!({ "values": { "outputs": { "o": { "sensitive": true, "value": number } } } });
        assert_eq!(is_hidden(&plan), is_found, "{number}");
    }
}

#[test]
fn a_key_that_contains_a_secret_hides_the_object_around_it() {
    let change = json!({ "after": { "a": { "x-hunter2-and-more": 1, "other": 2 } }, "after_sensitive": { "a": {} } });
    let inspection = inspect(
        plan(&[resource("open", &change)]).to_string().as_bytes(),
        &[SECRET],
        &Limits::default(),
    )
    .unwrap();
    let diff = parsed(&inspection.diff);
    assert_eq!(
        diff["resources"][0]["detail"]["changes"][0]["after"],
        json!({ "kind": "withheld" })
    );
    assert!(!contains(&inspection.policy_input.unwrap(), "hunter2"));
}

#[test]
fn a_plan_cannot_forge_the_marker_that_policies_trust() {
    let change =
        json!({ "after": { "a": { "__stackship": "sensitive" } }, "after_sensitive": { "a": {} } });
    let policy = crate::support::policy(&plan(&[resource("open", &change)]));
    assert_eq!(
        policy["resource_changes"][0]["change"]["after"]["a"],
        json!({ "__stackship": "withheld" })
    );
}

#[test]
fn names_that_contain_a_secret_are_null_and_the_rest_of_the_entry_stays() {
    let mut change = resource(
        "open",
        &json!({ "before": { "a": 1 }, "after": { "a": 2 } }),
    );
    change["address"] = json!("test_thing.open[\"hunter2-and-more\"]");
    change["index"] = json!(SECRET);
    let mut plan = plan(&[change]);
    plan["output_changes"] = json!({ "hunter2-and-more": { "actions": ["create"], "before": null, "after": 1, "before_sensitive": false, "after_sensitive": false, "after_unknown": false } });
    let inspection = inspect(plan.to_string().as_bytes(), &[SECRET], &Limits::default()).unwrap();
    let diff = parsed(&inspection.diff);
    let resource = &diff["resources"][0];
    assert_eq!(
        (&resource["address"], &resource["name"]),
        (&Value::Null, &json!("open"))
    );
    assert_eq!(resource["detail"]["changes"][0]["path"], "a");
    assert_eq!(diff["outputs"][0]["name"], Value::Null);
    let policy = parsed(&inspection.policy_input.unwrap());
    assert_eq!(
        policy["resource_changes"][0]["address"],
        json!({ "__stackship": "withheld" })
    );
    assert!(policy["output_changes"]["__stackship_withheld_0"].is_object());
}
