//! Policies that want too much. Each runs in the real limited process, under limits of which only
//! one can end it, so that no clock decides a test.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use stackship_domain::run::PolicyOutcome;
use stackship_policy::{BundleError, ErrorCode, Evaluation, Evaluator, Limits};

use crate::support::{AMPLE, archive, attached, bundle, context, input, manifest, policy, program};

/// Only the engine's timer can end it.
const TIMER: Limits = Limits {
    evaluation: Duration::from_millis(300),
    ..AMPLE
};
/// Only the kernel can end it.
const KERNEL: Limits = Limits {
    cpu_seconds: 2,
    ..AMPLE
};
/// Only the parent can end it.
const PARENT: Limits = Limits {
    wall: Duration::from_millis(300),
    ..AMPLE
};

async fn run(limits: Limits, rules: &str) -> Evaluation {
    let long = "a".repeat(300_000);
    let flat: Vec<_> = (0..300).map(|number| json!({ "n": number })).collect();
    let input = input(&json!({ "long": long, "flat": flat }));
    let attached = [attached(bundle("advisory", rules))];
    let evaluator = Evaluator::with_limits(program(), limits);
    let context = context(&input);
    let evaluation = evaluator.evaluate(&attached, &input, context).await;
    evaluation.unwrap()
}

/// Each row fails in the named way although its policy is only advisory, and names its policy.
async fn all_fail(limits: Limits, code: ErrorCode, rows: &[(&str, &str)]) {
    for (name, rules) in rows {
        let evaluation = run(limits, rules).await;
        let finding = &evaluation.findings[0];
        assert_eq!(evaluation.outcome, PolicyOutcome::Error, "{name}");
        assert_eq!(
            evaluation.error_code,
            Some(code),
            "{name}: {}",
            finding.message
        );
        assert_eq!(evaluation.findings.len(), 1, "{name}");
        assert_eq!(finding.policy_id, "tested", "{name}: {}", finding.message);
        assert_eq!(finding.rule_id, code.as_str(), "{name}");
        Evaluation::from_bytes(&evaluation.to_bytes()).unwrap();
    }
    unharmed().await;
}

/// The parent can still evaluate, and no child is left.
async fn unharmed() {
    let evaluation = run(AMPLE, "deny contains \"no\" if input.plan.long == \"\"").await;
    assert_eq!(evaluation.outcome, PolicyOutcome::Pass);
}

#[tokio::test]
async fn what_never_ends_is_ended_by_the_timer() {
    let rows = [
        (
            "cross join",
            "deny contains \"x\" if { some a in numbers.range(1, 100000); some b in numbers.range(1, 100000); a + b == 0 }",
        ),
        (
            "every pair of pairs",
            "deny contains \"x\" if { some a in input.plan.flat; some b in input.plan.flat; some c in input.plan.flat; some d in input.plan.flat; a.n + b.n + c.n + d.n < 0 }",
        ),
        (
            "comprehension",
            "deny contains \"x\" if count([1 | some a in numbers.range(1, 3000); some b in numbers.range(1, 3000); a + b > 0]) == 0",
        ),
        (
            "many regexes",
            "deny contains \"x\" if { some a in numbers.range(1, 100000); regex.match(sprintf(\"(a{1,50}){1,9}b%d\", [a]), input.plan.long) }",
        ),
    ];
    all_fail(TIMER, ErrorCode::PolicyTimeout, &rows).await;
    let slow = "slow(n) if { some a in numbers.range(1, 100000); some b in numbers.range(1, 100000); a + b == n }\nslow_rule if slow(0)\n";
    let uses = [
        ("a function", "deny contains \"x\" if slow(0)"),
        ("a negated function", "deny contains \"x\" if not slow(0)"),
        ("a rule", "deny contains \"x\" if slow_rule"),
        ("a negated rule", "deny contains \"x\" if not slow_rule"),
        (
            "a default",
            "default ok := true\nok := false if slow(0)\ndeny contains \"x\" if not ok",
        ),
        (
            "a comprehension",
            "deny contains \"x\" if count([1 | slow(0)]) > 0",
        ),
        (
            "every",
            "deny contains \"x\" if every n in [0, 0] { not slow(n) }",
        ),
        (
            "with",
            "deny contains \"x\" if not slow_rule with input as {}",
        ),
        (
            "else",
            "ok := 1 if slow(0) else := 2\ndeny contains \"x\" if ok == 1",
        ),
    ];
    for (name, rules) in uses {
        let rules = format!("{slow}{rules}");
        all_fail(TIMER, ErrorCode::PolicyTimeout, &[(name, &rules)]).await;
    }
}

#[tokio::test]
async fn what_the_timer_cannot_interrupt_is_ended_by_the_kernel() {
    let rows = [
        (
            "quadratic regex",
            "deny contains \"x\" if count(regex.find_n(\"a.*b|a\", input.plan.long, -1)) == 0",
        ),
        (
            "wide shift",
            "deny contains \"x\" if format_int(bits.lsh(1, 100000000), 10) == \"\"",
        ),
    ];
    all_fail(KERNEL, ErrorCode::PolicyCrashed, &rows).await;
    let mut squares = "deny contains \"x\" if {\n\tx0 := 12345678901234567\n".to_owned();
    for number in 1..30 {
        let before = number - 1;
        writeln!(squares, "\tx{number} := x{before} * x{before}").unwrap();
    }
    squares.push_str("\tx29 == 0\n}");
    all_fail(KERNEL, ErrorCode::PolicyCrashed, &[("squares", &squares)]).await;
}

#[tokio::test]
async fn recursion_of_functions_takes_only_the_limited_process_down() {
    let rows = [
        (
            "direct",
            "f(x) := f(x + 1)\ndeny contains \"x\" if f(1) == 0",
        ),
        (
            "mutual",
            "f(x) := g(x + 1)\ng(x) := f(x + 1)\ndeny contains \"x\" if f(1) == 0",
        ),
    ];
    all_fail(KERNEL, ErrorCode::PolicyCrashed, &rows).await;
}

#[tokio::test]
async fn memory_has_an_end() {
    let doubled = |first: &str, join: &str| {
        let mut text = format!("deny contains \"x\" if {{\n\tx0 := {first}\n");
        for number in 1..41 {
            let double = join.replace('@', &format!("x{}", number - 1));
            writeln!(text, "\tx{number} := {double}").unwrap();
        }
        text + "\tcount(x40) == 0\n}"
    };
    let (texts, arrays) = (
        doubled("\"aaaaaaaaaaaaaaaa\"", "concat(\"\", [@, @])"),
        doubled("[1, 2, 3, 4, 5, 6, 7, 8]", "array.concat(@, @)"),
    );
    let rows = [
        ("text doubled", texts.as_str()),
        ("array doubled", arrays.as_str()),
        (
            "range",
            "deny contains \"x\" if count(numbers.range(1, 1000000000)) == 0",
        ),
        (
            "padding",
            "deny contains \"x\" if sprintf(\"%2000000000d\", [1]) == \"\"",
        ),
        (
            "replace",
            "deny contains \"x\" if { big := replace(input.plan.long, \"a\", input.plan.long); count(big) == 0 }",
        ),
    ];
    all_fail(KERNEL, ErrorCode::PolicyCrashed, &rows).await;
}

#[tokio::test]
async fn whatever_else_fails_the_parent_ends_what_lives_too_long() {
    let rules = "deny contains \"x\" if { some a in numbers.range(1, 100000); some b in numbers.range(1, 100000); a + b == 0 }";
    let evaluation = run(PARENT, rules).await;
    assert_eq!(evaluation.error_code, Some(ErrorCode::PolicyTimeout));
    assert!(evaluation.findings[0].message.contains("was killed"));
    unharmed().await;
}

#[tokio::test]
async fn what_the_engine_refuses_is_an_error_and_never_an_empty_set() {
    let parentheses = format!(
        "deny contains \"x\" if {}1{} == 2",
        "(".repeat(40),
        ")".repeat(40)
    );
    let column = format!(
        "deny contains \"x\" if 1 == 2 # \ndeny contains \"{}\" if false",
        "y".repeat(1_100)
    );
    let rows = [
        (
            "recursive rules",
            "a if b\nb if a\ndeny contains \"x\" if a",
        ),
        (
            "division by zero",
            "deny contains \"x\" if 1 / count(input.run) == 1",
        ),
        (
            "builtin type error",
            "deny contains \"x\" if to_number(\"one\") == 1",
        ),
        (
            "conflicting rules",
            "a := 1 if input.plan\na := 2 if input.run == {}\ndeny contains \"x\" if a == 3",
        ),
        (
            "huge regex",
            "deny contains \"x\" if regex.match(\"((a{1,100}){1,100}){1,100}\", input.plan.long)",
        ),
        ("old syntax", "deny[msg] { msg := \"x\" }"),
        ("parentheses", &parentheses),
        ("long line", &column),
        ("complete rule", "deny := true"),
        ("array", "deny := [\"x\"]"),
        ("number", "deny contains 1"),
        (
            "unknown key",
            "deny contains {\"rule_id\": \"r\", \"title\": \"t\", \"message\": \"m\", \"level\": \"advisory\"}",
        ),
        ("a rule below", "deny.a contains \"x\""),
        ("neither set", "allow := true"),
        (
            "random number",
            "deny contains \"x\" if rand.intn(\"a\", 5) == 7",
        ),
        ("time", "deny contains \"x\" if time.now_ns() == 7"),
        (
            "network",
            "deny contains \"x\" if http.send({\"method\": \"get\", \"url\": \"http://127.0.0.1/\"}).status_code == 200",
        ),
        (
            "host",
            "deny contains \"x\" if opa.runtime().env.PATH == \"\"",
        ),
        (
            "identifier",
            "deny contains \"x\" if uuid.rfc4122(\"a\") == \"\"",
        ),
        (
            "address range",
            "deny contains \"x\" if count(net.cidr_expand(\"0.0.0.0/0\")) == 0",
        ),
        (
            "patch",
            "deny contains \"x\" if json.patch(input, []) == {}",
        ),
        (
            "walk",
            "deny contains \"x\" if { walk(input, [_, part]); part == 1 }",
        ),
        (
            "name lookup",
            "deny contains \"x\" if count(net.lookup_ip_addr(\"localhost\")) == 0",
        ),
    ];
    all_fail(AMPLE, ErrorCode::PolicyError, &rows).await;
}

#[tokio::test]
async fn what_only_looks_hostile_is_evaluated() {
    for rules in [
        "deny contains \"x\" if not regex.match(\"^(a+)+$\", input.plan.long)",
        "deny contains \"x\" if bits.lsh(1, 10000000000)",
        "deny contains \"x\" if { print(input); false }",
    ] {
        let evaluation = run(AMPLE, rules).await;
        assert_eq!(
            evaluation.outcome,
            PolicyOutcome::Pass,
            "{rules}: {evaluation:?}"
        );
    }
}

#[tokio::test]
async fn a_bundle_that_takes_too_long_to_load_is_refused_at_upload() {
    let literal = format!("x := {}1{}\n", "[".repeat(8), "]".repeat(8));
    let rules = format!("{}deny contains \"x\" if false", literal.repeat(10_000));
    let evaluator = Evaluator::with_limits(program(), KERNEL);
    let refused = evaluator.validate(&bundle("advisory", &rules)).await;
    let Err(BundleError::TooCostly { file, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(file, "tested.rego");
}

#[tokio::test]
async fn deeper_literals_do_not_reach_the_parser() {
    let rules = format!(
        "package stackship.tested\ndeny contains {}1{}",
        "[".repeat(18),
        "]".repeat(18)
    );
    let manifest = manifest(&[policy("tested", "advisory")]);
    let upload = archive(&[("manifest.json", &manifest), ("tested.rego", &rules)]);
    let refused = stackship_policy::Bundle::from_archive(&upload).unwrap_err();
    assert!(
        refused.to_string().contains("nest deeper than 8 on line 2"),
        "{refused}"
    );
}

#[tokio::test]
async fn an_evaluator_without_a_program_says_so_and_gives_no_result() {
    let evaluator = Evaluator::new("/nowhere/stackship".into());
    let input = input(&json!({}));
    let attached = [attached(bundle("advisory", "deny contains \"x\" if false"))];
    let context = context(&input);
    assert!(
        evaluator
            .evaluate(&attached, &input, context)
            .await
            .is_err()
    );
    let bundle = &attached[0].bundle;
    let refused = evaluator.validate(bundle).await.unwrap_err();
    assert_eq!(refused.code(), "POLICY_EVALUATOR_UNAVAILABLE");
}

#[tokio::test]
async fn a_program_that_is_no_evaluator_gives_no_result() {
    let input = input(&json!({}));
    let attached = [attached(bundle("advisory", "deny contains \"x\" if false"))];
    for (program, code) in [
        ("/bin/true", ErrorCode::PolicyError),
        ("/bin/echo", ErrorCode::PolicyError),
        ("/bin/false", ErrorCode::PolicyCrashed),
    ] {
        let evaluator = Evaluator::with_limits(program.into(), AMPLE);
        let context = context(&input);
        let evaluation = evaluator
            .evaluate(&attached, &input, context)
            .await
            .unwrap();
        assert_eq!(evaluation.error_code, Some(code), "{program}");
    }
    // It never stops talking, so only the bound on its answer can end it.
    let endless = std::path::PathBuf::from("/usr/bin/yes");
    let evaluation = Evaluator::with_limits(endless, AMPLE);
    let evaluation = evaluation
        .evaluate(&attached, &input, context(&input))
        .await
        .unwrap();
    assert_eq!(evaluation.error_code, Some(ErrorCode::PolicyError));
    assert!(evaluation.findings[0].message.contains("wrote more than"));
}

#[tokio::test]
async fn a_value_that_nests_deeply_is_evaluated_or_ended_by_the_kernel() {
    let mut rules = "deny contains \"x\" if {\n\tx0 := 1\n".to_owned();
    for number in 1..=15_000 {
        writeln!(rules, "\tx{number} := [x{}]", number - 1).unwrap();
    }
    rules.push_str("\tprint(x15000)\n\tfalse\n}");
    let evaluation = run(KERNEL, &rules).await;
    let crashed = evaluation.error_code == Some(ErrorCode::PolicyCrashed);
    let evaluated = evaluation.outcome == PolicyOutcome::Pass && evaluation.findings.is_empty();
    assert!(crashed || evaluated, "{evaluation:?}");
    unharmed().await;
}

/// What OPA calls a builtin error must not turn into something undefined anywhere: a rule that does
/// not hold denies nothing.
#[tokio::test]
async fn an_error_is_an_error_wherever_it_stands() {
    let mistakes = [
        "to_number(\"one\") == 1",
        "startswith(1, \"x\")",
        "count(1) == 1",
        "1 / count(input.run) == 1",
        "rand.intn(\"a\", 2) == 1",
        "no_such_function(1)",
        "regex.match(\"(\", \"a\")",
        "json.unmarshal(\"{\") == 1",
    ];
    let places = [
        "deny contains \"x\" if @",
        "deny contains \"x\" if not @",
        "f(_) if @\ndeny contains \"x\" if f(1)",
        "f(_) if @\ndeny contains \"x\" if not f(1)",
        "a if @\ndeny contains \"x\" if not a",
        "default a := true\na := false if @\ndeny contains \"x\" if not a",
        "deny contains \"x\" if count([1 | @]) > 0",
        "deny contains \"x\" if every _ in [1, 2] { @ }",
        "a := 1 if @ else := 2\ndeny contains \"x\" if a == 1",
        "a if @\ndeny contains \"x\" if a with input.other as 1",
        "deny contains sprintf(\"%v\", [[1 | @]]) if false\ndeny contains \"x\" if count({1 | @}) > 0",
    ];
    let mut rows = vec![];
    for mistake in mistakes {
        rows.extend(places.map(|place| {
            (
                format!("{place} with {mistake}"),
                place.replace('@', mistake),
            )
        }));
    }
    let rows: Vec<_> = rows
        .iter()
        .map(|(name, rules)| (name.as_str(), rules.as_str()))
        .collect();
    all_fail(AMPLE, ErrorCode::PolicyError, &rows).await;
}
