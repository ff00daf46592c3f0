//! One of every event.

use super::{
    adopted, at, attempt, doubt, evidence, failure, fence, id, judged_facts, plan, policy,
    publication, reviewer, staged, warning,
};
use crate::ids::RunId;
use crate::run::{Event, LossReason, PolicyOutcome, RecoveryResolution, TerminalReason};

/// Every event there is.
pub fn one_event_of_each() -> Vec<Event> {
    [of_the_plan(), of_the_review(), of_the_apply(), of_an_end()].concat()
}

fn of_the_plan() -> Vec<Event> {
    vec![
        Event::RunQueued {
            facts: judged_facts(),
            auto_apply: false,
        },
        Event::LockGranted {
            fence: fence(),
            warnings: Vec::new(),
        },
        Event::PlanStarted {
            attempt: attempt(1),
        },
        Event::PlanAttemptLost {
            attempt: attempt(1).id,
            reason: LossReason::LeaseExpired,
        },
        Event::PlanRecorded { plan: plan() },
        Event::PlanFailed { failure: failure() },
        Event::PlanCredentialsMissing {
            detail: "No profile.".to_owned(),
        },
    ]
}

fn of_the_review() -> Vec<Event> {
    let by = reviewer();
    vec![
        Event::PolicyCheckStarted,
        Event::PolicyEvaluated {
            result: policy(PolicyOutcome::Pass),
            approval_expires_at: at(3600),
        },
        Event::PolicyOverridden {
            by,
            result: policy(PolicyOutcome::SoftFailed).digest,
            reason: "Agreed in review.".to_owned(),
            expires_at: at(3640),
        },
        Event::ApprovalRequested {
            binding: evidence().binding(),
            evidence: evidence(),
            expires_at: at(3600),
        },
        Event::RunApproved {
            by,
            binding: evidence().binding(),
            at: at(60),
        },
        Event::RunDiscarded {
            by,
            reason: Some("Not today.".to_owned()),
            at: at(60),
        },
        Event::ApprovalExpired { at: at(3600) },
        Event::PolicyOverrideExpired { at: at(3640) },
    ]
}

fn of_the_apply() -> Vec<Event> {
    let by = reviewer();
    vec![
        Event::ApplyStarted {
            attempt: attempt(1),
            fence: fence(),
            binding: evidence().binding(),
        },
        Event::ApplyHandedBack {
            attempt: attempt(1).id,
        },
        Event::ApplySucceeded {
            publication: publication(),
        },
        Event::ApplyFailed {
            reason: TerminalReason::ApplyFailed,
            detail: "tofu apply ended with exit code 1.".to_owned(),
            emergency: Some(staged()),
        },
        Event::RecoveryRequired { doubt: doubt() },
        Event::RecoveryResolved {
            by,
            resolution: RecoveryResolution::AdoptEmergencyState {
                publication: adopted(),
            },
            reason: "Checked by hand.".to_owned(),
            at: at(200),
        },
    ]
}

fn of_an_end() -> Vec<Event> {
    let by = reviewer();
    vec![
        Event::CancelRequested {
            by,
            reason: None,
            at: at(50),
        },
        Event::RunCanceled {
            by,
            reason: None,
            at: at(50),
        },
        Event::RunSuperseded {
            by: id::<RunId>(99),
            at: at(50),
        },
        Event::RunFinishedWithoutChanges,
        Event::SpeculativeRunFinished,
        Event::RunFailed {
            reason: TerminalReason::PolicyDenied,
            detail: "Denied.".to_owned(),
        },
    ]
}

/// Events with the parts that only some of them have, each with a name for its golden file.
pub fn events_with_more() -> Vec<(&'static str, Event)> {
    vec![(
        "lock_granted_with_a_warning",
        Event::LockGranted {
            fence: fence(),
            warnings: vec![warning()],
        },
    )]
}
