//! From a plan's JSON to what may be shown of it.

use std::fmt;
use std::io::{Read, Write};

use serde::{Deserialize, Serialize};
use stackship_domain::run::Counts;

use crate::change::{Change, ResourceChange, Values};
use crate::diff::{self, Diff, List};
use crate::document::Document;
use crate::policy::PolicyInput;
use crate::redact::{Pair, Plain};
use crate::secrets::{Needles, Secrets, collect};
use crate::{InspectError, Limits, Reason, action};

/// What there is to know about a plan, in the form that may leave its sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four facts, each of which may hold without the others"
)]
pub struct Summary {
    /// What the plan would do. An action that is not known counts as a change and as a destruction.
    pub counts: Counts,
    /// OpenTofu failed while planning: the plan is partial and must not be approved.
    pub errored: bool,
    /// OpenTofu left nothing for a later plan.
    pub complete: bool,
    /// The plan-diff does not list everything.
    pub truncated: bool,
    /// How many resources and outputs have no detail because redaction was not certain. Policies see
    /// nothing of them either.
    pub doubtful: usize,
    /// Whether there is a policy input. Without one no policy may pass.
    pub has_policy_input: bool,
}

/// Both documents.
pub struct Inspection {
    /// The plan-diff, as JSON.
    pub diff: Vec<u8>,
    /// The plan's part of the policy input, as JSON. `None` when it is longer than the limit: it is
    /// never cut, since a rule that does not find something does not fail.
    pub policy_input: Option<Vec<u8>>,
    /// What else there is to know.
    pub summary: Summary,
}

impl fmt::Debug for Inspection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Inspection")
            .field("summary", &self.summary)
            .finish_non_exhaustive()
    }
}

/// Inspects a plan and writes both documents. Nothing is written to `policy_input` when
/// [`Summary::has_policy_input`] is false.
pub fn run(
    json: impl Read,
    secrets: &[impl AsRef<str>],
    mut diff: impl Write,
    mut policy_input: impl Write,
) -> Result<Summary, InspectError> {
    let inspection = inspect(json, secrets, &Limits::default())?;
    diff.write_all(&inspection.diff)?;
    diff.flush()?;
    if let Some(bytes) = &inspection.policy_input {
        policy_input.write_all(bytes)?;
        policy_input.flush()?;
    }
    Ok(inspection.summary)
}

/// Inspects a plan. `secrets` are sensitive values that the caller knows of, whether the plan says so
/// or not.
pub fn inspect(
    json: impl Read,
    secrets: &[impl AsRef<str>],
    limits: &Limits,
) -> Result<Inspection, InspectError> {
    let bytes = read(json, limits.json_bytes)?;
    let text = std::str::from_utf8(&bytes).map_err(|error| InspectError::NotUtf8 {
        offset: error.valid_up_to(),
    })?;
    let document = Document::read(text)?;
    let mut found = Secrets::new(limits.secrets);
    for secret in secrets {
        found.add(secret.as_ref());
    }
    collect(&document, &mut found)?;
    let needles = Needles::new(found);
    let mut views = Views {
        document: &document,
        needles: &needles,
        diff: Diff::new(limits),
        policy: PolicyInput::new(limits.policy_input_bytes, &needles),
        counts: Counts::default(),
        doubtful: 0,
    };
    views.fill()?;
    views.finish()
}

fn read(json: impl Read, limit: u64) -> Result<Vec<u8>, InspectError> {
    let mut bytes = Vec::new();
    json.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= limit) {
        Ok(bytes)
    } else {
        Err(InspectError::TooLong { limit })
    }
}

/// Both documents in the making.
struct Views<'d> {
    document: &'d Document<'d>,
    needles: &'d Needles,
    diff: Diff,
    policy: PolicyInput<'d>,
    counts: Counts,
    doubtful: usize,
}

impl Views<'_> {
    fn fill(&mut self) -> Result<(), InspectError> {
        self.policy.begin(self.document);
        for text in &self.document.resource_changes {
            self.resource(&ResourceChange::read(text)?)?;
        }
        self.policy.end_resources();
        for (name, text) in &self.document.output_changes {
            self.output(name, &Change::read(text)?);
        }
        Ok(())
    }

    fn finish(self) -> Result<Inspection, InspectError> {
        let diff = self.diff.finish(self.document, self.counts, self.needles);
        let policy_input = self.policy.finish(self.document)?;
        Ok(Inspection {
            summary: Summary {
                counts: self.counts,
                errored: self.document.errored,
                complete: !self.document.is_partial(),
                truncated: diff.truncated,
                doubtful: self.doubtful,
                has_policy_input: policy_input.is_some(),
            },
            diff: diff.bytes,
            policy_input,
        })
    }

    fn resource(&mut self, resource: &ResourceChange<'_>) -> Result<(), InspectError> {
        if resource.address.is_none() {
            return Err(InspectError::Missing { name: "address" });
        }
        action::count(resource, &mut self.counts);
        let is_listed = resource.is_shown() && self.diff.takes(List::Resources);
        let values = resource.change.values();
        let pair = match resource.known_mode() {
            None => Err(Reason::UnknownMode),
            Some(_) => self.pair(&resource.change, &values, Plain::Refused),
        };
        self.doubtful += usize::from(pair.is_err());
        self.policy.resource(resource, &pair);
        if is_listed {
            let bytes_max = self.diff.detail_bytes_max();
            let piece = diff::resource(resource, &pair, self.needles, bytes_max);
            self.diff.push(List::Resources, piece);
        }
        Ok(())
    }

    fn output(&mut self, name: &str, output: &Change<'_>) {
        let is_changed = output.action != action::Action::NoOp;
        self.counts.output = self.counts.output.saturating_add(u32::from(is_changed));
        let is_listed = is_changed && self.diff.takes(List::Outputs);
        let values = output.values();
        let pair = self.pair(output, &values, Plain::Allowed);
        self.doubtful += usize::from(pair.is_err());
        self.policy.output(name, output, &pair);
        if is_listed {
            let bytes_max = self.diff.detail_bytes_max();
            let piece = diff::output(name, output, &pair, self.needles, bytes_max);
            self.diff.push(List::Outputs, piece);
        }
    }

    /// The values of a change after both passes, or why nothing of them is shown.
    fn pair<'v>(
        &self,
        change: &Change<'_>,
        values: &'v Result<Values<'v>, Reason>,
        plain: Plain,
    ) -> Result<Pair<'v>, Reason> {
        if self.document.is_partial() {
            return Err(Reason::PlanIncomplete);
        }
        if !self.needles.is_complete() {
            return Err(Reason::SecretsIncomplete);
        }
        if change.action == action::Action::Other {
            return Err(Reason::UnknownAction);
        }
        let values = values.as_ref().map_err(|reason| *reason)?;
        Pair::redact(values, change.action, plain, self.needles)
    }
}
