//! Plans, real and made up.

pub mod tofu;

use serde_json::{Value, json};
use stackship_plan_diff::{Inspection, Limits, inspect};

/// A plan with these changes, and nothing else.
pub fn plan(resource_changes: &[Value]) -> Value {
    json!({
        "format_version": "1.2",
        "terraform_version": "1.12.6",
        "resource_changes": resource_changes,
        "errored": false,
    })
}

/// A resource that is updated as `change` says; masks that it leaves out say that nothing is special.
pub fn resource(name: &str, change: &Value) -> Value {
    let mut all = json!({
        "actions": ["update"], "before": {}, "after": {}, "after_unknown": {},
        "before_sensitive": {}, "after_sensitive": {},
    });
    for (key, value) in change.as_object().expect("a change") {
        all[key] = value.clone();
    }
    json!({
        "address": format!("test_thing.{name}"), "mode": "managed", "type": "test_thing", "name": name,
        "provider_name": "example.com/stackship/test", "change": all,
    })
}

/// Inspects a plan that is expected to be taken.
pub fn inspected(plan: &Value) -> Inspection {
    inspect(plan.to_string().as_bytes(), NOTHING, &Limits::default()).expect("a plan")
}

/// No secrets of the caller's.
pub const NOTHING: &[&str] = &[];

/// The plan-diff of a plan.
pub fn diff(plan: &Value) -> Value {
    parsed(&inspected(plan).diff)
}

/// The policy input of a plan.
pub fn policy(plan: &Value) -> Value {
    parsed(&inspected(plan).policy_input.expect("a policy input"))
}

/// What was written, read by the common reader.
pub fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("what is written is JSON")
}

/// Whether the text stands in the bytes.
pub fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}
