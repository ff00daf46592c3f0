//! The places by which a plan, or whoever hands it in, says that a value is sensitive.

use serde_json::{Value, json};

use crate::plan::{Planted, push, resource};

/// A place that makes a secret of what stands there.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// Masked in a resource as it was.
    Before,
    /// Masked deep inside a resource as it will be.
    After,
    /// Inside something that is masked as a whole.
    Within,
    /// Masked in what changed outside of OpenTofu.
    Drift,
    /// A sensitive output that changes.
    Output,
    /// A sensitive output among the planned values.
    PlannedOutput,
    /// Masked in a resource of a module's module among the planned values.
    PlannedResource,
    /// A sensitive output of the state before.
    PriorOutput,
    /// The value of a sensitive variable.
    Variable,
    /// The default of a sensitive variable.
    Default,
    /// What a module is called with for a sensitive variable.
    Call,
    /// Known to the caller alone.
    Caller,
}

impl Place {
    pub(crate) const ALL: &[Self] = &[
        Self::Before,
        Self::After,
        Self::Within,
        Self::Drift,
        Self::Output,
        Self::PlannedOutput,
        Self::PlannedResource,
        Self::PriorOutput,
        Self::Variable,
        Self::Default,
        Self::Call,
        Self::Caller,
    ];

    /// Puts the marker there. `name` is not taken by anything else in the plan.
    pub(crate) fn plant(self, name: &str, marker: &str, planted: &mut Planted) {
        let plan = &mut planted.plan;
        let root = "root_module";
        match self {
            Self::Before => push(&mut plan["resource_changes"], before(name, marker)),
            Self::Drift => push(&mut plan["resource_drift"], before(name, marker)),
            Self::After => {
                let change = json!({ "after": { "x": { "y": ["open", marker] } }, "after_sensitive": { "x": { "y": [false, true] } } });
                push(&mut plan["resource_changes"], resource(name, &change));
            }
            Self::Within => {
                let change = json!({ "after": { "x": { "deep": { "er": marker } } }, "after_sensitive": { "x": true } });
                push(&mut plan["resource_changes"], resource(name, &change));
            }
            Self::Output => {
                plan["output_changes"][name] = json!({ "actions": ["update"], "before": [marker], "after": marker, "before_sensitive": true, "after_sensitive": true, "after_unknown": false });
            }
            Self::PlannedOutput => {
                plan["planned_values"]["outputs"][name] =
                    json!({ "sensitive": true, "value": [marker] });
            }
            Self::PlannedResource => {
                let resource = json!({ "address": name, "values": { "p": marker }, "sensitive_values": { "p": true } });
                let module = json!({ "child_modules": [{ "resources": [resource] }] });
                push(&mut plan["planned_values"][root]["child_modules"], module);
            }
            Self::PriorOutput => {
                plan["prior_state"]["values"]["outputs"][name] =
                    json!({ "sensitive": true, "value": { "v": marker } });
            }
            Self::Variable => {
                plan["configuration"][root]["variables"][name] = json!({ "sensitive": true });
                plan["variables"][name] = json!({ "value": marker });
            }
            Self::Default => {
                plan["configuration"][root]["variables"][name] =
                    json!({ "default": marker, "sensitive": true });
            }
            Self::Call => {
                plan["configuration"][root]["module_calls"][name] = json!({
                    "expressions": { "v": { "constant_value": marker } },
                    "module": { "variables": { "v": { "sensitive": true } } },
                });
            }
            Self::Caller => planted.secrets.push(marker.to_owned()),
        }
    }
}

fn before(name: &str, marker: &str) -> Value {
    let change = json!({ "before": { "s": marker }, "before_sensitive": { "s": true } });
    resource(name, &change)
}
