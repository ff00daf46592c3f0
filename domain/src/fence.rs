//! The number that only grows and makes late writers harmless.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How many times a workspace's lock has been acquired. A write that presents an older fence than
/// the workspace's is refused (S-STA-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(i64);

impl Fence {
    /// The fence of a workspace whose lock was never acquired; no holder ever has it.
    pub const NEVER: Self = Self(0);

    /// A fence as it was stored.
    pub const fn from_stored(number: i64) -> Self {
        Self(number)
    }

    /// The fence of the next acquisition.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The number to store.
    pub const fn number(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}
