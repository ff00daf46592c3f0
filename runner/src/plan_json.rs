//! What the JSON form of a plan says. The document comes out of a sandbox, so it is read as a stream,
//! with nothing kept but numbers: its size, not its content, decides what reading costs.

use std::fmt;
use std::io::Read;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use stackship_domain::run::Counts;
use stackship_runner_protocol::PlanJsonFacts;

/// Reads the facts out of a plan's JSON.
pub fn read_facts(json: impl Read) -> Result<PlanJsonFacts, serde_json::Error> {
    let mut facts = PlanJsonFacts::default();
    let mut reader = serde_json::Deserializer::from_reader(json);
    Document(&mut facts).deserialize(&mut reader)?;
    reader.end()?;
    Ok(facts)
}

struct Document<'a>(&'a mut PlanJsonFacts);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a plan")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "resource_changes" => map.next_value_seed(Resources(&mut self.0.counts))?,
                "output_changes" => map.next_value_seed(Outputs(&mut self.0.counts))?,
                "errored" => self.0.errored = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Resources<'a>(&'a mut Counts);

impl<'de> DeserializeSeed<'de> for Resources<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Resources<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of resource changes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(change) = list.next_element::<ResourceChange>()? {
            change.count(self.0);
        }
        Ok(())
    }
}

struct Outputs<'a>(&'a mut Counts);

impl<'de> DeserializeSeed<'de> for Outputs<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Outputs<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("output changes by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((_, change)) = map.next_entry::<IgnoredAny, Change>()? {
            let is_changed = change.actions.iter().any(|action| *action != Action::NoOp);
            self.0.output = self.0.output.saturating_add(u32::from(is_changed));
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct ResourceChange {
    address: String,
    previous_address: Option<String>,
    #[serde(default)]
    mode: String,
    change: Change,
}

#[derive(Deserialize)]
struct Change {
    actions: Vec<Action>,
    importing: Option<IgnoredAny>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Action {
    NoOp,
    Create,
    Read,
    Update,
    Delete,
    Forget,
    /// One that a later OpenTofu may know; the exit code still says that there are changes.
    #[serde(other)]
    Other,
}

impl ResourceChange {
    fn count(&self, counts: &mut Counts) {
        // Reading a data source changes nothing.
        if self.mode == "data" {
            return;
        }
        let has = |wanted: Action| self.change.actions.contains(&wanted);
        let add =
            |number: &mut u32, is_one: bool| *number = number.saturating_add(u32::from(is_one));
        add(&mut counts.create, has(Action::Create));
        add(&mut counts.change, has(Action::Update));
        add(&mut counts.destroy, has(Action::Delete));
        add(
            &mut counts.replace,
            has(Action::Create) && has(Action::Delete),
        );
        add(&mut counts.forget, has(Action::Forget));
        add(&mut counts.import, self.change.importing.is_some());
        add(
            &mut counts.moved,
            self.previous_address
                .as_ref()
                .is_some_and(|from| *from != self.address),
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts(document: &serde_json::Value) -> PlanJsonFacts {
        read_facts(document.to_string().as_bytes()).unwrap()
    }

    fn change(actions: &[&str]) -> serde_json::Value {
        json!({ "address": "a.b", "mode": "managed", "change": { "actions": actions, "before": {"x": [1.5]}, "after": null } })
    }

    #[test]
    fn every_action_is_counted_and_a_replacement_twice() {
        let document = json!({
            "format_version": "1.2", "errored": false, "prior_state": {"values": [1, {"a": 2}]},
            "resource_changes": [
                change(&["create"]), change(&["update"]), change(&["delete"]), change(&["no-op"]), change(&["read"]),
                change(&["delete", "create"]), change(&["create", "delete"]), change(&["forget"]), change(&["open"]),
                { "address": "data.x.y", "mode": "data", "change": { "actions": ["read", "create"] } },
            ],
        });
        let expected = Counts {
            create: 3,
            change: 1,
            destroy: 3,
            replace: 2,
            forget: 1,
            ..Counts::default()
        };
        assert_eq!(
            facts(&document),
            PlanJsonFacts {
                counts: expected,
                errored: false
            }
        );
    }

    #[test]
    fn a_plan_that_only_moves_forgets_imports_or_changes_outputs_counts() {
        let moved = json!({ "address": "a.c", "previous_address": "a.b", "mode": "managed", "change": { "actions": ["no-op"] } });
        let import = json!({ "address": "a.b", "mode": "managed", "change": { "actions": ["no-op"], "importing": {"id": "1"} } });
        for (document, expected) in [
            (
                json!({ "resource_changes": [moved] }),
                Counts {
                    moved: 1,
                    ..Counts::default()
                },
            ),
            (
                json!({ "resource_changes": [import] }),
                Counts {
                    import: 1,
                    ..Counts::default()
                },
            ),
            (
                json!({ "resource_changes": [change(&["forget"])] }),
                Counts {
                    forget: 1,
                    ..Counts::default()
                },
            ),
            (
                json!({ "output_changes": { "a": { "actions": ["update"] }, "b": { "actions": ["no-op"] } } }),
                Counts {
                    output: 1,
                    ..Counts::default()
                },
            ),
            (
                json!({ "resource_changes": [change(&["no-op"])] }),
                Counts::default(),
            ),
        ] {
            assert_eq!(facts(&document).counts, expected);
        }
    }

    #[test]
    fn an_errored_plan_says_so_and_a_damaged_one_is_no_plan() {
        assert!(facts(&json!({ "errored": true })).errored);
        assert!(read_facts(&b"{\"errored\": fal"[..]).is_err());
        assert!(read_facts(&b"{} {}"[..]).is_err());
        let deep = "[".repeat(200_000);
        assert!(
            read_facts(format!("{{\"variables\": {deep}").as_bytes()).is_err(),
            "depth is bounded"
        );
    }
}
