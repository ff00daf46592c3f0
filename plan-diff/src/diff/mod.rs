//! The document `stackship.plan-diff/v1`: what a person reads before approving.

mod attributes;
mod budget;
mod piece;

pub(crate) use budget::List;
pub(crate) use piece::{Piece, output, resource};

use serde::Serialize;
use stackship_domain::run::Counts;

use crate::Limits;
use crate::buffer::{Buffer, Full};
use crate::document::Document;
use crate::secrets::Needles;
use budget::Budget;

/// The name of the format.
pub const DIFF_SCHEMA: &str = "stackship.plan-diff/v1";
/// Room for everything but resources and outputs.
const ENVELOPE_BYTES_MAX: usize = 1_024;
/// Longer ones are no version.
const VERSION_BYTES_MAX: usize = 64;

/// A document in the making.
pub(crate) struct Diff {
    budget: Budget,
    resources_max: usize,
    outputs_max: usize,
    omitted: Omitted,
}

#[derive(Serialize, Default, Clone, Copy)]
struct Omitted {
    /// Resources that are not listed.
    resources: usize,
    /// Outputs that are not listed.
    outputs: usize,
    /// Entries that are listed without detail, for want of room.
    details: usize,
}

#[derive(Serialize)]
struct Envelope<'a> {
    schema: &'static str,
    format_version: &'a str,
    tofu_version: Option<&'a str>,
    errored: bool,
    complete: bool,
    counts: Counts,
    truncated: bool,
    omitted: Omitted,
}

/// A finished document.
pub(crate) struct Finished {
    pub bytes: Vec<u8>,
    pub truncated: bool,
}

impl Diff {
    pub fn new(limits: &Limits) -> Self {
        Self {
            budget: Budget::new(limits.diff_bytes.saturating_sub(ENVELOPE_BYTES_MAX)),
            resources_max: limits.resources,
            outputs_max: limits.outputs,
            omitted: Omitted::default(),
        }
    }

    /// Whether a further entry is listed. Asked before anything of the entry is redacted.
    pub fn takes(&mut self, list: List) -> bool {
        let (limit, omitted) = match list {
            List::Resources => (self.resources_max, &mut self.omitted.resources),
            List::Outputs => (self.outputs_max, &mut self.omitted.outputs),
        };
        let is_taken = self.budget.len(list) < limit;
        *omitted += usize::from(!is_taken);
        is_taken
    }

    /// How large a single detail may become before it is certain not to fit.
    pub fn detail_bytes_max(&self) -> usize {
        self.budget.limit()
    }

    pub fn push(&mut self, list: List, piece: Piece) {
        self.budget.push(list, piece);
    }

    pub fn finish(
        mut self,
        document: &Document<'_>,
        counts: Counts,
        needles: &Needles,
    ) -> Finished {
        self.omitted.resources += self.budget.drop_trailing(List::Resources);
        self.omitted.outputs += self.budget.drop_trailing(List::Outputs);
        self.omitted.details = self.budget.withheld();
        let omitted = self.omitted;
        let version = document.tofu_version.as_deref();
        let envelope = Envelope {
            schema: DIFF_SCHEMA,
            format_version: &document.format_version,
            tofu_version: version.filter(|text| is_version(text) && !needles.is_in(text)),
            errored: document.errored,
            complete: !document.is_partial(),
            counts,
            truncated: omitted.resources + omitted.outputs + omitted.details > 0,
            omitted,
        };
        let mut out = Buffer::new(usize::MAX);
        self.write(&envelope, &mut out)
            .expect("a buffer without a limit is never full");
        Finished {
            bytes: out.into_bytes(),
            truncated: envelope.truncated,
        }
    }

    fn write(&self, envelope: &Envelope<'_>, out: &mut Buffer) -> Result<(), Full> {
        out.json(envelope)?;
        // The lists go in before the closing bracket.
        out.truncate(out.len() - 1);
        for (name, list) in [("resources", List::Resources), ("outputs", List::Outputs)] {
            out.name(name)?;
            self.budget.write(list, out)?;
        }
        out.raw("}\n")
    }
}

/// A version as OpenTofu writes it, and nothing that could be anything else.
pub(crate) fn is_version(text: &str) -> bool {
    (1..=VERSION_BYTES_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-+".contains(&byte))
}
