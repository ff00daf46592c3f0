//! What whoever reads a run must know about its workspace, as it was when the run got the lock.

use serde::{Deserialize, Serialize};

use crate::ids::{RunId, StateVersionId};
use crate::workspace::LeftBehind;

/// One thing to know before a plan is approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Warning {
    /// An earlier apply failed, and the state it left was not adopted: whatever it created is unknown
    /// to this run's plan.
    EmergencyStateNotAdopted {
        /// The run whose apply failed.
        run: RunId,
        /// The state that it left.
        state: StateVersionId,
        /// Its serial.
        serial: i64,
    },
}

impl Warning {
    /// Every code.
    pub const CODES: &'static [&'static str] = &["emergency_state_not_adopted"];

    /// The code on the wire.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::EmergencyStateNotAdopted { .. } => "emergency_state_not_adopted",
        }
    }

    /// What is the matter and what to do, for a person.
    pub fn sentence(&self) -> String {
        match self {
            Self::EmergencyStateNotAdopted { run, serial, .. } => format!(
                "The apply of {run} failed, and the state it left (serial {serial}) was never adopted: what it \
                 created is not in the workspace's state, and this plan may create it again. Before approving, \
                 have an owner fetch that state (POST /v1/runs/{run}/emergency-state), and bring its resources in \
                 with import blocks or remove them."
            ),
        }
    }
}

impl From<&LeftBehind> for Warning {
    fn from(left: &LeftBehind) -> Self {
        Self::EmergencyStateNotAdopted {
            run: left.run,
            state: left.state.version,
            serial: left.state.serial,
        }
    }
}
