//! The commands with their contents: one valid value of each, different for the two runs where the
//! rules tell them apart.

use stackship_domain::ids::StateVersionId;
use stackship_domain::run::samples::{self, at, id};
use stackship_domain::run::{
    ApplyReport, Attempt, Command, Doubt, DoubtReason, Facts, LossReason, NewRun, PlanRecord,
    PolicyOutcome, Predecessor, Publication, RecoveryResolution, Run, RunKind, StagedState,
    Standing,
};
use stackship_domain::workspace::StateHead;
use stackship_domain::{Fence, Sha256Digest};

use super::{fence_of, standing};
use crate::model::world::{Lease, Phase, Report, Who};

pub(super) fn state_id(who: Who) -> StateVersionId {
    id(match who {
        Who::First => 11,
        Who::Second => 12,
    })
}

pub(super) fn create(kind: RunKind, auto_apply: bool) -> Command {
    Command::Create(Box::new(NewRun {
        facts: Facts {
            kind,
            ..samples::facts()
        },
        auto_apply,
        destroy: false,
    }))
}

pub(super) fn attempt(phase: Phase, lease: Lease) -> Attempt {
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

pub(super) fn start(run: &Run, attempt: Attempt, phase: Phase) -> Command {
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

pub(super) fn record_plan(lease: Lease, head: Option<&StateHead>) -> Command {
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

pub(super) fn lose(run: &Run, phase: Phase, lease: Lease, staged: bool) -> Command {
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
pub(super) fn judged(run: &Run, who: Who, report: Report, staged: bool) -> ApplyReport {
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

pub(super) fn evaluate(run: &Run, outcome: PolicyOutcome) -> Command {
    match standing(run) {
        Some(Standing::PolicyChecking { .. }) => Command::RecordPolicy {
            result: samples::policy(outcome),
            approval_expires_at: at(3600),
        },
        _ => Command::StartPolicyCheck,
    }
}

pub(super) fn override_policy() -> Command {
    Command::OverridePolicy {
        by: samples::reviewer(),
        result: samples::policy(PolicyOutcome::SoftFailed).digest,
        reason: "Agreed.".to_owned(),
        at: at(40),
        expires_at: at(1800),
        approval_expires_at: at(3600),
    }
}

pub(super) fn binding(run: &Run, of_what_is_asked: bool) -> Sha256Digest {
    match standing(run) {
        Some(Standing::AwaitingApproval { evidence, .. }) if of_what_is_asked => evidence.binding(),
        _ => Sha256Digest::of(b"what another page showed"),
    }
}

pub(super) fn resolve(resolution: RecoveryResolution) -> Command {
    Command::ResolveRecovery {
        by: samples::reviewer(),
        resolution,
        reason: "Checked.".to_owned(),
        at: at(200),
    }
}

pub(super) fn adoption(who: Who, run: &Run) -> RecoveryResolution {
    let publication = match successor(who, run) {
        Some((_, state)) => publication(&state),
        None => samples::publication(),
    };
    RecoveryResolution::AdoptEmergencyState { publication }
}

/// What the plan was made against, and the state that this run's apply makes of it.
pub(super) fn successor(who: Who, run: &Run) -> Option<(Predecessor, StateHead)> {
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

pub(super) fn staged_state(who: Who, run: &Run, staged: bool) -> Option<StagedState> {
    let (_, state) = successor(who, run).filter(|_| staged)?;
    Some(StagedState {
        version: state.version,
        serial: state.serial,
        lineage: state.lineage,
        digest: state.digest,
    })
}

pub(super) fn publication(state: &StateHead) -> Publication {
    Publication {
        version: state.version,
        serial: state.serial,
        digest: state.digest,
    }
}
