//! A run in every standing.

use super::{
    adopted, approval, at, attempt, doubt, evidence, facts, plan, policy, publication, reviewer,
    run, run_with, speculative_facts, staged,
};
use crate::run::{
    Attempt, Ending, Hold, PlanChanges, PlanRecord, PolicyOutcome, RecoveryResolution, Run,
    Standing, TerminalReason,
};

type Named = (&'static str, Run);

/// A run in every standing there is, each with a name for the reviewed table.
pub fn one_run_of_each() -> Vec<Named> {
    [of_the_plan(), of_the_review(), of_the_apply(), ended()].concat()
}

fn of_the_plan() -> Vec<Named> {
    let queued = Standing::Queued { attempts_lost: 0 };
    let planning = |attempts_lost: u32| Standing::Planning {
        attempt: attempt(1),
        attempts_lost,
    };
    let speculative = |standing| run_with(speculative_facts(), Hold::NotNeeded, standing);
    let canceling = Standing::PlanCanceling {
        attempt: attempt(1),
        by: reviewer(),
        reason: None,
        requested_at: at(50),
    };
    vec![
        ("unborn", Run::Unborn),
        (
            "queued, waiting for the lock",
            run_with(facts(), Hold::Waiting, queued.clone()),
        ),
        ("queued, lock held", run(queued.clone())),
        ("queued, speculative", speculative(queued)),
        ("planning", run(planning(0))),
        ("planning, last attempt", run(planning(2))),
        ("planning, speculative", speculative(planning(0))),
        ("canceling a plan", run(canceling)),
    ]
}

fn of_the_review() -> Vec<Named> {
    let checking = |plan: PlanRecord| Standing::PolicyChecking { plan };
    let no_changes = PlanRecord {
        changes: PlanChanges::None,
        ..plan()
    };
    let override_required = |plan: PlanRecord| Standing::OverrideRequired {
        plan,
        policy: policy(PolicyOutcome::SoftFailed),
        expires_at: at(3600),
        override_expires_at: None,
    };
    let awaiting = Standing::AwaitingApproval {
        plan: plan(),
        evidence: evidence(),
        expires_at: at(3600),
        override_expires_at: None,
    };
    let overridden = Standing::AwaitingApproval {
        plan: plan(),
        evidence: evidence(),
        expires_at: at(55),
        override_expires_at: Some(at(55)),
    };
    vec![
        ("planned", run(Standing::Planned { plan: plan() })),
        ("policy_checking", run(checking(plan()))),
        (
            "policy_checking, no changes",
            run(checking(no_changes.clone())),
        ),
        (
            "policy_checking, speculative",
            run_with(speculative_facts(), Hold::NotNeeded, checking(plan())),
        ),
        ("override_required", run(override_required(plan()))),
        (
            "override_required, no changes",
            run(override_required(no_changes)),
        ),
        ("awaiting_approval", run(awaiting)),
        ("awaiting_approval, override until 55", run(overridden)),
    ]
}

fn of_the_apply() -> Vec<Named> {
    let approved = |override_expires_at| Standing::Approved {
        plan: plan(),
        evidence: evidence(),
        approval: approval(),
        override_expires_at,
    };
    let applying = |attempt: Attempt| Standing::Applying {
        plan: plan(),
        evidence: evidence(),
        approval: approval(),
        attempt,
        override_expires_at: None,
    };
    let canceling = Standing::ApplyCanceling {
        plan: plan(),
        evidence: evidence(),
        approval: approval(),
        attempt: attempt(1),
        by: reviewer(),
        reason: None,
        requested_at: at(50),
    };
    let in_doubt = Standing::RecoveryRequired {
        evidence: evidence(),
        doubt: doubt(),
    };
    vec![
        ("approved", run(approved(None))),
        ("approved, override until 61", run(approved(Some(at(61))))),
        ("applying", run(applying(attempt(1)))),
        ("applying, second attempt", run(applying(attempt(2)))),
        ("canceling an apply", run(canceling)),
        ("recovery_required", run(in_doubt)),
    ]
}

fn ended() -> Vec<Named> {
    let by = reviewer();
    let failed = Ending::Failed {
        reason: TerminalReason::ApplyFailed,
        emergency: Some(staged()),
    };
    let applied = Ending::Applied {
        publication: publication(),
        approval: approval(),
    };
    let recovered = |resolution| Ending::Recovered { resolution, by };
    let adopted = RecoveryResolution::AdoptEmergencyState {
        publication: adopted(),
    };
    [
        ("applied", applied),
        ("no_changes", Ending::NoChanges),
        ("speculative_finished", Ending::SpeculativeFinished),
        ("failed", failed),
        ("discarded", Ending::Discarded { by }),
        ("expired", Ending::Expired),
        ("canceled", Ending::Canceled { by: Some(by) }),
        ("canceled, superseded", Ending::Canceled { by: None }),
        ("plan_credentials_required", Ending::PlanCredentialsRequired),
        (
            "recovered, no change",
            recovered(RecoveryResolution::DeclareNoChange),
        ),
        ("recovered, adopted", recovered(adopted)),
    ]
    .map(|(name, ending)| (name, run(Standing::Ended(ending))))
    .into()
}
