//! One of every command, and one of each kind of mistake that a rule tells apart.

use super::{
    adopted, at, attempt, doubt, evidence, facts, failure, fence, id, plan, policy, publication,
    reviewer, staged, warning,
};
use crate::ids::{RunId, UserId};
use crate::run::{
    ApplyReport, Command, EvidencePart, LossReason, NewRun, PlanFailure, PolicyOutcome,
    PolicyResult, Publication, RecoveryResolution, TerminalReason,
};
use crate::{Actor, Fence, Sha256Digest, Timestamp};

type Named = (&'static str, Command);

/// Every command, each with a name for the reviewed table.
pub fn one_command_of_each() -> Vec<Named> {
    [
        of_the_queue(),
        of_the_plan(),
        of_policy(),
        of_overrides(),
        of_the_decision(),
        of_the_apply(),
        of_its_report(),
        of_recovery(),
        of_ends(),
    ]
    .concat()
}

fn of_the_queue() -> Vec<Named> {
    let new = |auto_apply: bool, destroy: bool| {
        Command::Create(Box::new(NewRun {
            facts: facts(),
            auto_apply,
            destroy,
        }))
    };
    let grant = |fence: Fence| Command::GrantLock {
        fence,
        warnings: Vec::new(),
    };
    vec![
        ("create", new(false, false)),
        ("create, auto-apply", new(true, false)),
        ("create, destroy", new(false, true)),
        ("grant lock", grant(fence())),
        (
            "grant lock, warned",
            Command::GrantLock {
                fence: fence(),
                warnings: vec![warning()],
            },
        ),
        ("grant lock, newer fence", grant(fence().next())),
    ]
}

fn of_the_plan() -> Vec<Named> {
    let current = attempt(1).id;
    let record = |attempt| Command::RecordPlan {
        attempt,
        plan: Box::new(plan()),
    };
    let fail = |reason| Command::FailPlan {
        attempt: current,
        failure: PlanFailure {
            reason,
            ..failure()
        },
    };
    let lose = Command::LosePlan {
        attempt: current,
        reason: LossReason::LeaseExpired,
        at: at(30),
    };
    let stop = Command::StopPlan {
        attempt: current,
        at: at(30),
    };
    let require_credentials = Command::RequirePlanCredentials {
        attempt: current,
        detail: "No profile.".to_owned(),
    };
    vec![
        (
            "start plan",
            Command::StartPlan {
                attempt: attempt(1),
            },
        ),
        (
            "start plan, next attempt",
            Command::StartPlan {
                attempt: attempt(2),
            },
        ),
        ("lose plan", lose),
        ("record plan", record(current)),
        ("record plan, stale attempt", record(attempt(2).id)),
        ("fail plan", fail(TerminalReason::PlanFailed)),
        ("fail plan, no failure", fail(TerminalReason::Applied)),
        ("stop plan", stop),
        ("require plan credentials", require_credentials),
    ]
}

fn of_policy() -> Vec<Named> {
    let record = |outcome: PolicyOutcome| Command::RecordPolicy {
        result: policy(outcome),
        approval_expires_at: at(3600),
    };
    let of_other_policies = Command::RecordPolicy {
        result: PolicyResult {
            bundle: Sha256Digest::of(b"other policies"),
            ..policy(PolicyOutcome::Pass)
        },
        approval_expires_at: at(3600),
    };
    vec![
        ("start policy check", Command::StartPolicyCheck),
        ("record policy, pass", record(PolicyOutcome::Pass)),
        (
            "record policy, soft failed",
            record(PolicyOutcome::SoftFailed),
        ),
        (
            "record policy, hard failed",
            record(PolicyOutcome::HardFailed),
        ),
        ("record policy, error", record(PolicyOutcome::Error)),
        ("record policy, other policies", of_other_policies),
    ]
}

fn of_overrides() -> Vec<Named> {
    let of = |by: Actor, outcome: PolicyOutcome, reason: &str, times: (i64, i64)| {
        Command::OverridePolicy {
            by,
            result: policy(outcome).digest,
            reason: reason.to_owned(),
            at: at(times.0),
            expires_at: at(times.1),
            approval_expires_at: at(7200),
        }
    };
    let (by, soft, why) = (reviewer(), PolicyOutcome::SoftFailed, "Agreed in review.");
    vec![
        ("override policy", of(by, soft, why, (40, 3640))),
        (
            "override policy, other result",
            of(by, PolicyOutcome::Pass, why, (40, 3640)),
        ),
        ("override policy, no reason", of(by, soft, " ", (40, 3640))),
        (
            "override policy, over a day",
            of(by, soft, why, (40, 40 + 24 * 60 * 60 + 1)),
        ),
        ("override policy, in the past", of(by, soft, why, (40, 40))),
        ("override policy, too late", of(by, soft, why, (3600, 7200))),
        (
            "override policy, by a machine",
            of(Actor::System, soft, why, (40, 3640)),
        ),
    ]
}

fn of_the_decision() -> Vec<Named> {
    let approve = |by: Actor, binding: Sha256Digest, seconds: i64| Command::Approve {
        by,
        binding,
        at: at(seconds),
    };
    let (by, binding) = (reviewer(), evidence().binding());
    let somebody_else = Actor::User(id::<UserId>(8));
    let discard = Command::Discard {
        by,
        reason: Some("Not today.".to_owned()),
        at: at(60),
    };
    vec![
        ("approve", approve(by, binding, 60)),
        (
            "approve, other evidence",
            approve(by, Sha256Digest::of(b"other"), 60),
        ),
        ("approve, too late", approve(by, binding, 3600)),
        (
            "approve, another person",
            approve(somebody_else, binding, 60),
        ),
        ("approve, by a machine", approve(Actor::System, binding, 60)),
        ("discard", discard),
        ("expire, too early", Command::Expire { at: at(60) }),
        ("expire", Command::Expire { at: at(3600) }),
    ]
}

fn of_the_apply() -> Vec<Named> {
    let start = |fence: Fence, binding: Sha256Digest| Command::StartApply {
        attempt: attempt(1),
        fence,
        binding,
        at: at(90),
    };
    let current = attempt(1).id;
    let binding = evidence().binding();
    let hand_back = Command::HandBackApply {
        attempt: current,
        at: at(95),
    };
    let lose = Command::LoseApply {
        attempt: current,
        reason: LossReason::LeaseExpired,
        emergency: Some(staged()),
    };
    vec![
        ("start apply", start(fence(), binding)),
        (
            "start apply, stale fence",
            start(Fence::from_stored(4), binding),
        ),
        (
            "start apply, other binding",
            start(fence(), Sha256Digest::of(b"other")),
        ),
        ("hand back apply", hand_back),
        ("lose apply", lose),
    ]
}

fn of_its_report() -> Vec<Named> {
    let record_under = |fence: Fence, report: ApplyReport| Command::RecordApply {
        attempt: attempt(1).id,
        fence,
        report: Box::new(report),
        at: at(120),
    };
    let record = |report: ApplyReport| record_under(fence(), report);
    let published = || ApplyReport::Published {
        publication: publication(),
    };
    let not_started = ApplyReport::NotStarted {
        part: Some(EvidencePart::Plan),
        detail: "The plan file differs.".to_owned(),
    };
    let failed = ApplyReport::Failed {
        detail: "tofu apply ended with exit code 1.".to_owned(),
        emergency: Some(staged()),
    };
    let stale = record_under(Fence::from_stored(4), published());
    vec![
        ("record apply, published", record(published())),
        ("record apply, not started", record(not_started)),
        ("record apply, failed", record(failed)),
        ("record apply, doubt", record(ApplyReport::Doubt(doubt()))),
        ("record apply, stale fence", stale),
    ]
}

fn of_recovery() -> Vec<Named> {
    let resolve =
        |by: Actor, resolution: RecoveryResolution, reason: &str| Command::ResolveRecovery {
            by,
            resolution,
            reason: reason.to_owned(),
            at: at(200),
        };
    let adopt = |publication: Publication| RecoveryResolution::AdoptEmergencyState { publication };
    let (by, why) = (reviewer(), "Checked by hand.");
    let no_change = || RecoveryResolution::DeclareNoChange;
    vec![
        ("resolve recovery, no change", resolve(by, no_change(), why)),
        (
            "resolve recovery, adopt",
            resolve(by, adopt(adopted()), why),
        ),
        (
            "resolve recovery, adopt another",
            resolve(by, adopt(publication()), why),
        ),
        ("resolve recovery, no reason", resolve(by, no_change(), "")),
        (
            "resolve recovery, by a machine",
            resolve(Actor::System, no_change(), why),
        ),
    ]
}

fn of_ends() -> Vec<Named> {
    let fail = |reason: TerminalReason| Command::Fail {
        failure: PlanFailure {
            reason,
            detail: "No sandbox.".to_owned(),
        },
    };
    let now: Timestamp = at(50);
    let cancel = Command::Cancel {
        by: reviewer(),
        reason: None,
        at: now,
    };
    let supersede = Command::Supersede {
        by: id::<RunId>(99),
        at: now,
    };
    vec![
        ("cancel", cancel),
        ("supersede", supersede),
        ("fail", fail(TerminalReason::SandboxUnavailable)),
        ("fail, no failure", fail(TerminalReason::ApplyFailed)),
    ]
}
