//! A policy result as text: the log of the phase, and what the tofu CLI prints. Everything in here that
//! a policy wrote is on one line and free of control characters; the policy room sees to that.

use std::cmp::Reverse;
use std::time::Duration;

use stackship_domain::Sha256Digest;
use stackship_domain::run::{PinnedPolicySet, PolicyOutcome};
use stackship_policy::{Evaluation, Finding, PolicyEntry};

/// The most bytes of findings that a report tells; the result has all of them.
const FINDINGS_BYTES_MAX: usize = 256 * 1024;

/// Everything that there is to say about one evaluation.
pub(super) fn text(evaluation: &Evaluation, pinned: &[PinnedPolicySet], took: Duration) -> String {
    let mut out = String::new();
    if pinned.is_empty() {
        out.push_str("No policy set is attached.\n");
    }
    for set in pinned {
        let asked = evaluation.policies.iter();
        of_set(
            &mut out,
            set,
            asked.filter(|entry| entry.bundle == set.bundle),
        );
    }
    findings(&mut out, evaluation, pinned);
    verdict(&mut out, evaluation, took);
    out
}

macro_rules! line {
    ($out:expr, $($part:tt)*) => {{
        $out.push_str(&format!($($part)*));
        $out.push('\n');
    }};
}

fn of_set<'e>(
    out: &mut String,
    set: &PinnedPolicySet,
    entries: impl Iterator<Item = &'e PolicyEntry>,
) {
    line!(out, "Policy set {}, version {}", set.name, set.version);
    for entry in entries {
        let said = match (entry.enabled, entry.denials, entry.warnings) {
            (false, _, _) => "not enabled".to_owned(),
            (true, 0, 0) => "nothing found".to_owned(),
            (true, denials, 0) => format!("denied {denials}"),
            (true, 0, warnings) => format!("warned {warnings}"),
            (true, denials, warnings) => format!("denied {denials}, warned {warnings}"),
        };
        line!(out, "  {} ({}): {said}", entry.policy_id, entry.level);
    }
}

/// The weightiest first, as many as there is room for.
fn findings(out: &mut String, evaluation: &Evaluation, pinned: &[PinnedPolicySet]) {
    let mut found: Vec<_> = evaluation.findings.iter().collect();
    found.sort_by_key(|finding| Reverse(finding.level));
    let room = out.len() + FINDINGS_BYTES_MAX;
    let mut told = 0_u64;
    for finding in found {
        let mut text = String::new();
        one(&mut text, finding, pinned);
        if out.len() + text.len() > room {
            break;
        }
        out.push_str(&text);
        told += 1;
    }
    let counted =
        (evaluation.denials() + evaluation.warnings()).max(evaluation.findings.len() as u64);
    if counted > told {
        line!(
            out,
            "\n… and {} more that are not shown here",
            counted - told
        );
    }
}

fn one(out: &mut String, finding: &Finding, pinned: &[PinnedPolicySet]) {
    let set = finding.bundle.and_then(|bundle| set_of(pinned, bundle));
    let set = set.map_or_else(String::new, |set| format!("{}/", set.name));
    line!(out, "\n{}: {}", finding.level, finding.title);
    line!(out, "  {}", finding.message);
    line!(
        out,
        "  policy {set}{}, rule {}",
        finding.policy_id,
        finding.rule_id
    );
    if let Some(address) = &finding.resource_address {
        line!(out, "  resource {address}");
    }
}

fn set_of(pinned: &[PinnedPolicySet], bundle: Sha256Digest) -> Option<&PinnedPolicySet> {
    pinned.iter().find(|set| set.bundle == bundle)
}

fn verdict(out: &mut String, evaluation: &Evaluation, took: Duration) {
    let sentence = match evaluation.outcome {
        PolicyOutcome::Pass if evaluation.findings.is_empty() => "Passed.",
        PolicyOutcome::Pass => "Passed; what was found is advisory.",
        PolicyOutcome::SoftFailed => {
            "Denied by a soft-mandatory policy. It can be overridden for a limited time."
        }
        PolicyOutcome::HardFailed => "Denied by a hard-mandatory policy. It cannot be overridden.",
        PolicyOutcome::Error => {
            "Not evaluated, so not let through. It cannot be overridden: correct the cause and start a \
             new run."
        }
    };
    line!(out, "\n{sentence}");
    line!(
        out,
        "{}, {}, {}, {:.1} s, {}",
        counted(evaluation.policies_count().into(), "policy", "policies"),
        counted(evaluation.denials(), "denial", "denials"),
        counted(evaluation.warnings(), "warning", "warnings"),
        took.as_secs_f64(),
        evaluation.engine
    );
}

fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use stackship_domain::run::samples;
    use stackship_policy::{Context, ErrorCode, Level};

    use super::*;

    fn pinned() -> PinnedPolicySet {
        samples::pinned_policies()
    }

    #[test]
    fn one_is_not_told_as_many() {
        let told = [0, 1, 2].map(|number| counted(number, "denial", "denials"));
        assert_eq!(told, ["0 denials", "1 denial", "2 denials"]);
    }

    fn nothing_asked() -> Evaluation {
        let context = Context {
            run: samples::id(1),
            plan: samples::plan().plan,
            redacted_plan: None,
            policy_input: None,
            evaluated_at: samples::at(0),
        };
        let code = ErrorCode::PolicyBundle;
        Evaluation::not_asked(context, &[pinned().bundle], code, "it is gone")
    }

    fn entry(policy_id: &str, level: Level, denials: u32) -> PolicyEntry {
        PolicyEntry {
            bundle: pinned().bundle,
            policy_id: policy_id.to_owned(),
            level,
            enabled: true,
            denials,
            warnings: 0,
        }
    }

    fn finding(policy_id: &str, level: Level, message: &str) -> Finding {
        Finding {
            policy_id: policy_id.to_owned(),
            rule_id: "deny".to_owned(),
            resource_address: Some("terraform_data.a".to_owned()),
            message: message.to_owned(),
            title: "A title".to_owned(),
            level,
            bundle: Some(pinned().bundle),
        }
    }

    fn evaluated(outcome: PolicyOutcome, findings: Vec<Finding>) -> Evaluation {
        let advised = findings.iter().filter(|one| one.policy_id == "advice");
        let advised = u32::try_from(advised.count()).unwrap();
        let denied = u32::try_from(findings.len()).unwrap() - advised;
        Evaluation {
            outcome,
            error_code: None,
            policies: vec![
                entry("advice", Level::Advisory, advised),
                entry("tags", Level::SoftMandatory, denied),
            ],
            findings,
            ..nothing_asked()
        }
    }

    fn told(evaluation: &Evaluation) -> String {
        text(evaluation, &[pinned()], Duration::from_millis(1_250))
    }

    #[test]
    fn a_report_says_what_was_asked_what_was_found_and_what_follows() {
        let findings = vec![
            finding("advice", Level::Advisory, "Think again"),
            finding("tags", Level::SoftMandatory, "No owner"),
        ];
        insta::assert_snapshot!(told(&evaluated(PolicyOutcome::SoftFailed, findings)));
    }

    #[test]
    fn a_report_of_an_error_says_why() {
        insta::assert_snapshot!(told(&nothing_asked()));
    }

    #[test]
    fn a_report_has_an_end_and_says_how_much_it_leaves_out() {
        let long = "x".repeat(2_000);
        let many = vec![finding("tags", Level::SoftMandatory, &long); 1_000];
        let report = told(&evaluated(PolicyOutcome::SoftFailed, many));
        assert!(
            report.len() < FINDINGS_BYTES_MAX + 1_000,
            "{}",
            report.len()
        );
        let told = report.matches("A title").count();
        assert!(report.contains(&format!("… and {} more", 1_000 - told)));
    }
}
