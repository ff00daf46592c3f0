//! One line of a policy result.

use serde::{Deserialize, Serialize};
use stackship_domain::Sha256Digest;

use crate::bundle::is_policy_id;
use crate::{ErrorCode, Level, text};

/// The most findings of a result.
pub const FINDINGS_MAX: usize = 1_000;
/// The longest rule id.
pub const RULE_ID_CHARS_MAX: usize = 64;
/// The longest title.
pub const TITLE_CHARS_MAX: usize = 200;
/// The longest message.
pub const MESSAGE_CHARS_MAX: usize = 2_000;
/// The longest resource address.
pub const RESOURCE_ADDRESS_CHARS_MAX: usize = 1_024;

/// The policy id of the finding that says why policies could not be evaluated, when no policy is to
/// blame. No policy can have it: a policy id has no hyphen.
pub(crate) const NO_POLICY: &str = "policy-evaluation";

/// One line of a policy result, as plain text. It may quote the policy input, which is redacted.
/// A result's findings are sorted in the order of these fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The policy it is about.
    pub policy_id: String,
    /// The rule of that policy: `deny` or `warn` when the policy gives none.
    pub rule_id: String,
    /// The resource it is about, if it is about one.
    pub resource_address: Option<String>,
    /// What was found.
    pub message: String,
    /// A short name for it.
    pub title: String,
    /// How much it weighs; a member of `warn` is always advisory.
    pub level: Level,
    /// The bundle of the policy; two bundles may use the same policy id.
    pub bundle: Option<Sha256Digest>,
}

impl Finding {
    /// The one finding of an evaluation that was none, and the policy to blame, if one is.
    pub(crate) fn of_an_error(
        code: ErrorCode,
        detail: &str,
        blamed: Option<(Sha256Digest, &str)>,
    ) -> Self {
        let title = "The policies could not be evaluated";
        let message = text::plain(detail, MESSAGE_CHARS_MAX);
        Self {
            policy_id: blamed.map_or(NO_POLICY, |(_, policy)| policy).to_owned(),
            rule_id: code.as_str().to_owned(),
            resource_address: None,
            message: if message.is_empty() {
                title.to_owned()
            } else {
                message
            },
            title: title.to_owned(),
            level: Level::HardMandatory,
            bundle: blamed.map(|(bundle, _)| bundle),
        }
    }

    /// Whether every part keeps its bound and its alphabet.
    pub(crate) fn is_well_formed(&self) -> bool {
        let named = |id: &str| is_policy_id(id) || id == NO_POLICY;
        let line = |line: &str, chars_max| !line.is_empty() && text::is_plain(line, chars_max);
        named(&self.policy_id)
            && is_rule_id(&self.rule_id)
            && line(&self.title, TITLE_CHARS_MAX)
            && line(&self.message, MESSAGE_CHARS_MAX)
            && self
                .resource_address
                .as_deref()
                .is_none_or(|address| line(address, RESOURCE_ADDRESS_CHARS_MAX))
    }
}

/// Whether `id` can name a rule.
pub(crate) fn is_rule_id(id: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=RULE_ID_CHARS_MAX).contains(&id.len()) && id.bytes().all(allowed)
}
