//! What changes of a value, attribute by attribute, down to its leaves.

use std::fmt::Write as _;

use crate::buffer::{Buffer, Full};
use crate::change::Change;
use crate::json::Node;
use crate::redact::{Pair, Redacted};

/// How many paths that make a replacement necessary are marked.
const REPLACE_PATHS_MAX: usize = 1_000;

/// A step into a value.
#[derive(Clone, Copy)]
enum Step<'t> {
    Key(&'t str),
    Index(usize),
}

struct Writer<'t, 'o> {
    out: &'o mut Buffer,
    path: Vec<Step<'t>>,
    replace_paths: &'t [Node<'t>],
    is_first: bool,
}

/// Writes `,"detail":{"status":"shown","changes":[…]}`.
pub(super) fn write(pair: &Pair<'_>, change: &Change<'_>, out: &mut Buffer) -> Result<(), Full> {
    out.raw(",\"detail\":{\"status\":\"shown\",\"changes\":[")?;
    let replace_paths = change.replace_paths();
    Writer {
        out,
        path: Vec::new(),
        replace_paths: match &replace_paths {
            Some(Node::Array(paths)) => &paths[..paths.len().min(REPLACE_PATHS_MAX)],
            _ => &[],
        },
        is_first: true,
    }
    .walk(&pair.before, &pair.after)?;
    out.raw("]}")
}

impl<'t> Writer<'t, '_> {
    fn walk(&mut self, before: &Redacted<'t>, after: &Redacted<'t>) -> Result<(), Full> {
        match (before, after) {
            (Redacted::Object(_, before), Redacted::Object(_, after)) => {
                self.members(before, after)
            }
            (Redacted::List(_, before), Redacted::List(_, after)) => self.elements(before, after),
            _ => {
                // A container against something else: that something, and all leaves of the container.
                let (leaf_before, leaf_after) = (leaf(before), leaf(after));
                if !leaf_before.stays(leaf_after) {
                    self.line(leaf_before, leaf_after)?;
                }
                self.inner(before, true)?;
                self.inner(after, false)
            }
        }
    }

    fn members(
        &mut self,
        before: &[(&'t str, Redacted<'t>)],
        after: &[(&'t str, Redacted<'t>)],
    ) -> Result<(), Full> {
        let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
        loop {
            let key = match (before.peek(), after.peek()) {
                (None, None) => return Ok(()),
                (Some((key, _)), None) | (None, Some((key, _))) => *key,
                (Some((one, _)), Some((other, _))) => *one.min(other),
            };
            let old = before.next_if(|(name, _)| *name == key);
            let new = after.next_if(|(name, _)| *name == key);
            self.step(
                Step::Key(key),
                old.map(|(_, value)| value),
                new.map(|(_, value)| value),
            )?;
        }
    }

    fn elements(&mut self, before: &[Redacted<'t>], after: &[Redacted<'t>]) -> Result<(), Full> {
        for index in 0..before.len().max(after.len()) {
            self.step(Step::Index(index), before.get(index), after.get(index))?;
        }
        Ok(())
    }

    fn inner(&mut self, container: &Redacted<'t>, is_before: bool) -> Result<(), Full> {
        match container {
            Redacted::Object(_, members) if is_before => self.members(members, &[]),
            Redacted::Object(_, members) => self.members(&[], members),
            Redacted::List(_, elements) if is_before => self.elements(elements, &[]),
            Redacted::List(_, elements) => self.elements(&[], elements),
            _ => Ok(()),
        }
    }

    fn step(
        &mut self,
        step: Step<'t>,
        before: Option<&Redacted<'t>>,
        after: Option<&Redacted<'t>>,
    ) -> Result<(), Full> {
        let absent = Redacted::Absent;
        self.path.push(step);
        self.walk(before.unwrap_or(&absent), after.unwrap_or(&absent))?;
        self.path.pop();
        Ok(())
    }

    fn line(&mut self, before: &Redacted<'_>, after: &Redacted<'_>) -> Result<(), Full> {
        if !std::mem::replace(&mut self.is_first, false) {
            self.out.raw(",")?;
        }
        self.out.raw("{\"path\":")?;
        self.out.json(&display(&self.path))?;
        self.out.raw(",\"before\":")?;
        side(before, self.out)?;
        self.out.raw(",\"after\":")?;
        side(after, self.out)?;
        if self.forces_replacement() {
            self.out.raw(",\"forces_replacement\":true")?;
        }
        self.out.raw("}")
    }

    fn forces_replacement(&self) -> bool {
        self.replace_paths.iter().any(|path| match path {
            // A path to the whole value would mark everything, and says nothing.
            Node::Array(steps) => {
                !steps.is_empty()
                    && steps
                        .iter()
                        .zip(&self.path)
                        .all(|(wanted, step)| is_step(wanted, *step))
            }
            _ => false,
        })
    }
}

fn is_step(wanted: &Node<'_>, step: Step<'_>) -> bool {
    match (wanted, step) {
        (Node::String(wanted), Step::Key(key)) => wanted == key,
        (Node::Number(wanted), Step::Index(index)) => *wanted == index.to_string(),
        _ => false,
    }
}

/// A container with something in it is told by its leaves.
fn leaf<'v, 't>(value: &'v Redacted<'t>) -> &'v Redacted<'t> {
    match value {
        Redacted::Object(_, members) if !members.is_empty() => &Redacted::Absent,
        Redacted::List(_, elements) if !elements.is_empty() => &Redacted::Absent,
        other => other,
    }
}

fn side(value: &Redacted<'_>, out: &mut Buffer) -> Result<(), Full> {
    match value {
        Redacted::Absent => out.raw("{\"kind\":\"absent\"}"),
        Redacted::Unknown => out.raw("{\"kind\":\"unknown\"}"),
        Redacted::Sensitive(_) => out.raw("{\"kind\":\"sensitive\"}"),
        Redacted::Withheld(_) => out.raw("{\"kind\":\"withheld\"}"),
        Redacted::Object(..) => shown("object", "{}", out),
        Redacted::List(..) => shown("list", "[]", out),
        Redacted::Scalar(node) => match node {
            Node::Null => shown("null", "null", out),
            Node::Bool(true) => shown("bool", "true", out),
            Node::Bool(false) => shown("bool", "false", out),
            Node::Number(text) => shown("number", text, out),
            Node::String(text) => shown("string", text, out),
            Node::Array(_) | Node::Object(_) => Ok(()),
        },
    }
}

/// The text of a number is its digits as they were written: no reader rounds a string.
fn shown(kind: &str, text: &str, out: &mut Buffer) -> Result<(), Full> {
    out.raw("{\"kind\":\"value\",\"type\":\"")?;
    out.raw(kind)?;
    out.raw("\",\"text\":")?;
    out.json(text)?;
    out.raw("}")
}

/// The path as one would write it in a configuration: `tags["a.b"].list[0]`.
fn display(path: &[Step<'_>]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            Step::Index(index) => {
                write!(out, "[{index}]").expect("writing to a string cannot fail");
            }
            Step::Key(key) if is_identifier(key) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(key);
            }
            Step::Key(key) => {
                let quoted = serde_json::to_string(key).expect("any text has a form in JSON");
                write!(out, "[{quoted}]").expect("writing to a string cannot fail");
            }
        }
    }
    out
}

fn is_identifier(key: &str) -> bool {
    let mut letters = key.bytes();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || b"_-".contains(&letter))
}
