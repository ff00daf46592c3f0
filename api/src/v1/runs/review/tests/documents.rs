//! Whole documents, and what is or is not in them for whom.

use serde_json::{Value, json};
use stackship_domain::Role;
use stackship_domain::run::{Command, LossReason, PolicyOutcome, samples};
use stackship_policy::{Evaluation, Finding, Level, PolicyEntry, RESULT_SCHEMA, set_digest};
use stackship_store::phase_logs::LogPhase;

use super::super::ending::{LogTail, failed_phase};
use super::super::known::Known;
use super::super::stored::evaluation;
use super::{document_for, stored, stories, story};

/// What somebody with this role sees.
fn shown(role: Role, told: story::Story) -> Value {
    let review = told.review();
    let stored = stored(&review);
    serde_json::to_value(document_for(role, &review, stored)).unwrap()
}

#[test]
fn a_run_that_asks() {
    insta::assert_json_snapshot!(shown(Role::Operator, story::asking()));
}

#[test]
fn a_run_whose_apply_failed() {
    let review = story::apply_failed().review();
    let tail = LogTail {
        log: "apply",
        lines: vec!["│ Error: limit reached".to_owned(), "╵".to_owned()],
    };
    let stored = super::Stored {
        log_tail: Some(tail).into(),
        ..stored(&review)
    };
    insta::assert_json_snapshot!(document_for(Role::Owner, &review, stored));
}

#[test]
fn before_a_plan_has_ended_there_are_no_counts() {
    for (name, review) in stories::all() {
        let stored = stored(&review);
        let seen = serde_json::to_value(document_for(Role::Reader, &review, stored)).unwrap();
        let summary = &seen["stages"]["plan"]["summary"];
        let counted = summary.get("counts").is_some();
        assert_eq!(counted, review.plan.record.is_some(), "{name}");
        let ended = seen["stages"]["plan"]["stage"]["ended_at"].is_string();
        assert!(ended || summary["kind"] != "not_recorded", "{name}");
    }
}

#[test]
fn what_an_attempt_wrote_can_be_read_while_the_next_one_is_waited_for() {
    let attempt = samples::attempt(1).id;
    let (reason, at) = (LossReason::LeaseExpired, samples::at(100));
    let lost = Command::LosePlan {
        attempt,
        reason,
        at,
    };
    let handed_back = Command::HandBackApply { attempt, at };
    for (told, stage, is_there) in [
        (story::queued(), "plan", false),
        (story::planning().and([lost]), "plan", true),
        (story::approved(), "apply", false),
        (story::applying().and([handed_back]), "apply", true),
    ] {
        let shown = shown(Role::Reader, told)["stages"][stage]["stage"].clone();
        assert_eq!(shown["status"], "pending");
        assert_eq!(shown["log_href"].is_string(), is_there, "{shown}");
    }
}

#[test]
fn only_a_failed_phase_shows_the_end_of_its_log() {
    for (name, review) in stories::all() {
        let phase = match name {
            "no sandbox" | "plan failed" | "plan refused" | "plan too large" => {
                Some(LogPhase::Plan)
            }
            "apply failed" | "apply refused" => Some(LogPhase::Apply),
            _ => None,
        };
        assert_eq!(failed_phase(&review), phase, "{name}");
    }
}

#[test]
fn a_destroying_plan_asks_twice_and_another_does_not() {
    let confirmation = |told| shown(Role::Owner, told)["available_actions"][0].clone();
    let destroying = confirmation(story::asking());
    assert_eq!(destroying["action"], "approve");
    assert_eq!(destroying["confirmation"], "restate_counts");
    let harmless = story::asking_harmlessly();
    assert_eq!(confirmation(harmless)["confirmation"], "none");
}

#[test]
fn whoever_may_not_have_an_artifact_is_told_what_they_lack() {
    let of = |role, told| shown(role, told)["downloads"].clone();
    let reader = of(Role::Reader, story::apply_failed());
    let kind = |downloads: &Value, index: usize| downloads[index]["availability"].clone();
    assert_eq!(kind(&reader, 0)["kind"], "available");
    assert_eq!(
        kind(&reader, 2),
        json!({"kind": "permission_missing", "permissions": ["artifact:read_sensitive"]})
    );
    assert_eq!(
        kind(&reader, 3),
        json!({"kind": "permission_missing",
            "permissions": ["artifact:read_sensitive", "state:recover"]})
    );
    let owner = of(Role::Owner, story::apply_failed());
    let there = (&owner[3]["guarded"], &kind(&owner, 3)["kind"]);
    assert_eq!(there, (&json!(true), &json!("available")));
    assert_eq!(kind(&owner, 4)["kind"], "not_recorded");
    let asking = of(Role::Owner, story::asking());
    assert_eq!(kind(&asking, 3)["kind"], "not_yet");
    assert_eq!(kind(&asking, 4)["kind"], "not_yet");
    let applied = of(Role::Owner, story::applied());
    let version = samples::publication().version;
    assert_eq!(
        kind(&applied, 4)["href"],
        format!("/api/v2/state-versions/{version}/download")
    );
}

#[test]
fn whoever_could_never_download_anything_sees_no_downloads() {
    let review = story::asking().review();
    let nobody = crate::auth::Viewer::new(samples::reviewer(), None);
    assert_eq!(
        super::super::downloads::downloads(&review, &stored(&review), nobody),
        None
    );
}

#[test]
fn what_cannot_be_read_is_unavailable_and_not_empty() {
    let review = story::applied().review();
    let stored = super::Stored {
        policy: Known::Unavailable,
        published: Known::Unavailable,
        ..stored(&review)
    };
    let seen = serde_json::to_value(document_for(Role::Owner, &review, stored)).unwrap();
    let unavailable = json!({"kind": "unavailable"});
    assert_eq!(seen["stages"]["policy"]["findings"], unavailable);
    assert_eq!(seen["stages"]["apply"]["published"], unavailable);
    assert_eq!(
        seen["evidence"]["workflow_id"],
        json!({"kind": "not_recorded"})
    );
}

/// A result with one denial of each level and `more` warnings.
fn result(more: u32) -> Evaluation {
    let bundle = samples::policy(PolicyOutcome::Pass).digest;
    let finding = |policy: &str, rule: &str, level: Level, number: u32| Finding {
        policy_id: policy.to_owned(),
        rule_id: rule.to_owned(),
        resource_address: Some(format!("terraform_data.item[{number:04}]")),
        message: "It is too large.".to_owned(),
        title: "Size".to_owned(),
        level,
        bundle: Some(bundle),
    };
    let entry = |policy: &str, level: Level, warnings: u32| PolicyEntry {
        bundle,
        policy_id: policy.to_owned(),
        level,
        enabled: true,
        denials: 1,
        warnings,
    };
    let warnings = (0..more).map(|number| finding("a", "warn", Level::Advisory, number));
    let denials = [
        finding("a", "deny", Level::Advisory, 0),
        finding("b", "deny", Level::SoftMandatory, 0),
        finding("c", "deny", Level::HardMandatory, 0),
    ];
    let mut findings: Vec<Finding> = warnings.chain(denials).collect();
    findings.sort();
    let context = samples::plan();
    Evaluation {
        schema: RESULT_SCHEMA.to_owned(),
        run_id: samples::id(1000),
        plan_digest: context.plan,
        redacted_plan_digest: context.policy_input,
        policy_input_digest: context.policy_input,
        bundle_digest: set_digest(&[bundle]),
        bundles: vec![bundle],
        engine: stackship_policy::ENGINE.to_owned(),
        features: Vec::new(),
        evaluated_at: samples::at(30),
        outcome: PolicyOutcome::HardFailed,
        error_code: None,
        policies: vec![
            entry("a", Level::Advisory, more),
            entry("b", Level::SoftMandatory, 0),
            entry("c", Level::HardMandatory, 0),
        ],
        findings,
        truncated: false,
    }
}

#[test]
fn the_weightiest_findings_come_first_and_what_is_cut_is_told() {
    let findings = |more| {
        let (review, made) = (story::asking().review(), result(more));
        let stored = super::Stored {
            policy: evaluation(&made.to_bytes(), made.digest()),
            ..stored(&review)
        };
        let seen = document_for(Role::Reader, &review, stored);
        serde_json::to_value(seen).unwrap()["stages"]["policy"]["findings"]["value"].clone()
    };
    let few = findings(1);
    let levels: Vec<&str> = few["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["level"].as_str().unwrap())
        .collect();
    assert_eq!(
        levels,
        ["hard_mandatory", "soft_mandatory", "advisory", "advisory"]
    );
    assert_eq!(
        (&few["found"], &few["truncated"]),
        (&json!(4), &json!(false))
    );
    let many = findings(300);
    assert_eq!(many["items"].as_array().map(Vec::len), Some(256));
    assert_eq!(many["items"][0]["level"], "hard_mandatory");
    assert_eq!(
        (&many["found"], &many["truncated"]),
        (&json!(303), &json!(true))
    );
}

#[test]
fn a_result_that_is_not_the_recorded_one_is_unavailable() {
    let made = result(0);
    let bytes = made.to_bytes();
    assert_eq!(
        evaluation(&bytes, made.digest()),
        Known::Recorded {
            value: made.clone()
        }
    );
    let other = result(1).digest();
    assert_eq!(evaluation(&bytes, other), Known::Unavailable);
    for broken in [&b"{}"[..], b"", b"null", &bytes[1..]] {
        let digest = stackship_domain::Sha256Digest::of(broken);
        assert_eq!(evaluation(broken, digest), Known::Unavailable);
    }
}
