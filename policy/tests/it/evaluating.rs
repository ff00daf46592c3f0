//! What policies find, and what it leads to.

use serde_json::json;
use stackship_domain::Sha256Digest;
use stackship_domain::run::PolicyOutcome;
use stackship_policy::{
    AttachedBundle, ENGINE, EVALUATIONS_AT_ONCE_MAX, ErrorCode, Evaluation, Evaluator, FEATURES,
    FINDINGS_MAX, Level,
};

use crate::support::{
    attached, bundle, bundle_of, context, evaluate, evaluator, input, policy, program,
};

const DENIES: &str = "deny contains \"no\"";
const PASSES: &str = "deny contains \"no\" if false";

async fn together(bundles: Vec<AttachedBundle>) -> Evaluation {
    let input = input(&json!({}));
    let context = context(&input);
    let evaluation = evaluator().evaluate(&bundles, &input, context).await;
    let evaluation = evaluation.unwrap();
    assert_eq!(
        Evaluation::from_bytes(&evaluation.to_bytes()).unwrap(),
        evaluation
    );
    evaluation
}

#[tokio::test]
async fn the_level_is_the_manifests_and_decides_what_a_denial_leads_to() {
    for (level, outcome) in [
        ("advisory", PolicyOutcome::Pass),
        ("soft_mandatory", PolicyOutcome::SoftFailed),
        ("hard_mandatory", PolicyOutcome::HardFailed),
    ] {
        let evaluation = evaluate(level, DENIES, &json!({})).await;
        assert_eq!(evaluation.outcome, outcome, "{level}");
        assert_eq!(evaluation.findings[0].level.as_str(), level);
        assert_eq!(evaluation.policies[0].denials, 1);
        let evaluation = evaluate(level, PASSES, &json!({})).await;
        assert_eq!(evaluation.outcome, PolicyOutcome::Pass, "{level}");
        assert!(evaluation.findings.is_empty());
    }
}

#[tokio::test]
async fn a_warning_never_blocks() {
    let evaluation = evaluate("hard_mandatory", "warn contains \"mind\"", &json!({})).await;
    assert_eq!(evaluation.outcome, PolicyOutcome::Pass);
    let finding = &evaluation.findings[0];
    assert_eq!(
        (finding.level, finding.rule_id.as_str()),
        (Level::Advisory, "warn")
    );
    assert_eq!(
        (
            evaluation.policies[0].denials,
            evaluation.policies[0].warnings
        ),
        (0, 1)
    );
}

#[tokio::test]
async fn the_weightiest_failure_decides() {
    let soft = policy("soft", "soft_mandatory");
    let hard = policy("hard", "hard_mandatory");
    let both = bundle_of(&[(soft.clone(), DENIES), (hard.clone(), DENIES)], None);
    assert_eq!(
        together(vec![attached(both)]).await.outcome,
        PolicyOutcome::HardFailed
    );
    let one = bundle_of(&[(soft, DENIES), (hard, PASSES)], None);
    let evaluation = together(vec![attached(one)]).await;
    assert_eq!(evaluation.outcome, PolicyOutcome::SoftFailed);
    assert_eq!(
        (evaluation.policies_count(), evaluation.findings.len()),
        (2, 1)
    );
}

#[tokio::test]
async fn one_policy_that_fails_is_an_error_whatever_the_others_say() {
    let broken = (
        policy("broken", "advisory"),
        "deny contains \"x\" if 1 / count(input.run) == 1",
    );
    let hard = (policy("hard", "hard_mandatory"), DENIES);
    let evaluation = together(vec![attached(bundle_of(&[hard, broken], None))]).await;
    assert_eq!(evaluation.outcome, PolicyOutcome::Error);
    assert_eq!(evaluation.error_code, Some(ErrorCode::PolicyError));
    assert_eq!(evaluation.findings[0].policy_id, "broken");
    assert_eq!(evaluation.findings[0].level, Level::HardMandatory);
}

#[tokio::test]
async fn what_a_policy_fails_with_names_the_place_and_not_its_text() {
    let broken = (
        policy("broken", "advisory"),
        "deny contains \"x\" if 1 / count(input.run) == 1 # planted-note",
    );
    let evaluation = together(vec![attached(bundle_of(&[broken], None))]).await;
    let message = &evaluation.findings[0].message;
    assert!(message.contains("broken.rego:"), "{message}");
    assert!(message.contains("error: "), "{message}");
    assert!(!message.contains("planted-note"), "{message}");
    assert!(!message.contains("deny contains"), "{message}");
}

#[tokio::test]
async fn a_disabled_policy_is_recorded_and_not_evaluated() {
    let mut disabled = policy("off", "hard_mandatory");
    disabled["enabled"] = json!(false);
    let evaluation = together(vec![attached(bundle_of(
        &[
            (disabled.clone(), "deny contains 1 / 0"),
            (policy("on", "advisory"), DENIES),
        ],
        None,
    ))])
    .await;
    assert_eq!(evaluation.outcome, PolicyOutcome::Pass);
    assert_eq!(evaluation.policies_count(), 1);
    let off = evaluation
        .policies
        .iter()
        .find(|entry| entry.policy_id == "off")
        .unwrap();
    assert!(!off.enabled && off.denials == 0);
    let evaluation = together(vec![attached(bundle_of(&[(disabled, DENIES)], None))]).await;
    assert_eq!(
        (evaluation.outcome, evaluation.policies_count()),
        (PolicyOutcome::Pass, 0)
    );
}

#[tokio::test]
async fn no_policies_pass_without_a_process_and_are_recorded_as_such() {
    let input = input(&json!({}));
    let evaluator = Evaluator::new("/nowhere/stackship".into());
    let evaluation = evaluator
        .evaluate(&[], &input, context(&input))
        .await
        .unwrap();
    assert_eq!(evaluation.outcome, PolicyOutcome::Pass);
    assert_eq!(
        (evaluation.policies_count(), evaluation.bundles.len()),
        (0, 0)
    );
    assert_eq!(evaluation.bundle_digest, stackship_policy::set_digest(&[]));
    assert_eq!(
        (evaluation.engine.as_str(), evaluation.features),
        (ENGINE, FEATURES.iter().map(ToString::to_string).collect())
    );
}

#[tokio::test]
async fn neither_the_order_of_attachment_nor_a_second_attachment_changes_the_result() {
    let one = attached(bundle("advisory", DENIES));
    let two = attached(bundle("soft_mandatory", "deny contains \"other\""));
    let first = together(vec![one.clone(), two.clone()]).await;
    let second = together(vec![two.clone(), one.clone(), two]).await;
    assert_eq!(first.digest(), second.digest());
    // Both bundles call their policy `tested`; the findings say whose they are.
    let bundles: Vec<_> = first
        .findings
        .iter()
        .map(|finding| finding.bundle.unwrap())
        .collect();
    assert_eq!(bundles.len(), 2);
    assert_ne!(bundles[0], bundles[1]);
}

#[tokio::test]
async fn the_same_input_gives_the_same_digest_every_time() {
    let rules = "deny contains sprintf(\"%s %v\", [name, value]) if some name, value in input.plan.things\nwarn contains {\"rule_id\": \"w\", \"title\": \"t\", \"message\": json.marshal({k | some k, _ in input.plan.things})}";
    let things: serde_json::Map<_, _> = (0..50)
        .map(|n| (format!("thing{n}"), json!({"a": n})))
        .collect();
    let input = input(&json!({ "things": things }));
    let bundles = [attached(bundle("soft_mandatory", rules))];
    let evaluator = evaluator();
    let evaluations = (0..20).map(|_| evaluator.evaluate(&bundles, &input, context(&input)));
    let mut digests = vec![];
    for evaluation in evaluations {
        let evaluation = evaluation.await.unwrap();
        assert_eq!(evaluation.findings.len(), 51);
        digests.push(evaluation.digest());
    }
    digests.dedup();
    assert_eq!(digests.len(), 1);
}

#[tokio::test]
async fn a_result_that_was_cut_is_marked_and_still_blocks() {
    let many = |text: &str| {
        format!("{text} contains sprintf(\"%d\", [n]) if some n in numbers.range(1, 1500)")
    };
    let advisory = (policy("advice", "advisory"), many("deny"));
    let hard = (
        policy("hard", "hard_mandatory"),
        many("warn") + "\n" + DENIES,
    );
    let policies = [(advisory.0, advisory.1.as_str()), (hard.0, hard.1.as_str())];
    let evaluation = together(vec![attached(bundle_of(&policies, None))]).await;
    assert!(evaluation.truncated);
    assert_eq!(evaluation.findings.len(), FINDINGS_MAX);
    // What blocks comes first, so it is there although it is one of 3,001.
    assert_eq!(evaluation.outcome, PolicyOutcome::HardFailed);
    assert!(
        evaluation
            .findings
            .iter()
            .any(|finding| finding.level == Level::HardMandatory)
    );
    let counts: Vec<_> = evaluation
        .policies
        .iter()
        .map(|entry| (entry.denials, entry.warnings))
        .collect();
    assert_eq!(counts, [(1_500, 0), (1, 1_500)]);

    let evaluation = evaluate("soft_mandatory", &many("deny"), &json!({})).await;
    assert!(evaluation.truncated);
    assert_eq!(evaluation.outcome, PolicyOutcome::SoftFailed);
}

#[tokio::test]
async fn data_belongs_to_its_bundle_and_a_policy_sees_no_other() {
    let reads = "deny contains data.name if data.name\nwarn contains \"sees another\" if data.stackship.other";
    let other = (policy("other", "advisory"), DENIES);
    let one = bundle_of(
        &[(policy("tested", "advisory"), reads), other],
        Some("{\"name\": \"one\"}"),
    );
    let two = bundle_of(
        &[(policy("tested", "advisory"), reads)],
        Some("{\"name\": \"two\"}"),
    );
    let evaluation = together(vec![attached(one), attached(two)]).await;
    let mut messages: Vec<_> = evaluation
        .findings
        .iter()
        .map(|finding| finding.message.as_str())
        .collect();
    messages.sort_unstable();
    assert_eq!(messages, ["no", "one", "two"]);
}

#[tokio::test]
async fn a_bundle_or_an_input_that_is_not_the_pinned_one_is_not_evaluated() {
    let good = attached(bundle("advisory", PASSES));
    let stale = AttachedBundle {
        pinned: Sha256Digest::of(b"another"),
        ..good.clone()
    };
    assert_eq!(
        together(vec![stale]).await.error_code,
        Some(ErrorCode::PolicyError)
    );
    let (asked, given) = (input(&json!({})), input(&json!({"other": true})));
    let evaluation = Evaluator::new(program())
        .evaluate(&[good], &given, context(&asked))
        .await;
    assert_eq!(evaluation.unwrap().error_code, Some(ErrorCode::PolicyError));
}

#[tokio::test]
async fn an_input_that_is_not_plain_json_is_an_error() {
    let bundles = [attached(bundle("advisory", PASSES))];
    for input in [
        &b""[..],
        b"{",
        b"{\"plan\":1,\"plan\":2}",
        b"\xff",
        b"{} {}",
    ] {
        let evaluation = evaluator()
            .evaluate(&bundles, input, context(input))
            .await
            .unwrap();
        assert_eq!(
            evaluation.error_code,
            Some(ErrorCode::PolicyError),
            "{input:?}"
        );
    }
}

#[tokio::test]
async fn the_default_limits_are_enough_for_an_ordinary_policy() {
    let bundle = bundle("soft_mandatory", DENIES);
    let evaluator = Evaluator::new(program());
    evaluator.validate(&bundle).await.unwrap();
    let input = input(&json!({}));
    let evaluation = evaluator
        .evaluate(&[attached(bundle)], &input, context(&input))
        .await;
    assert_eq!(evaluation.unwrap().outcome, PolicyOutcome::SoftFailed);
}

#[tokio::test]
async fn evaluations_may_be_asked_for_together_and_given_up() {
    let evaluator = evaluator();
    let input = input(&json!({}));
    let bundles = [attached(bundle("soft_mandatory", DENIES))];
    for _ in 0..=EVALUATIONS_AT_ONCE_MAX {
        let given_up = evaluator.evaluate(&bundles, &input, context(&input));
        tokio::select! {
            biased;
            _ = given_up => panic!("a process cannot end before it has been waited for"),
            () = std::future::ready(()) => {}
        }
    }
    let one = || evaluator.evaluate(&bundles, &input, context(&input));
    let (a, b, c, d) = tokio::join!(one(), one(), one(), one());
    for evaluation in [a, b, c, d] {
        assert_eq!(evaluation.unwrap().outcome, PolicyOutcome::SoftFailed);
    }
}
