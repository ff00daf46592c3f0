//! Members of a policy's `deny` and `warn`: a text, or an object with known keys.

use regorus::Value;

use super::engine::Failure;
use crate::finding::{
    FINDINGS_MAX, MESSAGE_CHARS_MAX, RESOURCE_ADDRESS_CHARS_MAX, TITLE_CHARS_MAX, is_rule_id,
};
use crate::text::plain;
use crate::wire::{Counts, FINDINGS_BYTES_MAX, Member, Rule};

const SHAPE: &str = "a member is a text, or an object with the texts `rule_id`, `title`, `message` \
                     and, if it is about a resource, `resource_address`";

/// What all policies found, bounded.
#[derive(Default)]
pub(super) struct Found {
    counts: Vec<Counts>,
    deny: Vec<Member>,
    warn: Vec<Member>,
}

impl Found {
    /// Takes the sets of the next policy. Every member must be well-formed, also those that are
    /// counted and not kept.
    pub(super) fn take(&mut self, sets: &[(Rule, Value)]) -> Result<(), Failure> {
        let policy = self.counts.len();
        let mut counts = Counts::default();
        for (rule, set) in sets {
            let (kept, count) = match rule {
                Rule::Deny => (&mut self.deny, &mut counts.deny),
                Rule::Warn => (&mut self.warn, &mut counts.warn),
            };
            let set = set
                .as_set()
                .map_err(|_| Failure::error("it is not a set"))?;
            *count = u32::try_from(set.len()).unwrap_or(u32::MAX);
            for value in set.iter_sorted() {
                let member = member(policy, *rule, value)?;
                if kept.len() < FINDINGS_MAX {
                    kept.push(member);
                }
            }
        }
        self.counts.push(counts);
        Ok(())
    }

    /// The counts, and as many members as fit: what can block comes first, so it is cut last.
    pub(super) fn finish(self) -> (Vec<Counts>, Vec<Member>) {
        let mut kept = Vec::new();
        let mut bytes = 0;
        for member in self.deny.into_iter().chain(self.warn) {
            bytes += serde_json::to_vec(&member).map_or(FINDINGS_BYTES_MAX, |line| line.len());
            if kept.len() == FINDINGS_MAX || bytes > FINDINGS_BYTES_MAX {
                break;
            }
            kept.push(member);
        }
        (self.counts, kept)
    }
}

fn member(policy: usize, rule: Rule, value: &Value) -> Result<Member, Failure> {
    let mut member = Member {
        policy,
        rule,
        rule_id: rule.as_str().to_owned(),
        title: None,
        message: String::new(),
        resource_address: None,
    };
    match value {
        Value::String(message) => member.message = plain(message, MESSAGE_CHARS_MAX),
        Value::Object(_) => fill(&mut member, value)?,
        _ => return Err(malformed(rule, "it is neither")),
    }
    Ok(member)
}

fn fill(member: &mut Member, value: &Value) -> Result<(), Failure> {
    let rule = member.rule;
    let object = value
        .as_object()
        .map_err(|_| malformed(rule, "it is neither"))?;
    let mut missing = vec!["rule_id", "title", "message"];
    for (key, value) in object.iter_sorted() {
        let (Value::String(key), Value::String(value)) = (key, value) else {
            return Err(malformed(rule, "a key or a value is not a text"));
        };
        match &**key {
            "rule_id" if is_rule_id(value) => (**value).clone_into(&mut member.rule_id),
            "rule_id" => {
                return Err(malformed(
                    rule,
                    "`rule_id` is not 1 to 64 of the characters A-Z a-z 0-9 _ . -",
                ));
            }
            "title" => member.title = Some(plain(value, TITLE_CHARS_MAX)),
            "message" => member.message = plain(value, MESSAGE_CHARS_MAX),
            "resource_address" => {
                member.resource_address = Some(plain(value, RESOURCE_ADDRESS_CHARS_MAX));
            }
            unknown => {
                let unknown = plain(unknown, 64);
                return Err(malformed(
                    rule,
                    &format!("the key `{unknown}` is not known"),
                ));
            }
        }
        missing.retain(|wanted| *wanted != &**key);
    }
    match missing.first() {
        Some(key) => Err(malformed(rule, &format!("the key `{key}` is missing"))),
        None => Ok(()),
    }
}

fn malformed(rule: Rule, problem: &str) -> Failure {
    Failure::error(format!(
        "a member of `{}` is malformed: {problem}; {SHAPE}",
        rule.as_str()
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn as_set(members: BTreeSet<Value>) -> Value {
        Value::from(members)
    }

    fn set(json: &str) -> Value {
        let array = Value::from_json_str(json).unwrap();
        as_set(array.as_array().unwrap().iter().cloned().collect())
    }

    fn take(json: &str) -> Result<Vec<Member>, String> {
        let mut found = Found::default();
        let taken = found.take(&[(Rule::Deny, set(json))]);
        taken.map_err(|failure| failure.detail)?;
        Ok(found.finish().1)
    }

    #[test]
    fn a_text_and_an_object_are_members() {
        let members = take(
            r#"["plain\u001b text", {"rule_id": "R-1", "title": "T", "message": "M", "resource_address": "a.b[\"c\"]"}]"#,
        )
        .unwrap();
        assert_eq!(
            (members[0].rule_id.as_str(), members[0].message.as_str()),
            ("deny", "plain text")
        );
        assert_eq!(members[1].rule_id, "R-1");
        assert_eq!(members[1].resource_address.as_deref(), Some("a.b[\"c\"]"));
    }

    #[test]
    fn anything_else_is_refused() {
        for (json, problem) in [
            ("[1]", "it is neither"),
            ("[null]", "it is neither"),
            ("[[\"a\"]]", "it is neither"),
            ("[{}]", "`rule_id` is missing"),
            (
                r#"[{"rule_id": "r", "title": "t"}]"#,
                "`message` is missing",
            ),
            (
                r#"[{"rule_id": "r", "title": "t", "message": 1}]"#,
                "not a text",
            ),
            (
                r#"[{"rule_id": "r", "title": "t", "message": "m", "level": "advisory"}]"#,
                "`level` is not known",
            ),
            (
                r#"[{"rule_id": "a b", "title": "t", "message": "m"}]"#,
                "`rule_id` is not",
            ),
        ] {
            let detail = take(json).unwrap_err();
            assert!(detail.contains(problem), "{json}: {detail}");
        }
    }

    #[test]
    fn members_are_cut_by_number_and_by_bytes_and_warnings_first() {
        let many = |count: usize, length: usize| {
            let text = |n| Value::from(format!("{n:05} {}", "x".repeat(length)));
            as_set((0..count).map(text).collect())
        };
        let mut found = Found::default();
        let sets = [(Rule::Deny, many(999, 10)), (Rule::Warn, many(5, 10))];
        found.take(&sets).unwrap();
        let (counts, kept) = found.finish();
        assert_eq!(counts, [Counts { deny: 999, warn: 5 }]);
        assert_eq!(kept.len(), FINDINGS_MAX);
        assert_eq!(
            kept.iter()
                .filter(|member| member.rule == Rule::Warn)
                .count(),
            1
        );

        let mut found = Found::default();
        let wide = Value::from("\u{10ffff}".repeat(MESSAGE_CHARS_MAX));
        let wide = |n: usize| Value::from(format!("{n:05}{}", wide.as_string().unwrap()));
        found
            .take(&[(Rule::Deny, as_set((0..1_000).map(wide).collect()))])
            .unwrap();
        let (counts, kept) = found.finish();
        assert_eq!(counts[0].deny, 1_000);
        assert!(kept.len() > 100 && kept.len() < 1_000, "{}", kept.len());
    }
}
