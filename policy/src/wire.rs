//! What goes to the limited process, and what comes back.
//!
//! To it: the length of the request in four bytes, the request as JSON, the policy input up to the
//! end of the pipe. Back: one line of JSON for each policy it begins with, then one reply.

use serde::{Deserialize, Serialize};

use crate::ErrorCode;

/// The first argument that turns this binary into the limited process.
pub(crate) const HELPER_ARGUMENT: &str = "__stackship-policy-helper";
/// The largest request.
pub(crate) const REQUEST_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The largest answer.
pub(crate) const REPLY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most bytes that the findings of an answer take; the rest of it is counts and progress.
pub(crate) const FINDINGS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Task {
    /// Load the policies and try them on an empty plan.
    Validate,
    /// Evaluate the policies on the input.
    Evaluate,
}

/// What is asked, with all it needs but the input.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    pub(crate) task: Task,
    /// How long all policies together may take, in milliseconds.
    pub(crate) evaluation_ms: u64,
    /// The data of each bundle.
    pub(crate) data: Vec<Option<String>>,
    /// The policies, the weightiest first.
    pub(crate) policies: Vec<Source>,
}

/// One policy.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    /// The position of its bundle in [`Request::data`].
    pub(crate) bundle: usize,
    /// The package that it must declare.
    pub(crate) package: String,
    pub(crate) file: String,
    pub(crate) text: String,
}

/// A line of the answer.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Reply {
    /// The policy that is about to be loaded and evaluated.
    Begins { policy: usize },
    /// Every policy loads. With braces, because serde lets a variant without any have unknown keys.
    Valid {},
    /// Every policy was evaluated.
    Evaluated {
        /// How many members each policy's sets have, in the order of the request.
        counts: Vec<Counts>,
        /// The first of them, bounded.
        findings: Vec<Member>,
    },
    /// It cannot be done.
    Failed {
        code: ErrorCode,
        policy: Option<usize>,
        detail: String,
    },
}

/// How many members a policy's sets have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counts {
    pub(crate) deny: u32,
    pub(crate) warn: u32,
}

/// Which set a member stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rule {
    Deny,
    Warn,
}

impl Rule {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Warn => "warn",
        }
    }
}

/// One member of a policy's `deny` or `warn`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Member {
    pub(crate) policy: usize,
    pub(crate) rule: Rule,
    pub(crate) rule_id: String,
    pub(crate) title: Option<String>,
    pub(crate) message: String,
    pub(crate) resource_address: Option<String>,
}
