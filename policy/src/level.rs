//! How much a policy's failure weighs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much a policy's failure weighs. It comes from the manifest, never from the policy's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Recorded, and nothing else.
    Advisory,
    /// Blocks until somebody overrides it for a limited time.
    SoftMandatory,
    /// Blocks, and nobody can override it.
    HardMandatory,
}

impl Level {
    /// The name on every wire and in every record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Advisory => "advisory",
            Self::SoftMandatory => "soft_mandatory",
            Self::HardMandatory => "hard_mandatory",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
