//! What a plan would change, as a person reads it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::providers::FIXTURE;
use crate::support::{Client, World, text};

const BEFORE: &str = r#"
resource "terraform_data" "one" {
  input = "first"
}
resource "terraform_data" "gone" {
}
output "told" {
  value = "before"
}
"#;

const AFTER: &str = r#"
resource "terraform_data" "two" {
  input = "first"
}
moved {
  from = terraform_data.one
  to   = terraform_data.two
}
removed {
  from = terraform_data.gone
  lifecycle {
    destroy = false
  }
}
resource "fixture_object" "found" {
  name = "found"
}
import {
  to = fixture_object.found
  id = "object-found"
}
output "told" {
  value = "after"
}
"#;

fn plan_changes(client: &Client, run: &str) -> Value {
    let path = format!("/v1/runs/{run}/plan-changes");
    let (status, document) = client.send(Method::GET, &path, None);
    assert_eq!(status, 200, "{document:#}");
    document
}

/// Address and action of every resource, by address.
fn actions(document: &Value) -> Vec<(String, String)> {
    let resources = document["resources"].as_array().expect("a list");
    let mut actions: Vec<_> = resources
        .iter()
        .map(|resource| (text(&resource["address"]), text(&resource["action"])))
        .collect();
    actions.sort();
    actions
}

fn pair(address: &str, action: &str) -> (String, String) {
    (address.to_owned(), action.to_owned())
}

#[test]
fn what_counts_would_not_tell_is_shown_as_what_it_is() {
    let world = World::shared();
    let workspace = world.owner.workspace("plan-changes");
    let before = [("fixture.tf", FIXTURE), ("main.tf", BEFORE)];
    let run = world.owner.start(&workspace, "plan_and_apply", &before);
    world.owner.approve(&run);
    world.owner.wait_status(&run, "applied");
    let created = plan_changes(&world.owner, &run);
    assert_eq!(created["schema"], "stackship.plan-diff/v1");
    let expected = ["terraform_data.gone", "terraform_data.one"];
    assert_eq!(
        actions(&created),
        expected.map(|address| pair(address, "create"))
    );

    let after = [("fixture.tf", FIXTURE), ("main.tf", AFTER)];
    let run = world.owner.start(&workspace, "plan_and_apply", &after);
    let asked = world.owner.wait_status(&run, "awaiting_approval");
    let document = plan_changes(&world.owner, &run);
    let expected = [
        pair("fixture_object.found", "import"),
        pair("terraform_data.gone", "forget"),
        pair("terraform_data.two", "move"),
    ];
    assert_eq!(actions(&document), expected, "{document:#}");
    let counts = json!({"create": 0, "change": 0, "destroy": 0, "replace": 0,
        "import": 1, "forget": 1, "move": 1, "output": 1});
    assert_eq!(document["counts"], counts);
    assert_eq!(asked["plan"]["result"]["counts"], counts, "{asked:#}");
    let output = &document["outputs"][0];
    assert_eq!(output["name"], "told");
    let change = &output["detail"]["changes"][0];
    assert_eq!(
        (&change["before"]["text"], &change["after"]["text"]),
        (&json!("before"), &json!("after")),
        "{document:#}"
    );
    let whole = document.to_string();
    assert!(!whole.contains("fixture-token-of-found"), "{whole}");
    world.owner.cancel(&run);
}
