//! Why policies could not be evaluated.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why policies could not be evaluated. Each is non-passing and none can be overridden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// It took longer than allowed.
    PolicyTimeout,
    /// The limited process did not end by itself: out of memory, out of stack, out of processor time.
    PolicyCrashed,
    /// A policy is wrong, or what came back is not a result.
    PolicyError,
}

impl ErrorCode {
    /// The name on every wire and in every record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PolicyTimeout => "policy_timeout",
            Self::PolicyCrashed => "policy_crashed",
            Self::PolicyError => "policy_error",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
