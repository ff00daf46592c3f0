//! The run: one attempt to evaluate an immutable configuration and input snapshot.
//!
//! [`Run::decide`] answers a command with events or a [`Refusal`]; [`Run::evolve`] takes an event
//! that has happened and cannot refuse it. A [`Standing`] carries exactly what is known by then.

mod command;
mod decide;
mod event;
mod evidence;
mod evolve;
mod facts;
mod policy_pins;
mod record;
mod refusal;
#[doc(hidden)]
pub mod samples;
mod standing;
mod status;
mod warning;

pub use command::Command;
pub use event::Event;
pub use evidence::{Evidence, EvidencePart, Predecessor};
pub use facts::{Facts, Hold, NewRun, Pins, RunKind, Source, SourceKind};
pub use policy_pins::{PinnedPolicySet, PolicyPins, WrongPolicyDigest, policy_set_digest};
pub use record::{
    ApplyReport, Approval, Attempt, Counts, DenyingPolicies, Doubt, DoubtReason, LossReason, Phase,
    PlanChanges, PlanFailure, PlanRecord, PolicyErrorCode, PolicyOutcome, PolicyResult,
    Publication, RecoveryResolution, StagedState,
};
pub use refusal::Refusal;
pub use standing::{Ending, Standing};
pub use status::{Status, TerminalReason};
pub use warning::Warning;

/// The most attempts a plan gets when its runners are lost; an apply gets one.
pub const PLAN_ATTEMPTS_MAX: u32 = 3;
/// The longest time a soft-mandatory override may hold, in seconds (S-REV-18).
pub const OVERRIDE_SECONDS_MAX: i64 = 24 * 60 * 60;

/// A run, as its events tell it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Run {
    /// Nothing has happened yet.
    #[default]
    Unborn,
    /// The run was created.
    Born {
        /// What never changes.
        facts: Box<Facts>,
        /// Whether the run has its workspace's lock.
        hold: Hold,
        /// Where it stands, with what is known by then.
        standing: Box<Standing>,
    },
}

impl Run {
    /// Where the run stands; `None` before it was created.
    pub fn status(&self) -> Option<Status> {
        match self {
            Self::Unborn => None,
            Self::Born { standing, .. } => Some(standing.status()),
        }
    }

    /// What never changes about the run; `None` before it was created.
    pub fn facts(&self) -> Option<&Facts> {
        match self {
            Self::Unborn => None,
            Self::Born { facts, .. } => Some(facts),
        }
    }

    /// When [`Command::Expire`] would end the run; `None` while nothing can lapse.
    pub fn expires_at(&self) -> Option<crate::Timestamp> {
        match self {
            Self::Unborn => None,
            Self::Born { standing, .. } => standing.expires_at(),
        }
    }

    /// Rebuilds a run from its events.
    pub fn replay<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut run = Self::default();
        for event in events {
            run.evolve(event);
        }
        run
    }
}
