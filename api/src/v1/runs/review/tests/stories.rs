//! Every way a run can go, and where each leaves the stages.

use std::fmt::Write as _;

use serde_json::Value;
use stackship_domain::Role;
use stackship_domain::run::samples::{self, at};
use stackship_domain::run::{
    ApplyReport, Command, LossReason, PlanChanges, PlanFailure, PlanRecord, PolicyOutcome,
    RecoveryResolution, TerminalReason,
};
use stackship_projections::RunReview;
use stackship_store::records::runners::Presence;

use super::story::{
    Story, applied, apply_failed, applying, approved, asking, cancel, checking, discard, fail_plan,
    in_doubt, judged, overridden, planning, queued, record, reported, resolved, speculative,
    supersede,
};
use super::{document_for, stored};
use crate::v1::runs::review::guidance::GuidanceCode;

type Named = (&'static str, Story);

/// Every way there is, by name.
pub(super) fn all() -> Vec<(&'static str, RunReview)> {
    let ways = [
        of_the_plan(),
        of_failed_plans(),
        of_policy(),
        of_the_question(),
        of_the_apply(),
    ];
    ways.into_iter()
        .flatten()
        .map(|(name, story)| (name, story.review()))
        .collect()
}

fn of_the_plan() -> Vec<Named> {
    let attempt = samples::attempt(1).id;
    let lost = Command::LosePlan {
        attempt,
        reason: LossReason::LeaseExpired,
        at: at(30),
    };
    let stop = Command::StopPlan {
        attempt,
        at: at(60),
    };
    vec![
        ("queued", queued()),
        ("canceled in the queue", queued().and([cancel()])),
        ("planning", planning()),
        ("runner of the plan lost", planning().and([lost])),
        ("stopping a plan", planning().and([cancel()])),
        ("plan stopped", planning().and([cancel(), stop])),
        ("planned", planning().and([record(samples::plan())])),
    ]
}

fn of_failed_plans() -> Vec<Named> {
    let failed = |reason| planning().and([fail_plan(reason)]);
    let no_sandbox = Command::Fail {
        failure: PlanFailure {
            reason: TerminalReason::SandboxUnavailable,
            detail: "No sandbox.".to_owned(),
        },
    };
    let credentials = Command::RequirePlanCredentials {
        attempt: samples::attempt(1).id,
        detail: "No profile.".to_owned(),
    };
    vec![
        ("no sandbox", queued().and([no_sandbox])),
        ("plan failed", failed(TerminalReason::PlanFailed)),
        ("plan refused", failed(TerminalReason::PlanRefused)),
        ("plan too large", failed(TerminalReason::PlanLimitExceeded)),
        ("credentials missing", planning().and([credentials])),
    ]
}

fn of_policy() -> Vec<Named> {
    let at_work = || checking(samples::plan());
    let says = |outcome| at_work().and([judged(outcome)]);
    let soft = || says(PolicyOutcome::SoftFailed);
    let expire = Command::Expire { at: at(3600) };
    let ran_out = Command::Expire { at: at(3640) };
    let unchanged = PlanRecord {
        changes: PlanChanges::None,
        ..samples::plan()
    };
    let unchanged = checking(unchanged).and([judged(PolicyOutcome::Pass)]);
    let looked_at = |outcome| speculative().and([judged(outcome)]);
    vec![
        ("policy at work", at_work()),
        ("canceled at policy", at_work().and([cancel()])),
        ("no changes", unchanged),
        ("policy denied", says(PolicyOutcome::HardFailed)),
        ("policy broken", says(PolicyOutcome::Error)),
        ("override asked", soft()),
        ("override refused", soft().and([discard()])),
        ("override expired", soft().and([expire])),
        ("overridden", soft().and([overridden()])),
        ("override ran out", soft().and([overridden(), ran_out])),
        ("speculative, policy at work", speculative()),
        ("speculative, done", looked_at(PolicyOutcome::Pass)),
        (
            "speculative, soft failed",
            looked_at(PolicyOutcome::SoftFailed),
        ),
    ]
}

fn of_the_question() -> Vec<Named> {
    let expire = Command::Expire { at: at(3600) };
    vec![
        ("asking", asking()),
        ("discarded", asking().and([discard()])),
        ("expired", asking().and([expire])),
        ("canceled while asking", asking().and([cancel()])),
        ("superseded while asking", asking().and([supersede()])),
        ("approved", approved()),
        ("canceled once approved", approved().and([cancel()])),
    ]
}

fn of_the_apply() -> Vec<Named> {
    let not_started = ApplyReport::NotStarted {
        part: None,
        detail: "The plan file differs.".to_owned(),
    };
    let adopt = RecoveryResolution::AdoptEmergencyState {
        publication: samples::adopted(),
    };
    vec![
        ("applying", applying()),
        ("stopping an apply", applying().and([cancel()])),
        ("applied", applied()),
        ("apply failed", apply_failed()),
        ("apply refused", reported(not_started)),
        ("in doubt", in_doubt()),
        ("adopted", resolved(adopt)),
        (
            "declared unchanged",
            resolved(RecoveryResolution::DeclareNoChange),
        ),
    ]
}

#[test]
fn each_way_leaves_its_stages_and_says_what_to_do() {
    let mut table = String::new();
    for (name, review) in all() {
        let stored = stored(&review);
        let shown = serde_json::to_value(document_for(Role::Owner, &review, stored)).unwrap();
        let stage = |name: &str| {
            let stage = &shown["stages"][name]["stage"];
            let opens = if stage["opens"] == true { "*" } else { "" };
            format!("{}{opens}", text(&stage["status"]))
        };
        writeln!(
            table,
            "{name:<28} {:<10} {:<10} {:<10} {:<11} {:<12} {:<11} {}",
            stage("plan"),
            stage("policy"),
            stage("approval"),
            stage("apply"),
            text(&shown["stages"]["plan"]["summary"]["kind"]),
            text(&shown["stages"]["approval"]["state"]),
            text(&shown["guidance"]["code"]),
        )
        .unwrap();
    }
    insta::assert_snapshot!(table);
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// What every way says to do next; who is before a queued run is another table's to know.
#[test]
fn every_guidance_is_some_runs() {
    let mut left: Vec<Value> = GuidanceCode::ALL
        .iter()
        .filter(|code| {
            !matches!(
                code,
                GuidanceCode::WaitForOtherRun | GuidanceCode::WaitForUnlock
            )
        })
        .map(|code| serde_json::to_value(code).unwrap())
        .collect();
    let told = all().into_iter().flat_map(|(_, review)| {
        [Presence::There, Presence::NeverSeen].map(|runners| (review.clone(), runners))
    });
    for (review, runners) in told {
        let stored = super::Stored {
            runners,
            ..stored(&review)
        };
        let shown = serde_json::to_value(document_for(Role::Owner, &review, stored)).unwrap();
        left.retain(|code| *code != shown["guidance"]["code"]);
    }
    assert_eq!(left, [Value::Null; 0], "nobody is ever told these");
}
