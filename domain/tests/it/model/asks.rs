//! What the steps of the world ask of the two aggregates: a small name for each command, and the
//! command itself.

use stackship_domain::ids::{RunId, StateVersionId};
use stackship_domain::run::samples::{self, at, id};
use stackship_domain::run::{
    ApplyReport, Attempt, Command, Doubt, DoubtReason, Facts, LossReason, NewRun, PlanRecord,
    PolicyOutcome, Predecessor, Publication, RecoveryResolution, Run, RunKind, StagedState,
    Standing,
};
use stackship_domain::workspace::{self, StateHead, Workspace};
use stackship_domain::{Fence, Sha256Digest};

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
    Release {
        who: Who,
        fence: Fence,
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

fn state_id(who: Who) -> StateVersionId {
    id(match who {
        Who::First => 11,
        Who::Second => 12,
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
            Self::Grant { fence } => Command::GrantLock { fence },
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
            Self::Release { who, fence } => workspace::Command::ReleaseByRun {
                run: run_id(who),
                fence,
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

fn create(kind: RunKind, auto_apply: bool) -> Command {
    Command::Create(Box::new(NewRun {
        facts: Facts {
            kind,
            ..samples::facts()
        },
        auto_apply,
        destroy: false,
    }))
}

fn attempt(phase: Phase, lease: Lease) -> Attempt {
    let number = u32::from(lease.number);
    let phase = match phase {
        Phase::Plan => 10,
        Phase::Apply => 20,
    };
    Attempt {
        number,
        ..samples::attempt(phase + number)
    }
}

fn start(run: &Run, attempt: Attempt, phase: Phase) -> Command {
    match phase {
        Phase::Plan => Command::StartPlan { attempt },
        Phase::Apply => Command::StartApply {
            attempt,
            fence: fence_of(run).unwrap_or(Fence::NEVER),
            binding: match standing(run) {
                Some(Standing::Approved { approval, .. }) => approval.binding,
                _ => Sha256Digest::of(b"nothing is approved"),
            },
            at: at(90),
        },
    }
}

fn record_plan(lease: Lease, head: Option<&StateHead>) -> Command {
    let plan = format!("plan of {:?}", lease.who);
    let predecessor = head.map_or(Predecessor::None, |head| Predecessor::Version {
        id: head.version,
        serial: head.serial,
        digest: head.digest,
    });
    Command::RecordPlan {
        attempt: attempt(Phase::Plan, lease).id,
        plan: Box::new(PlanRecord {
            plan: Sha256Digest::of(plan.as_bytes()),
            predecessor,
            ..samples::plan()
        }),
    }
}

fn lose(run: &Run, phase: Phase, lease: Lease, staged: bool) -> Command {
    let attempt = attempt(phase, lease).id;
    let reason = LossReason::LeaseExpired;
    match phase {
        Phase::Plan => Command::LosePlan {
            attempt,
            reason,
            at: at(70),
        },
        Phase::Apply => Command::LoseApply {
            attempt,
            reason,
            emergency: staged_state(lease.who, run, staged),
        },
    }
}

/// What the workflow makes of an apply's report, once it has published what there was to publish.
fn judged(run: &Run, who: Who, report: Report, staged: bool) -> ApplyReport {
    let emergency = staged_state(who, run, staged);
    let detail = String::new();
    match (report, successor(who, run)) {
        (Report::NotStarted, _) => ApplyReport::NotStarted { part: None, detail },
        (Report::Failed, _) => ApplyReport::Failed { detail, emergency },
        (Report::Applied, Some((_, state))) => ApplyReport::Published {
            publication: publication(&state),
        },
        (Report::Planned | Report::HandedBack | Report::Applied | Report::Doubtful, _) => {
            ApplyReport::Doubt(Doubt {
                reason: DoubtReason::Interrupted,
                detail,
                emergency,
                errored_state_object: None,
            })
        }
    }
}

fn evaluate(run: &Run, outcome: PolicyOutcome) -> Command {
    match standing(run) {
        Some(Standing::PolicyChecking { .. }) => Command::RecordPolicy {
            result: samples::policy(outcome),
            approval_expires_at: at(3600),
        },
        _ => Command::StartPolicyCheck,
    }
}

fn override_policy() -> Command {
    Command::OverridePolicy {
        by: samples::reviewer(),
        result: samples::policy(PolicyOutcome::SoftFailed).digest,
        reason: "Agreed.".to_owned(),
        at: at(40),
        expires_at: at(1800),
        approval_expires_at: at(3600),
    }
}

fn binding(run: &Run, of_what_is_asked: bool) -> Sha256Digest {
    match standing(run) {
        Some(Standing::AwaitingApproval { evidence, .. }) if of_what_is_asked => evidence.binding(),
        _ => Sha256Digest::of(b"what another page showed"),
    }
}

fn resolve(resolution: RecoveryResolution) -> Command {
    Command::ResolveRecovery {
        by: samples::reviewer(),
        resolution,
        reason: "Checked.".to_owned(),
        at: at(200),
    }
}

fn adoption(who: Who, run: &Run) -> RecoveryResolution {
    let publication = match successor(who, run) {
        Some((_, state)) => publication(&state),
        None => samples::publication(),
    };
    RecoveryResolution::AdoptEmergencyState { publication }
}

/// What the plan was made against, and the state that this run's apply makes of it.
fn successor(who: Who, run: &Run) -> Option<(Predecessor, StateHead)> {
    let (Standing::Applying { evidence, .. }
    | Standing::ApplyCanceling { evidence, .. }
    | Standing::RecoveryRequired { evidence, .. }) = standing(run)?
    else {
        return None;
    };
    let serial = match &evidence.predecessor {
        Predecessor::None => 1,
        Predecessor::Version { serial, .. } => serial + 1,
    };
    let state = StateHead {
        version: state_id(who),
        serial,
        lineage: "lineage".to_owned(),
        digest: Sha256Digest::of(format!("state {serial} of {who:?}").as_bytes()),
    };
    Some((evidence.predecessor.clone(), state))
}

fn staged_state(who: Who, run: &Run, staged: bool) -> Option<StagedState> {
    let (_, state) = successor(who, run).filter(|_| staged)?;
    Some(StagedState {
        version: state.version,
        serial: state.serial,
        lineage: state.lineage,
        digest: state.digest,
    })
}

fn publication(state: &StateHead) -> Publication {
    Publication {
        version: state.version,
        serial: state.serial,
        digest: state.digest,
    }
}
