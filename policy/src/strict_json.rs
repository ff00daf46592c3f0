//! JSON whose objects name each key once. `serde_json` alone keeps the last of two equal keys, so
//! two readers of the same bytes could see two different documents.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// Reads through `text` and refuses what is not JSON or names a key twice in one object.
pub(crate) fn check(text: &str) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    EachKeyOnce.deserialize(&mut reader)?;
    reader.end()
}

struct EachKeyOnce;

impl<'de> DeserializeSeed<'de> for EachKeyOnce {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for EachKeyOnce {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(EachKeyOnce)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = members.next_key::<String>()? {
            if seen.contains(&key) {
                let key: String = key.chars().take(64).collect();
                return Err(A::Error::custom(format_args!(
                    "the key {key:?} stands twice"
                )));
            }
            seen.insert(key);
            members.next_value_seed(EachKeyOnce)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_stand_once_in_each_object() {
        for good in [
            "{}",
            "[1,-1,1.5,null,true,\"a\"]",
            r#"{"a":{"a":1},"b":[{"a":1},{"a":2}]}"#,
        ] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in [
            r#"{"a":1,"a":1}"#,
            r#"[{"b":{"a":1,"a":2}}]"#,
            r#"{"a":1,"\u0061":2}"#,
            "{} {}",
            "",
            "{",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
        assert!(check(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn the_key_that_stands_twice_is_named() {
        let error = check("{\n\"level\":1,\n\"level\":2}")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("\"level\" stands twice at line 3"),
            "{error}"
        );
    }
}
