//! One thing wrong at a time.

use stackship_domain::run::{
    Command, Event, Hold, Refusal, Run, RunKind, Standing, Status, TerminalReason,
};
use stackship_domain::workspace::{self, Workspace};

use super::rules::Rules;

type Decision = Result<Vec<Event>, Refusal>;

/// The binding that a person presents is not compared.
#[derive(Debug)]
pub struct ApprovalOfAnything;

impl Rules for ApprovalOfAnything {
    fn run(run: &Run, command: Command) -> Decision {
        match (run.status(), command) {
            (Some(Status::AwaitingApproval), Command::Approve { by, binding, at }) => {
                Ok(vec![Event::RunApproved { by, binding, at }])
            }
            (_, command) => run.decide(command),
        }
    }
}

/// An apply whose runner was lost is called failed.
#[derive(Debug)]
pub struct LossIsFailure;

impl Rules for LossIsFailure {
    fn run(run: &Run, command: Command) -> Decision {
        match command {
            Command::LoseApply { emergency, .. } => Ok(vec![Event::ApplyFailed {
                reason: TerminalReason::ApplyFailed,
                detail: String::new(),
                emergency,
            }]),
            command => run.decide(command),
        }
    }
}

/// A cancel is taken whenever it comes.
#[derive(Debug)]
pub struct CancelAfterTheEnd;

impl Rules for CancelAfterTheEnd {
    fn run(run: &Run, command: Command) -> Decision {
        match (run.status(), command) {
            (Some(Status::Applied), Command::Cancel { by, reason, at }) => {
                Ok(vec![Event::RunCanceled { by, reason, at }])
            }
            (_, command) => run.decide(command),
        }
    }
}

/// What a creator asks for is written down unseen.
#[derive(Debug)]
pub struct AutomaticApply;

impl Rules for AutomaticApply {
    fn run(run: &Run, command: Command) -> Decision {
        match command {
            Command::Create(new) => Ok(vec![Event::RunQueued {
                facts: new.facts,
                auto_apply: new.auto_apply,
            }]),
            command => run.decide(command),
        }
    }
}

/// Nobody looks at the kind of a run once policy has passed.
#[derive(Debug)]
pub struct SpeculativeApplies;

impl Rules for SpeculativeApplies {
    fn run(run: &Run, command: Command) -> Decision {
        let mut blind = run.clone();
        if let Run::Born {
            facts,
            hold,
            standing,
        } = &mut blind
            && *hold == Hold::NotNeeded
            && !matches!(**standing, Standing::Queued { .. })
        {
            facts.kind = RunKind::PlanAndApply;
        }
        blind.decide(command)
    }
}

/// The workflow gives the lock away while nobody knows what the apply did.
#[derive(Debug)]
pub struct ReleaseInDoubt;

impl Rules for ReleaseInDoubt {
    const RELEASED_AT_THE_END: bool = false;
}

/// A lock is given back without a word about what the apply left.
#[derive(Debug)]
pub struct LeftUnsaid;

impl Rules for LeftUnsaid {
    fn workspace(
        workspace: &Workspace,
        command: workspace::Command,
    ) -> Result<Vec<workspace::Event>, workspace::Refusal> {
        match command {
            workspace::Command::ReleaseByRun { run, fence, .. } => {
                workspace.decide(workspace::Command::ReleaseByRun {
                    run,
                    fence,
                    left_behind: None,
                })
            }
            command => workspace.decide(command),
        }
    }
}

/// A lease may run out after its report was taken.
#[derive(Debug)]
pub struct LostAfterReport;

impl Rules for LostAfterReport {
    const CLOSED_ONCE: bool = false;
}

/// A runner gets its lease before the run has taken the attempt.
#[derive(Debug)]
pub struct ToldTooEarly;

impl Rules for ToldTooEarly {
    const TOLD_AFTER_START: bool = false;
}

/// A runner hands back an apply that it has begun.
#[derive(Debug)]
pub struct HandedBackTooLate;

impl Rules for HandedBackTooLate {
    const HANDED_BACK_UNSTARTED: bool = false;
}

/// A careless store, and a workspace that takes a state under any fence.
#[derive(Debug)]
pub struct CarelessWithoutFence;

impl Rules for CarelessWithoutFence {
    const CLOSED_ONCE: bool = false;

    fn workspace(
        workspace: &Workspace,
        command: workspace::Command,
    ) -> Result<Vec<workspace::Event>, workspace::Refusal> {
        match command {
            workspace::Command::PublishState {
                run, fence, state, ..
            } if workspace.head.as_ref() != Some(&state) => {
                Ok(vec![workspace::Event::StatePublished { run, fence, state }])
            }
            command => workspace.decide(command),
        }
    }
}
