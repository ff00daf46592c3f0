//! Looking for all secrets at once.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::{Secrets, forms};
use crate::json::Node;
use crate::redact::Redacted;

/// How long all forms of all secrets may be together: the automaton takes several times as much.
const FORMS_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How an object in the policy input says that it stands for a value. A plan must not say so itself.
pub(crate) const MARKER: &str = "__stackship";

/// What must not be shown.
pub(crate) struct Needles {
    automaton: Option<AhoCorasick>,
    is_complete: bool,
}

impl Needles {
    pub fn new(secrets: Secrets) -> Self {
        let (mut texts, mut bytes) = (Vec::new(), 0);
        for window in secrets.windows {
            forms::each_form(&window, &mut |form| {
                bytes += form.len();
                if bytes <= FORMS_BYTES_MAX {
                    texts.push(form);
                }
            });
        }
        texts.sort_unstable();
        texts.dedup();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .ascii_case_insensitive(false)
            .build(&texts);
        Self {
            is_complete: !secrets.is_incomplete && bytes <= FORMS_BYTES_MAX && automaton.is_ok(),
            automaton: automaton.ok(),
        }
    }

    /// Whether every secret is among them.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub fn is_in(&self, text: &str) -> bool {
        self.automaton
            .as_ref()
            .is_none_or(|automaton| automaton.is_match(text))
    }

    /// Withholds what contains a secret: a text, or an object one of whose keys does.
    pub fn withhold_echoes(&self, value: &mut Redacted<'_>) {
        let is_echo = match value {
            Redacted::Absent
            | Redacted::Unknown
            | Redacted::Sensitive(_)
            | Redacted::Withheld(_) => false,
            Redacted::Scalar(node) => self.is_in_leaf(node),
            Redacted::List(_, elements) => {
                for element in elements {
                    self.withhold_echoes(element);
                }
                false
            }
            Redacted::Object(_, members) => {
                let is_echo = members
                    .iter()
                    .any(|(key, _)| *key == MARKER || self.is_in(key));
                if !is_echo {
                    for (_, member) in members {
                        self.withhold_echoes(member);
                    }
                }
                is_echo
            }
        };
        if is_echo {
            value.withhold();
        }
    }

    fn is_in_leaf(&self, node: &Node<'_>) -> bool {
        match node {
            Node::String(text) => self.is_in(text),
            Node::Number(text) => self.is_in(text),
            Node::Null | Node::Bool(_) | Node::Array(_) | Node::Object(_) => false,
        }
    }
}
