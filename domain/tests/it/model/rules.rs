//! The rules under exploration, and what the world around them promises.

use std::fmt::Debug;

use stackship_domain::run::{self, Run};
use stackship_domain::workspace::{self, Workspace};

pub trait Rules: Debug + Send + Sync + 'static {
    /// The store closes an attempt once: what was reported is not lost afterwards.
    const CLOSED_ONCE: bool = true;
    /// A runner hears of its lease only after its run took the attempt.
    const TOLD_AFTER_START: bool = true;
    /// An attempt is handed back only while the store has not let `tofu apply` begin.
    const HANDED_BACK_UNSTARTED: bool = true;
    /// The workflow releases the lock of a run that ended, and of no other.
    const RELEASED_AT_THE_END: bool = true;

    fn run(run: &Run, command: run::Command) -> Result<Vec<run::Event>, run::Refusal> {
        run.decide(command)
    }

    fn workspace(
        workspace: &Workspace,
        command: workspace::Command,
    ) -> Result<Vec<workspace::Event>, workspace::Refusal> {
        workspace.decide(command)
    }
}

/// Everything as it is meant to be.
#[derive(Debug)]
pub struct AsDesigned;

impl Rules for AsDesigned {}
