//! One resource or output of the document, written down. Its detail comes last, so that it can be cut
//! off without writing the rest again.

use serde::Serialize;

use super::attributes;
use crate::Reason;
use crate::action::Action;
use crate::buffer::{Buffer, Full, shown};
use crate::change::{Change, ResourceChange};
use crate::redact::Pair;
use crate::secrets::Needles;

const ACTION_REASON_BYTES_MAX: usize = 200;

/// How long the place of a detail is that is withheld.
const WITHHELD_BYTES_MAX: usize = 80;

/// An entry as JSON, without its closing bracket.
pub(crate) struct Piece {
    bytes: Vec<u8>,
    /// Where the detail begins.
    head: usize,
    /// Why there is no detail, when there is none.
    withheld: Option<Reason>,
}

#[derive(Serialize)]
struct Withheld {
    status: &'static str,
    reason: Reason,
}

impl Piece {
    fn new(head: Buffer, pair: &Result<Pair<'_>, Reason>, change: &Change<'_>, max: usize) -> Self {
        let mut piece = Self {
            head: head.len(),
            bytes: head.into_bytes(),
            withheld: None,
        };
        match pair {
            Err(reason) => piece.withhold(*reason),
            Ok(pair) => {
                let mut detail = Buffer::new(max);
                match attributes::write(pair, change, &mut detail) {
                    Ok(()) => piece.bytes.append(&mut detail.into_bytes()),
                    Err(Full) => piece.withhold(Reason::TooLarge),
                }
            }
        }
        piece
    }

    /// How many bytes it takes, with its closing bracket and a comma.
    pub fn len(&self) -> usize {
        self.bytes.len() + 2
    }

    pub fn withheld(&self) -> Option<Reason> {
        self.withheld
    }

    /// Whether taking the detail away makes room.
    pub fn can_shrink(&self) -> bool {
        self.withheld.is_none() && self.bytes.len() > self.head + WITHHELD_BYTES_MAX
    }

    /// Puts the reason in place of the detail.
    pub fn withhold(&mut self, reason: Reason) {
        self.bytes.truncate(self.head);
        self.bytes.extend_from_slice(b",\"detail\":");
        let detail = Withheld {
            status: "withheld",
            reason,
        };
        serde_json::to_writer(&mut self.bytes, &detail).expect("writing to memory cannot fail");
        self.bytes.shrink_to_fit();
        self.withheld = Some(reason);
    }

    pub fn write(&self, out: &mut Buffer) -> Result<(), Full> {
        out.comma()?;
        out.bytes(&self.bytes)?;
        out.raw("}")
    }
}

/// Writes a resource down.
pub(crate) fn resource(
    resource: &ResourceChange<'_>,
    pair: &Result<Pair<'_>, Reason>,
    needles: &Needles,
    bytes_max: usize,
) -> Piece {
    // The names are bounded one by one, so they always fit.
    let mut out = Buffer::new(usize::MAX);
    resource_head(resource, needles, &mut out).expect("a buffer without a limit is never full");
    Piece::new(out, pair, &resource.change, bytes_max)
}

/// Writes an output down.
pub(crate) fn output(
    name: &str,
    change: &Change<'_>,
    pair: &Result<Pair<'_>, Reason>,
    needles: &Needles,
    bytes_max: usize,
) -> Piece {
    let mut out = Buffer::new(usize::MAX);
    output_head(name, change.action, needles, &mut out)
        .expect("a buffer without a limit is never full");
    Piece::new(out, pair, change, bytes_max)
}

fn resource_head(
    resource: &ResourceChange<'_>,
    needles: &Needles,
    out: &mut Buffer,
) -> Result<(), Full> {
    out.raw("{")?;
    let mut text = |name: &str, text: &str| {
        out.name(name)?;
        out.json(&shown(text, needles))
    };
    text("address", resource.address.as_deref().unwrap_or_default())?;
    if let Some(address) = resource.previous_address.as_deref()
        && resource.is_moved()
    {
        text("previous_address", address)?;
    }
    if let Some(deposed) = &resource.deposed {
        text("deposed", deposed)?;
    }
    text("type", &resource.kind)?;
    text("name", &resource.name)?;
    text("provider", &resource.provider)?;
    if let Some(reason) = &resource.action_reason
        && reason.len() <= ACTION_REASON_BYTES_MAX
    {
        text("action_reason", reason)?;
    }
    out.name("mode")?;
    out.json(resource.known_mode().unwrap_or("other"))?;
    out.name("action")?;
    out.json(shown_action(resource))?;
    out.name("imported")?;
    out.json(&resource.change.importing)
}

/// A resource that stays as it is appears because it was imported or moved.
fn shown_action(resource: &ResourceChange<'_>) -> &'static str {
    match resource.change.action {
        Action::NoOp | Action::Read if resource.change.importing => "import",
        Action::NoOp | Action::Read => "move",
        Action::Create => "create",
        Action::Update => "update",
        Action::Delete => "delete",
        Action::ReplaceDestroyFirst => "replace_destroy_first",
        Action::ReplaceCreateFirst => "replace_create_first",
        Action::Forget => "forget",
        Action::ReplaceForget => "replace_forget",
        Action::Other => "other",
    }
}

fn output_head(
    name: &str,
    action: Action,
    needles: &Needles,
    out: &mut Buffer,
) -> Result<(), Full> {
    out.raw("{")?;
    out.name("name")?;
    out.json(&shown(name, needles))?;
    out.name("action")?;
    out.json(match action {
        Action::Create => "create",
        Action::Update => "update",
        Action::Delete => "delete",
        _ => "other",
    })
}
