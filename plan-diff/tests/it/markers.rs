//! Random plans with a marker in every masked place and in copies of it elsewhere. None of it may come
//! out, in no form.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use stackship_plan_diff::{Limits, inspect};

use crate::support::{NOTHING, contains, plan, resource};

/// How many random plans are tried.
const CASES: u32 = 1_000;

/// A value with its masks. `unknown` is the mask of the side after.
#[derive(Debug, Clone)]
struct Masked {
    value: Option<Value>,
    sensitive: Value,
    unknown: Value,
}

/// What cannot be by chance in anything else, and has to be escaped in JSON.
fn marker() -> impl Strategy<Value = String> {
    "[A-Z]{4}[\"\\\\<&/\n é]{2}[a-z0-9]{8}"
}

fn known(value: Value, sensitive: bool) -> Masked {
    Masked {
        value: Some(value),
        sensitive: json!(sensitive),
        unknown: json!(false),
    }
}

fn leaf(marker: String) -> impl Strategy<Value = Masked> {
    let copies = [
        marker.clone(),
        format!("before {marker} after"),
        json!({ "copy": marker }).to_string(),
        STANDARD.encode(&marker),
        STANDARD.encode(format!("u:{marker}")),
        URL_SAFE.encode(format!("x{marker}?")),
        marker
            .bytes()
            .map(|byte| format!("{byte:02x}"))
            .collect::<Vec<_>>()
            .concat(),
    ];
    prop_oneof![
        Just(known(json!("open"), false)),
        Just(known(json!(12.50), false)),
        Just(known(json!(null), false)),
        Just(known(json!(true), false)),
        Just(known(json!(marker), true)),
        Just(known(json!({ "deep": [marker] }), true)),
        proptest::sample::select(copies.to_vec()).prop_map(|copy| known(json!(copy), false)),
        Just(Masked {
            value: Some(json!({ marker: "in a key" })),
            sensitive: json!({}),
            unknown: json!({}),
        }),
        Just(Masked {
            value: None,
            sensitive: json!(false),
            unknown: json!(true)
        }),
    ]
}

fn list(elements: Vec<Masked>) -> Masked {
    let mut masked = Masked {
        value: None,
        sensitive: json!([]),
        unknown: json!([]),
    };
    let mut values = Vec::new();
    for element in elements {
        values.push(element.value.unwrap_or_default());
        masked
            .sensitive
            .as_array_mut()
            .unwrap()
            .push(element.sensitive);
        masked.unknown.as_array_mut().unwrap().push(element.unknown);
    }
    masked.value = Some(Value::Array(values));
    masked
}

fn object(members: Vec<Masked>) -> Masked {
    let (mut values, mut sensitive, mut unknown) = (Map::new(), Map::new(), Map::new());
    for (index, member) in members.into_iter().enumerate() {
        let key = format!("k{index}");
        if let Some(value) = member.value {
            values.insert(key.clone(), value);
        }
        if member.sensitive != json!(false) {
            sensitive.insert(key.clone(), member.sensitive);
        }
        if member.unknown != json!(false) {
            unknown.insert(key, member.unknown);
        }
    }
    Masked {
        value: Some(values.into()),
        sensitive: sensitive.into(),
        unknown: unknown.into(),
    }
}

fn tree(marker: String) -> impl Strategy<Value = Masked> {
    let inner = leaf(marker).prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(list),
            proptest::collection::vec(inner, 0..4).prop_map(object),
        ]
    });
    proptest::collection::vec(inner, 1..5).prop_map(object)
}

fn change(before: &Masked, after: &Masked) -> Value {
    json!({
        "before": before.value, "before_sensitive": before.sensitive,
        "after": after.value, "after_sensitive": after.sensitive, "after_unknown": after.unknown,
    })
}

/// Nothing is unknown before, so what is unknown there is left out.
fn settled(masked: Masked) -> Option<Masked> {
    let has_unknown = masked.unknown.to_string().contains("true");
    (!has_unknown).then_some(masked)
}

fn document() -> impl Strategy<Value = (String, Value)> {
    marker().prop_flat_map(|marker| {
        let before = tree(marker.clone()).prop_filter_map("unknown before", settled);
        let resources = proptest::collection::vec((before, tree(marker.clone())), 1..4);
        (Just(marker), resources).prop_map(|(marker, resources)| {
            // One place is masked in every plan, so that every copy is a copy of something masked.
            let source = json!({ "before": { "s": marker }, "before_sensitive": { "s": true }, "after": {} });
            let mut changes = vec![resource("source", &source)];
            for (index, (before, after)) in resources.into_iter().enumerate() {
                changes.push(resource(&format!("r{index}"), &change(&before, &after)));
            }
            let mut echoing = resource("echo", &json!({}));
            echoing["address"] = json!(format!("test_thing.echo[{}]", json!(marker)));
            echoing["index"] = json!(marker);
            echoing["action_reason"] = json!(format!("because of {marker}"));
            echoing["previous_address"] = json!(marker);
            changes.push(echoing);
            let mut plan = plan(&changes);
            plan["output_changes"] = json!({
                marker.clone(): { "actions": ["create"], "before": null, "after": marker, "before_sensitive": false, "after_sensitive": false, "after_unknown": false },
                "hidden": { "actions": ["update"], "before": [marker], "after": marker, "before_sensitive": true, "after_sensitive": true, "after_unknown": false },
            });
            plan["checks"] = json!([{ "problems": [{ "message": marker }] }]);
            plan["configuration"] = json!({ "root_module": { "variables": { "v": { "default": marker, "description": marker }, &marker: {} }, "outputs": { "o": { "expression": { "constant_value": marker, "references": [marker] } } } } });
            plan["variables"] = json!({ "v": { "value": marker }, &marker: { "value": "x" } });
            (marker, plan)
        })
    })
}

/// The marker as it may stand in bytes: as it is, as JSON writes it (once and twice escaped, in both
/// manners), in base64 at every offset, in hexadecimal.
fn forms(marker: &str) -> Vec<String> {
    let escaped = |text: &str| {
        let quoted = json!(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let html = |text: &str| {
        escaped(text)
            .replace('<', "\\u003c")
            .replace('&', "\\u0026")
    };
    let mut forms = vec![
        marker.to_owned(),
        escaped(marker),
        escaped(&escaped(marker)),
        html(marker),
    ];
    for skipped in 0..3 {
        // A shift may cut a letter; base64 does not mind.
        let bytes = &marker.as_bytes()[skipped..];
        let whole = &bytes[..bytes.len() - bytes.len() % 3];
        forms.extend([STANDARD.encode(whole), URL_SAFE.encode(whole)]);
    }
    forms.push(
        marker
            .bytes()
            .map(|byte| format!("{byte:02x}"))
            .collect::<Vec<_>>()
            .concat(),
    );
    forms
}

#[test]
fn no_marker_comes_out_of_random_plans() {
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    });
    let (shown, copies, errors) = (
        std::cell::Cell::new(0_u32),
        std::cell::Cell::new(0_u32),
        std::cell::Cell::new(0_u32),
    );
    let outcome = runner.run(&document(), |(marker, plan)| {
        let json = plan.to_string();
        let forms = forms(&marker);
        prop_assert!(forms.iter().any(|form| contains(json.as_bytes(), form)));
        let inspection = inspect(json.as_bytes(), NOTHING, &Limits::default()).unwrap();
        prop_assert_eq!(inspection.summary.doubtful, 0, "the masks fit");
        let policy_input = inspection.policy_input.unwrap();
        for form in &forms {
            prop_assert!(
                !contains(&inspection.diff, form),
                "{} in the plan-diff",
                form
            );
            prop_assert!(
                !contains(&policy_input, form),
                "{} in the policy input",
                form
            );
        }
        let diff = String::from_utf8(inspection.diff).unwrap();
        shown.set(shown.get() + u32::from(diff.contains("\"text\":\"open\"")));
        copies.set(copies.get() + u32::from(diff.contains("{\"kind\":\"withheld\"}")));
        // Damaged plans: the error must not tell either.
        for end in [json.len() / 3, json.len() - 1] {
            let cut = &json.as_bytes()[..end];
            let error = inspect(cut, NOTHING, &Limits::default()).unwrap_err();
            let told = format!("{error} {error:?}");
            prop_assert!(forms.iter().all(|form| !told.contains(form.as_str())));
            errors.set(errors.get() + 1);
        }
        Ok(())
    });
    println!(
        "leaked markers over {CASES} plans: {}; plans that show an open value: {}, that withhold a copy: {}; errors looked at: {}",
        if outcome.is_ok() { "0" } else { "some" },
        shown.get(),
        copies.get(),
        errors.get()
    );
    outcome.unwrap();
    assert!(
        shown.get() > CASES / 2 && copies.get() > CASES / 2,
        "the plans are worth reading"
    );
}
