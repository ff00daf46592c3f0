//! Outputs of a state.

use serde::Deserialize;
use serde_json::Value;
use stackship_domain::ids::{Id as _, StateVersionId};

use crate::v2::wire::{Kind, OutputAttributes, OutputResource};

/// Prefix of an output's id.
const PREFIX: &str = "wsout";

/// One output, as it is stored: with its value.
#[derive(Clone)]
pub struct Output {
    number: usize,
    attributes: OutputAttributes,
}

#[derive(Deserialize)]
struct Stored {
    #[serde(default)]
    sensitive: bool,
    #[serde(rename = "type")]
    constraint: Value,
    value: Value,
}

/// The outputs in a stored document, by name; `None` when it is not such a document.
pub fn outputs(document: Value) -> Option<Vec<Output>> {
    let Value::Object(outputs) = document else {
        return None;
    };
    // A state version never changes, so a place in the order of names is as good an id as any.
    let mut sorted: Vec<(String, Value)> = outputs.into_iter().collect();
    sorted.sort_by(|one, other| one.0.cmp(&other.0));
    sorted
        .into_iter()
        .enumerate()
        .map(|(number, (name, stored))| {
            let stored: Stored = serde_json::from_value(stored).ok()?;
            Some(Output {
                number,
                attributes: OutputAttributes {
                    name,
                    sensitive: stored.sensitive,
                    kind: outermost(&stored.constraint),
                    detailed_type: stored.constraint,
                    value: stored.value,
                },
            })
        })
        .collect()
}

/// The outermost part of a type constraint: `list` of `["list", "string"]`.
fn outermost(constraint: &Value) -> String {
    let part = match constraint {
        Value::Array(parts) => parts.first(),
        other => Some(other),
    };
    part.and_then(Value::as_str).unwrap_or("dynamic").to_owned()
}

impl Output {
    /// The output without a value that is marked sensitive: the client asks for each of those by its id.
    pub fn withheld(self, state: StateVersionId) -> OutputResource {
        let value = if self.attributes.sensitive {
            Value::Null
        } else {
            self.attributes.value.clone()
        };
        self.resource(state, value)
    }

    /// The output with its value.
    pub fn in_clear(self, state: StateVersionId) -> OutputResource {
        let value = self.attributes.value.clone();
        self.resource(state, value)
    }

    fn resource(self, state: StateVersionId, value: Value) -> OutputResource {
        let attributes = OutputAttributes {
            value,
            ..self.attributes
        };
        OutputResource::plain(
            Kind::StateVersionOutputs,
            output_id(state, self.number),
            attributes,
        )
    }
}

fn output_id(state: StateVersionId, number: usize) -> String {
    let state = state.to_string();
    let digits = state.strip_prefix(StateVersionId::PREFIX).unwrap_or(&state);
    format!("{PREFIX}{digits}-{number}")
}

/// Which output of which state version an id names.
pub fn parse_output_id(id: &str) -> Option<(StateVersionId, usize)> {
    let (state, number) = id.strip_prefix(PREFIX)?.rsplit_once('-')?;
    let state = format!("{}{state}", StateVersionId::PREFIX).parse().ok()?;
    Some((state, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use stackship_domain::run::samples::id;

    fn document() -> Value {
        json!({
            "password": {"sensitive": true, "type": "string", "value": "hunter2"},
            "names": {"sensitive": false, "type": ["list", "string"], "value": ["a"]},
        })
    }

    #[test]
    fn a_sensitive_value_stays_behind_until_it_is_asked_for() {
        let found = outputs(document()).unwrap();
        let listed: Vec<OutputResource> = found
            .iter()
            .cloned()
            .map(|output| output.withheld(id(9)))
            .collect();
        assert!(!serde_json::to_string(&listed).unwrap().contains("hunter2"));
        assert_eq!(listed[0].attributes.kind, "list");
        let (state, number) = parse_output_id(&listed[1].id).unwrap();
        assert_eq!(state, id(9));
        let clear = found[number].clone().in_clear(state);
        assert_eq!(clear.attributes.value, json!("hunter2"));
    }

    #[test]
    fn ids_and_documents_of_another_kind_find_nothing() {
        assert_eq!(parse_output_id("wsout-1-0"), None);
        assert_eq!(parse_output_id("sv-00000000000000000000000009-0"), None);
        assert!(outputs(json!([])).is_none());
        assert!(outputs(json!({"a": {"value": 1}})).is_none());
    }
}
