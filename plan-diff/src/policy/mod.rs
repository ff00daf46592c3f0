//! The plan as policies see it, schema `stackship.policy-input/v1`: OpenTofu's own shape, so that rules
//! written for its JSON read well, with a marker in place of every value that is not shown. Nothing is
//! cut: a rule that does not find something says nothing, and silence is consent.

mod configuration;

use crate::Reason;
use crate::buffer::{Buffer, Full, shown};
use crate::change::{Change, ResourceChange};
use crate::diff::is_version;
use crate::document::Document;
use crate::json::{JsonError, Node};
use crate::redact::{Pair, Redacted};
use crate::secrets::{MARKER, Needles};

/// The name of the format.
pub const POLICY_INPUT_SCHEMA: &str = "stackship.policy-input/v1";

const SENSITIVE: &str = "{\"__stackship\":\"sensitive\"}";
const UNKNOWN: &str = "{\"__stackship\":\"unknown\"}";
const WITHHELD: &str = "{\"__stackship\":\"withheld\"}";

/// A document in the making; `None` once it has become too large.
pub(crate) struct PolicyInput<'n> {
    out: Option<Buffer>,
    needles: &'n Needles,
    /// Outputs that have no name here.
    nameless: usize,
}

impl<'n> PolicyInput<'n> {
    pub fn new(bytes_max: usize, needles: &'n Needles) -> Self {
        Self {
            out: Some(Buffer::new(bytes_max)),
            needles,
            nameless: 0,
        }
    }

    /// Everything before the resources.
    pub fn begin(&mut self, document: &Document<'_>) {
        self.write(|out, needles| {
            out.raw("{\"format_version\":")?;
            out.json(&document.format_version)?;
            let version = document.tofu_version.as_deref();
            out.name("terraform_version")?;
            let is_shown = |text: &&str| is_version(text) && !needles.is_in(text);
            out.json(&version.filter(is_shown))?;
            out.name("errored")?;
            out.json(&document.errored)?;
            out.name("complete")?;
            out.json(&!document.is_partial())?;
            out.name("resource_changes")?;
            out.raw("[")
        });
    }

    pub fn resource(&mut self, resource: &ResourceChange<'_>, pair: &Result<Pair<'_>, Reason>) {
        self.write(|out, needles| {
            out.comma()?;
            out.raw("{")?;
            names(resource, needles, out)?;
            withheld(pair, out)?;
            out.name("change")?;
            change(&resource.change, pair, needles, out)?;
            out.raw("}")
        });
    }

    /// Everything between the resources and the outputs.
    pub fn end_resources(&mut self) {
        self.write(|out, _| out.raw("],\"output_changes\":{"));
    }

    pub fn output(&mut self, name: &str, output: &Change<'_>, pair: &Result<Pair<'_>, Reason>) {
        let withheld = format!("{MARKER}_withheld_{}", self.nameless);
        let name = shown(name, self.needles).unwrap_or_else(|| {
            self.nameless += 1;
            &withheld
        });
        self.write(|out, needles| {
            out.name(name)?;
            change(output, pair, needles, out)
        });
    }

    /// Everything after the outputs; the document, unless it is too large.
    pub fn finish(mut self, document: &Document<'_>) -> Result<Option<Vec<u8>>, JsonError> {
        self.write(|out, needles| {
            out.raw("},\"variables\":{")?;
            for (name, _) in &document.variables {
                if let Some(name) = shown(name, needles) {
                    out.name(name)?;
                    out.raw("{}")?;
                }
            }
            out.raw("}")
        });
        if let (Some(text), Some(out)) = (document.configuration, &mut self.out) {
            let is_written = out.raw(",\"configuration\":").is_ok()
                && configuration::copy(text, self.needles, out)?;
            if !is_written {
                self.out = None;
            }
        }
        self.write(|out, _| out.raw("}\n"));
        Ok(self.out.map(Buffer::into_bytes))
    }

    fn write(&mut self, write: impl FnOnce(&mut Buffer, &Needles) -> Result<(), Full>) {
        if let Some(out) = &mut self.out
            && let Err(Full) = write(out, self.needles)
        {
            self.out = None;
        }
    }
}

fn names(resource: &ResourceChange<'_>, needles: &Needles, out: &mut Buffer) -> Result<(), Full> {
    let mut write = |name: &str, text: Option<&str>| {
        let Some(text) = text else { return Ok(()) };
        out.name(name)?;
        match shown(text, needles) {
            Some(text) => out.json(text),
            None => out.raw(WITHHELD),
        }
    };
    write("address", resource.address.as_deref())?;
    write("previous_address", resource.previous_address.as_deref())?;
    write("module_address", resource.module_address.as_deref())?;
    write("mode", Some(resource.known_mode().unwrap_or("other")))?;
    write("type", Some(&resource.kind))?;
    write("name", Some(&resource.name))?;
    write("provider_name", Some(&resource.provider))?;
    write("deposed", resource.deposed.as_deref())?;
    write("action_reason", resource.action_reason.as_deref())?;
    match resource.index.and_then(Node::parse) {
        Some(Node::String(text)) => write("index", Some(&text)),
        Some(Node::Number(text)) if shown(text, needles).is_some() => {
            out.name("index")?;
            out.raw(text)
        }
        _ => Ok(()),
    }
}

/// A rule can tell a resource whose values could not be redacted with certainty.
fn withheld(pair: &Result<Pair<'_>, Reason>, out: &mut Buffer) -> Result<(), Full> {
    let Err(reason) = pair else { return Ok(()) };
    out.name("withheld")?;
    out.json(reason)
}

fn change(
    change: &Change<'_>,
    pair: &Result<Pair<'_>, Reason>,
    needles: &Needles,
    out: &mut Buffer,
) -> Result<(), Full> {
    out.raw("{\"actions\":")?;
    out.json(change.action.words())?;
    if change.importing {
        out.raw(",\"importing\":{}")?;
    }
    for (name, is_before) in [("before", true), ("after", false)] {
        out.name(name)?;
        match pair {
            Err(_) => out.raw(WITHHELD)?,
            Ok(pair) => value(if is_before { &pair.before } else { &pair.after }, out)?,
        }
    }
    if let Some(paths) = change.replace_paths() {
        replace_paths(&paths, needles, out)?;
    }
    out.raw("}")
}

/// Written only when they are plain lists of steps, none of which is to be withheld.
fn replace_paths(paths: &Node<'_>, needles: &Needles, out: &mut Buffer) -> Result<(), Full> {
    let start = out.len();
    out.name("replace_paths")?;
    if write_paths(paths, needles, out)?.is_none() {
        out.truncate(start);
    }
    Ok(())
}

fn write_paths(paths: &Node<'_>, needles: &Needles, out: &mut Buffer) -> Result<Option<()>, Full> {
    let Node::Array(paths) = paths else {
        return Ok(None);
    };
    out.raw("[")?;
    for path in paths {
        let Node::Array(steps) = path else {
            return Ok(None);
        };
        out.comma()?;
        out.raw("[")?;
        for step in steps {
            out.comma()?;
            match step {
                Node::String(text) if !needles.is_in(text) => out.json(text)?,
                Node::Number(text) if !needles.is_in(text) => out.raw(text)?,
                _ => return Ok(None),
            }
        }
        out.raw("]")?;
    }
    out.raw("]")?;
    Ok(Some(()))
}

fn value(value: &Redacted<'_>, out: &mut Buffer) -> Result<(), Full> {
    match value {
        Redacted::Absent => out.raw("null"),
        Redacted::Unknown => out.raw(UNKNOWN),
        Redacted::Sensitive(_) => out.raw(SENSITIVE),
        Redacted::Withheld(_) => out.raw(WITHHELD),
        Redacted::Scalar(node) => match node {
            Node::Bool(is_true) => out.json(is_true),
            Node::Number(text) => out.raw(text),
            Node::String(text) => out.json(text),
            Node::Null | Node::Array(_) | Node::Object(_) => out.raw("null"),
        },
        Redacted::List(_, elements) => {
            out.raw("[")?;
            for element in elements {
                out.comma()?;
                self::value(element, out)?;
            }
            out.raw("]")
        }
        Redacted::Object(_, members) => {
            out.raw("{")?;
            for (key, member) in members {
                out.name(key)?;
                self::value(member, out)?;
            }
            out.raw("}")
        }
    }
}
