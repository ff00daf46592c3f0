//! What the steps of the world ask of the two aggregates: a small name for each command, and the
//! command itself.

mod commands;

use stackship_domain::Fence;
use stackship_domain::ids::{RunId, StateVersionId};
use stackship_domain::run::samples::{self, at, id};
use stackship_domain::run::{
    Command, Ending, PolicyOutcome, RecoveryResolution, Run, RunKind, Standing,
};
use stackship_domain::workspace::{self, StateHead, Workspace};

use self::commands::{
    adoption, attempt, binding, create, evaluate, judged, lose, override_policy, record_plan,
    resolve, start, state_id, successor,
};
use super::arena::Ref;
use super::world::{Lease, Phase, Report, Who};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunAsk {
    Create {
        kind: RunKind,
        auto_apply: bool,
    },
    Grant {
        fence: Fence,
    },
    Start {
        phase: Phase,
        lease: Lease,
    },
    /// A plan made against this workspace.
    RecordPlan {
        lease: Lease,
        against: Ref,
    },
    Lose {
        phase: Phase,
        lease: Lease,
        staged: bool,
    },
    HandBack {
        lease: Lease,
    },
    RecordApply {
        lease: Lease,
        report: Report,
        staged: bool,
    },
    Evaluate {
        outcome: PolicyOutcome,
    },
    Override,
    Approve {
        of_what_is_asked: bool,
    },
    Discard,
    Cancel,
    Lapse,
    Supersede,
    Adopt {
        who: Who,
    },
    DeclareNoChange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkspaceAsk {
    Enqueue {
        who: Who,
    },
    Dequeue {
        who: Who,
    },
    Acquire {
        who: Who,
    },
    /// By whoever read the run like this.
    Release {
        who: Who,
        fence: Fence,
        as_read: Ref,
    },
    /// By whoever read the run like this.
    Publish {
        who: Who,
        as_read: Ref,
    },
}

pub fn run_id(who: Who) -> RunId {
    id(match who {
        Who::First => 1,
        Who::Second => 2,
    })
}

pub fn whose_state(version: StateVersionId) -> Who {
    if version == state_id(Who::First) {
        Who::First
    } else {
        Who::Second
    }
}

pub fn standing(run: &Run) -> Option<&Standing> {
    match run {
        Run::Unborn => None,
        Run::Born { standing, .. } => Some(standing),
    }
}

/// The state that the run's failed apply left.
pub fn left_behind(run: &Run) -> Option<StateHead> {
    match standing(run)? {
        Standing::Ended(Ending::Failed { emergency, .. }) => emergency.as_ref().map(Into::into),
        _ => None,
    }
}

/// The fence that the run knows.
pub fn fence_of(run: &Run) -> Option<Fence> {
    match run {
        Run::Unborn => None,
        Run::Born { hold, .. } => hold.fence(),
    }
}

impl RunAsk {
    pub fn command(self, run: &Run, against: Option<&Workspace>) -> Command {
        let person = samples::reviewer();
        let (reason, now) = (None, at(70));
        match self {
            Self::Create { kind, auto_apply } => create(kind, auto_apply),
            Self::Grant { fence } => Command::GrantLock {
                fence,
                warnings: Vec::new(),
            },
            Self::Start { phase, lease } => start(run, attempt(phase, lease), phase),
            Self::RecordPlan { lease, .. } => {
                record_plan(lease, against.and_then(|ws| ws.head.as_ref()))
            }
            Self::Lose {
                phase,
                lease,
                staged,
            } => lose(run, phase, lease, staged),
            Self::HandBack { lease } => Command::HandBackApply {
                attempt: attempt(Phase::Apply, lease).id,
                at: now,
            },
            Self::RecordApply {
                lease,
                report,
                staged,
            } => Command::RecordApply {
                attempt: attempt(Phase::Apply, lease).id,
                fence: fence_of(run).unwrap_or(Fence::NEVER),
                report: Box::new(judged(run, lease.who, report, staged)),
                at: now,
            },
            Self::Evaluate { outcome } => evaluate(run, outcome),
            Self::Override => override_policy(),
            Self::Approve { of_what_is_asked } => Command::Approve {
                by: person,
                binding: binding(run, of_what_is_asked),
                at: at(60),
            },
            Self::Discard => Command::Discard {
                by: person,
                reason,
                at: now,
            },
            Self::Cancel => Command::Cancel {
                by: person,
                reason,
                at: now,
            },
            Self::Lapse => Command::Expire { at: at(100_000) },
            Self::Supersede => Command::Supersede {
                by: id(99),
                at: now,
            },
            Self::Adopt { who } => resolve(adoption(who, run)),
            Self::DeclareNoChange => resolve(RecoveryResolution::DeclareNoChange),
        }
    }
}

impl WorkspaceAsk {
    /// `None` when whoever read the run has nothing to publish.
    pub fn command(self, as_read: Option<&Run>) -> Option<workspace::Command> {
        Some(match self {
            Self::Enqueue { who } => workspace::Command::Enqueue { run: run_id(who) },
            Self::Dequeue { who } => workspace::Command::Dequeue { run: run_id(who) },
            Self::Acquire { who } => workspace::Command::AcquireForRun { run: run_id(who) },
            Self::Release { who, fence, .. } => workspace::Command::ReleaseByRun {
                run: run_id(who),
                fence,
                left_behind: left_behind(as_read?),
            },
            Self::Publish { who, .. } => {
                let run = as_read?;
                let (predecessor, state) = successor(who, run)?;
                workspace::Command::PublishState {
                    run: run_id(who),
                    fence: fence_of(run)?,
                    predecessor,
                    state,
                }
            }
        })
    }
}
