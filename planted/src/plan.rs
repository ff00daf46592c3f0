//! A whole plan.

use serde_json::{Value, json};

use crate::dice::Dice;
use crate::places::Place;
use crate::{forms, tree};

/// The most secrets in a plan.
const MARKERS_MAX: usize = 3;
/// The most resources of random values.
const RESOURCES_MAX: usize = 3;

/// A plan with secrets in it.
#[derive(Debug)]
pub struct Planted {
    /// The secrets, none of which may come out in any form.
    pub markers: Vec<String>,
    /// Those of them that the caller knows of and the plan does not tell.
    pub secrets: Vec<String>,
    /// The plan, as `tofu show -json` would print it.
    pub plan: Value,
}

/// The plan that this seed gives: each marker in one place that says it is a secret, and again in
/// many that do not say so.
pub fn plan(seed: u64) -> Planted {
    let mut dice = Dice::new(seed);
    let count = 1 + dice.below(MARKERS_MAX);
    let markers: Vec<String> = (0..count).map(|_| forms::marker(&mut dice)).collect();
    let mut planted = Planted {
        markers: markers.clone(),
        secrets: Vec::new(),
        plan: json!({
            "format_version": "1.2", "terraform_version": "1.12.6", "resource_changes": [],
            "output_changes": {}, "errored": false,
        }),
    };
    for (index, marker) in markers.iter().enumerate() {
        let place = *dice.one(Place::ALL);
        place.plant(&format!("source{index}"), marker, &mut planted);
        echo(index, marker, &mut planted.plan);
    }
    for index in 0..=dice.below(RESOURCES_MAX) {
        let change = tree::change(&markers, &mut dice);
        let resource = resource(&format!("random{index}"), &change);
        push(&mut planted.plan["resource_changes"], resource);
    }
    planted
}

/// Repeats the marker wherever a plan has room for words.
fn echo(index: usize, marker: &str, plan: &mut Value) {
    let mut echoing = resource(&format!("echo{index}"), &json!({}));
    echoing["address"] = json!(format!("test_thing.echo[{}]", json!(marker)));
    echoing["index"] = json!(marker);
    echoing["action_reason"] = json!(format!("because of {marker}"));
    echoing["previous_address"] = json!(marker);
    push(&mut plan["resource_changes"], echoing);
    let repeating = json!({ "after": { "a": marker, "b": [marker], "c": "open" }, "after_sensitive": { "b": [false] } });
    let repeating = resource(&format!("copy{index}"), &repeating);
    push(&mut plan["resource_changes"], repeating);
    plan["output_changes"][marker] = json!({ "actions": ["create"], "before": null, "after": marker, "before_sensitive": false, "after_sensitive": false, "after_unknown": false });
    push(
        &mut plan["checks"],
        json!({ "problems": [{ "message": marker }] }),
    );
    let module = &mut plan["configuration"]["root_module"];
    module["variables"][format!("open{index}")] =
        json!({ "default": marker, "description": marker });
    module["variables"][marker] = json!({});
    module["outputs"][format!("open{index}")] =
        json!({ "expression": { "constant_value": marker, "references": [marker] } });
    plan["variables"][format!("open{index}")] = json!({ "value": marker });
    plan["variables"][marker] = json!({ "value": "x" });
}

/// A resource that is updated as `change` says; masks that it leaves out say that nothing is special.
pub(crate) fn resource(name: &str, change: &Value) -> Value {
    let mut all = json!({
        "actions": ["update"], "before": {}, "after": {}, "after_unknown": {},
        "before_sensitive": {}, "after_sensitive": {},
    });
    for (key, value) in change.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    json!({
        "address": format!("test_thing.{name}"), "mode": "managed", "type": "test_thing", "name": name,
        "provider_name": "example.com/stackship/test", "change": all,
    })
}

/// Appends to a list, which begins with its first element.
pub(crate) fn push(list: &mut Value, value: Value) {
    match list {
        Value::Array(elements) => elements.push(value),
        none => *none = Value::Array(vec![value]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Search;

    #[test]
    fn a_seed_gives_the_same_plan_again_and_another_seed_another() {
        assert_eq!(plan(7).plan, plan(7).plan);
        assert_ne!(plan(7).plan, plan(8).plan);
    }

    #[test]
    fn every_marker_stands_in_its_plan() {
        for seed in 0..200 {
            let planted = plan(seed);
            let text = planted.plan.to_string();
            let search = Search::of(&planted.markers);
            let found = search.found_in(text.as_bytes()).len();
            assert_eq!(found, planted.markers.len(), "seed {seed}");
        }
    }
}
