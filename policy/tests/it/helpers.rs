//! The helpers' package, and the worked examples of docs/policies.md.

use serde_json::{Value, json};
use stackship_domain::run::PolicyOutcome;

use crate::support::evaluate;

fn resource(address: &str, actions: &[&str], after: &Value) -> Value {
    json!({
        "address": address,
        "mode": "managed",
        "type": "example_thing",
        "change": { "actions": actions, "before": null, "after": after },
    })
}

fn plan(resources: &[Value]) -> Value {
    json!({ "format_version": "1.2", "resource_changes": resources })
}

/// The messages of one rule that asks the helpers about one resource.
async fn answers(condition: &str, after: &Value) -> bool {
    let rules = format!(
        "import data.stackship.helpers\ndeny contains \"yes\" if {{\n\tsome rc in input.plan.resource_changes\n\t{condition}\n}}"
    );
    let plan = plan(&[resource("a.b", &["create", "delete"], after)]);
    let evaluation = evaluate("advisory", &rules, &plan).await;
    assert_eq!(
        evaluation.outcome,
        PolicyOutcome::Pass,
        "{condition}: {evaluation:?}"
    );
    evaluation.findings.len() == 1
}

#[tokio::test]
async fn the_helpers_see_marks_at_any_depth() {
    let unknown = json!({"__stackship": "unknown"});
    let sensitive = json!({"__stackship": "sensitive"});
    let after = json!({
        "plain": "x",
        "empty": null,
        "no": false,
        "id": unknown,
        "password": sensitive,
        "tags": {"owner": "a", "team": unknown},
        "rules": [{"port": 1}, {"port": sensitive}],
    });
    for (condition, holds) in [
        ("helpers.unknown(rc, [\"id\"])", true),
        ("helpers.unknown(rc, [\"id\", \"inside\", \"it\"])", true),
        ("helpers.unknown(rc, [\"tags\", \"team\"])", true),
        ("helpers.unknown(rc, [\"tags\", \"owner\"])", false),
        ("helpers.unknown(rc, [\"tags\"])", false),
        ("helpers.unknown(rc, [\"password\"])", false),
        ("helpers.unknown(rc, [\"absent\"])", false),
        ("helpers.sensitive(rc, [\"password\"])", true),
        ("helpers.sensitive(rc, [\"rules\", 1, \"port\"])", true),
        ("helpers.sensitive(rc, [\"rules\", 0, \"port\"])", false),
        ("helpers.sensitive(rc, [\"id\"])", false),
        ("helpers.known(rc, [\"plain\"])", true),
        ("helpers.known(rc, [\"plain\", \"inside\"])", false),
        ("helpers.known(rc, [\"no\"])", true),
        ("helpers.known(rc, [\"tags\", \"owner\"])", true),
        ("helpers.known(rc, [\"tags\"])", false),
        ("helpers.known(rc, [\"rules\"])", false),
        ("helpers.known(rc, [\"id\"])", false),
        ("helpers.known(rc, [\"id\", \"inside\"])", false),
        ("helpers.known(rc, [\"empty\"])", false),
        ("helpers.known(rc, [\"absent\"])", false),
        ("helpers.actions(rc) == {\"delete\", \"create\"}", true),
        ("\"delete\" in helpers.actions(rc)", true),
        ("\"update\" in helpers.actions(rc)", false),
    ] {
        assert_eq!(answers(condition, &after).await, holds, "{condition}");
    }
}

#[tokio::test]
async fn the_helpers_can_be_asked_about_a_resource_that_is_not_there_any_more() {
    for after in [Value::Null, json!({"__stackship": "unknown"})] {
        let whole = after.is_object();
        assert_eq!(
            answers("helpers.unknown(rc, [\"id\"])", &after).await,
            whole
        );
        assert!(!answers("helpers.sensitive(rc, [\"id\"])", &after).await);
        assert!(!answers("helpers.known(rc, [\"id\"])", &after).await);
    }
}

/// The Rego blocks of the page for policy authors, without their package lines.
fn example(name: &str) -> String {
    let page = include_str!("../../../docs/policies.md");
    let package = format!("package stackship.{name}\n");
    let block = page
        .split("```rego\n")
        .find_map(|block| block.strip_prefix(&package));
    block.unwrap().split("```").next().unwrap().to_owned()
}

async fn denied(name: &str, resources: &[Value]) -> Vec<String> {
    let evaluation = evaluate("hard_mandatory", &example(name), &plan(resources)).await;
    assert_ne!(evaluation.outcome, PolicyOutcome::Error, "{evaluation:?}");
    let address = |finding: &stackship_policy::Finding| finding.resource_address.clone().unwrap();
    evaluation.findings.iter().map(address).collect()
}

#[tokio::test]
async fn the_example_about_public_resources_denies_their_destruction() {
    let change = |address: &str, actions: &[&str], before: &Value| {
        let mut resource = resource(address, actions, &Value::Null);
        resource["change"]["before"] = before.clone();
        resource
    };
    let public = json!({"tags": {"exposure": "public"}});
    let resources = [
        change("a.public", &["delete"], &public),
        change("a.replaced", &["create", "delete"], &public),
        change("a.dropped_and_made", &["forget", "create"], &public),
        change(
            "a.withheld",
            &["delete"],
            &json!({"tags": {"exposure": {"__stackship": "sensitive"}}}),
        ),
        change("a.untagged", &["delete"], &json!({"name": "x"})),
        change(
            "a.private",
            &["delete"],
            &json!({"tags": {"exposure": "private"}}),
        ),
        change("a.updated", &["update"], &public),
    ];
    let denied = denied("public_destroys", &resources).await;
    assert_eq!(
        denied,
        ["a.public", "a.replaced", "a.untagged", "a.withheld"]
    );
}

#[tokio::test]
async fn the_example_about_tags_denies_what_is_not_known_and_true() {
    let tagged =
        |address: &str, tags: &Value| resource(address, &["create"], &json!({"tags": tags}));
    let good = json!({"owner": "a", "cost_center": "b"});
    let mut resources = vec![
        tagged("a.good", &good),
        tagged(
            "a.unknown",
            &json!({"owner": {"__stackship": "unknown"}, "cost_center": "b"}),
        ),
        tagged(
            "a.sensitive",
            &json!({"owner": {"__stackship": "sensitive"}, "cost_center": "b"}),
        ),
        tagged("a.absent", &json!({"owner": "a"})),
        tagged("a.empty", &json!({"owner": "", "cost_center": "b"})),
        tagged("a.all_unknown", &json!({"__stackship": "unknown"})),
        tagged("a.null", &Value::Null),
        resource("a.deleted", &["delete"], &Value::Null),
    ];
    resources.push(resource("a.untagged", &["update"], &json!({"name": "x"})));
    let mut denied = denied("required_tags", &resources).await;
    denied.dedup();
    denied.sort_unstable();
    denied.dedup();
    assert_eq!(
        denied,
        [
            "a.absent",
            "a.all_unknown",
            "a.empty",
            "a.null",
            "a.sensitive",
            "a.unknown",
            "a.untagged"
        ]
    );
}
