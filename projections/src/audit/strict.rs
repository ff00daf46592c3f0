//! JSON that says one thing: a name that comes twice in an object is refused. Two readers could see
//! two payloads in it, of which only one was hashed.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The value of a JSON text.
pub(super) fn value(text: &str) -> Result<Value, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = Strict.deserialize(&mut json)?;
    json.end()?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key_seed(Name)? {
            let member = members.next_value_seed(self)?;
            if object.insert(name, member).is_some() {
                return Err(A::Error::custom("a name comes twice in an object"));
            }
        }
        Ok(object.into())
    }
}

struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        String::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_the_log_was_read_as() {
        let text = r#"{"z": [null, true, 0, -7, 18446744073709551615, 0.25, 1e300], "é": "t\n\"", "a": {}}"#;
        let plain: Value = serde_json::from_str(text).unwrap();
        assert_eq!(value(text).unwrap(), plain);
    }

    #[test]
    fn a_name_that_comes_twice_and_anything_behind_are_refused() {
        for text in [
            r#"{"a": 1, "a": 1}"#,
            r#"{"b": [{"a": 1, "a": 2}]}"#,
            "{} {}",
        ] {
            assert!(value(text).is_err(), "{text}");
        }
    }
}
