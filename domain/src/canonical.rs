//! One byte form for one value: JSON with sorted keys, no spaces, no floats. What is digested or
//! chained is encoded here, so that a library's feature flag cannot change a digest.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

/// A value that has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum NotCanonical {
    /// A number with a fraction or an exponent: its text depends on who prints it.
    #[error("a number that is not an integer has no canonical form")]
    Float,
    /// The value does not serialize to JSON.
    #[error("the value does not serialize to JSON")]
    Serialize(#[from] serde_json::Error),
}

/// The canonical bytes of `value`.
pub fn to_bytes<T: Serialize>(value: &T) -> Result<Vec<u8>, NotCanonical> {
    let mut text = String::new();
    write_value(&serde_json::to_value(value)?, &mut text)?;
    Ok(text.into_bytes())
}

fn write_value(value: &Value, out: &mut String) -> Result<(), NotCanonical> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => {
            if number.is_f64() {
                return Err(NotCanonical::Float);
            }
            write!(out, "{number}").expect("writing to a string cannot fail");
        }
        Value::String(text) => write_string(text, out)?,
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(item, out)?;
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (index, (key, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(key, out)?;
                out.push(':');
                write_value(member, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn write_string(text: &str, out: &mut String) -> Result<(), NotCanonical> {
    out.push_str(&serde_json::to_string(text)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_at_every_depth_and_nothing_is_spaced() {
        let value = json!({"b": [{"z": 1, "a": null}], "a": "é\n\"", "c": -7});
        assert_eq!(
            String::from_utf8(to_bytes(&value).unwrap()).unwrap(),
            "{\"a\":\"é\\n\\\"\",\"b\":[{\"a\":null,\"z\":1}],\"c\":-7}"
        );
    }

    #[test]
    fn floats_are_refused() {
        assert!(matches!(
            to_bytes(&json!({"a": 1.5})),
            Err(NotCanonical::Float)
        ));
    }
}
