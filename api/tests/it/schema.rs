//! Just enough of JSON Schema to hold an answer against the OpenAPI document, and stricter than it:
//! a field that the document does not describe is an error.

use std::collections::BTreeSet;

use serde_json::Value;

/// Everything in which `value` differs from `schema`.
pub fn differences(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Check {
        document,
        found: &mut found,
    }
    .value(schema, value, "");
    found
}

struct Check<'a> {
    document: &'a Value,
    found: &'a mut Vec<String>,
}

impl<'a> Check<'a> {
    fn resolve(&self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            None => schema,
            Some(reference) => {
                let pointer = reference.trim_start_matches('#');
                self.document
                    .pointer(pointer)
                    .unwrap_or_else(|| panic!("{reference} leads nowhere"))
            }
        }
    }

    fn value(&mut self, schema: &'a Value, value: &Value, at: &str) {
        let schema = self.resolve(schema);
        if let Some(choices) = schema["oneOf"].as_array() {
            let fitting = choices
                .iter()
                .filter(|choice| differences(self.document, choice, value).is_empty());
            if fitting.count() != 1 {
                self.found
                    .push(format!("{at}: {value} fits not exactly one of {schema}"));
            }
            return;
        }
        self.kind(schema, value, at);
        if let Some(allowed) = schema["enum"].as_array()
            && !allowed.contains(value)
        {
            self.found
                .push(format!("{at}: {value} is none of {allowed:?}"));
        }
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(&schema["items"], item, &format!("{at}/{index}"));
                }
            }
            Value::Object(_) => self.object(schema, value, at),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn kind(&mut self, schema: &Value, value: &Value, at: &str) {
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ if schema["allOf"].is_array() => vec!["object"],
            _ => {
                self.found
                    .push(format!("{at}: the document says nothing of {value}"));
                return;
            }
        };
        let fits = |kind: &&str| match value {
            Value::Null => *kind == "null",
            Value::Bool(_) => *kind == "boolean",
            Value::Number(number) => *kind == "number" || (*kind == "integer" && !number.is_f64()),
            Value::String(_) => *kind == "string",
            Value::Array(_) => *kind == "array",
            Value::Object(_) => *kind == "object",
        };
        if !kinds.iter().any(fits) {
            self.found.push(format!("{at}: {value} is no {kinds:?}"));
        }
    }

    fn object(&mut self, schema: &'a Value, value: &Value, at: &str) {
        let mut parts = vec![schema];
        if let Some(all) = schema["allOf"].as_array() {
            parts.extend(all.iter().map(|part| self.resolve(part)));
        }
        let mut described = BTreeSet::new();
        for part in parts {
            for name in part["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                if value.get(name).is_none() {
                    self.found.push(format!("{at}: {name} is missing"));
                }
            }
            for (name, property) in part["properties"].as_object().into_iter().flatten() {
                described.insert(name.as_str());
                if let Some(inner) = value.get(name) {
                    self.value(property, inner, &format!("{at}/{name}"));
                }
            }
        }
        if described.is_empty() {
            return;
        }
        for name in value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
        {
            if !described.contains(name.as_str()) {
                self.found
                    .push(format!("{at}: the document does not describe {name}"));
            }
        }
    }
}

#[test]
fn a_missing_an_unknown_and_a_wrong_field_are_found() {
    let document = serde_json::json!({});
    let schema = serde_json::json!({
        "type": "object", "required": ["a"],
        "properties": {"a": {"type": "string", "enum": ["x"]}, "b": {"type": ["integer", "null"]}},
    });
    let count = |value: Value| differences(&document, &schema, &value).len();
    assert_eq!(count(serde_json::json!({"a": "x", "b": null})), 0);
    assert_eq!(count(serde_json::json!({"b": 1})), 1);
    assert_eq!(count(serde_json::json!({"a": "y"})), 1);
    assert_eq!(count(serde_json::json!({"a": "x", "b": "1"})), 1);
    assert_eq!(count(serde_json::json!({"a": "x", "c": 1})), 1);
}
