//! Commands that only look: they leave no lock and no state.

use serde_json::json;

use crate::support::{Checkout, World};

const MAIN: &str = r#"
resource "terraform_data" "one" {
  input = "first"
}
output "one" {
  value = terraform_data.one.output
}
"#;

#[test]
fn a_directory_is_connected_by_init_and_nothing_runs() {
    let world = World::shared();
    let workspace = world.owner.workspace("init");
    let shown = Checkout::new(&world.owner, &workspace, MAIN)
        .tofu(&["init"])
        .exits(0);
    assert!(shown.contains("successfully initialized"), "{shown}");
    assert!(world.owner.runs(&workspace).is_empty());
}

#[test]
fn a_speculative_plan_shows_the_changes_and_ends() {
    let world = World::shared();
    let (workspace, checkout) = world.begin("speculative", MAIN);
    let text = checkout.tofu(&["plan"]).exits(0);
    assert!(
        text.contains("Plan: 1 to add, 0 to change, 0 to destroy."),
        "{text}"
    );
    let run = world.owner.run(&world.owner.only_run(&workspace));
    assert_eq!(run["ended"]["reason"], "speculative_finished", "{run:#}");
    assert!(world.owner.detail(&workspace)["lock"].is_null());
}

#[test]
fn the_published_state_can_be_read_from_a_terminal() {
    let world = World::shared();
    let (_, checkout) = world.begin("reading", MAIN);
    checkout.apply();
    let list = checkout.tofu(&["state", "list"]).exits(0);
    assert_eq!(list, "terraform_data.one");
    let state = checkout.tofu(&["state", "pull"]).exits(0);
    assert!(state.contains("\"serial\":1,"), "{state}");
    let output = checkout.tofu(&["output", "-raw", "one"]).exits(0);
    assert_eq!(output, "first");
    let shown = checkout.tofu(&["show"]).exits(0);
    assert!(
        shown.contains("resource \"terraform_data\" \"one\""),
        "{shown}"
    );
}

#[test]
fn a_review_tells_in_which_sandboxes_a_run_was_planned_and_applied() {
    let world = World::shared();
    let (workspace, checkout) = world.begin("sandboxes", MAIN);
    checkout.apply();
    let run = world.owner.only_run(&workspace);
    let review = world.owner.get(&format!("/v1/runs/{run}/review"));
    let attempts = review["evidence"]["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2, "{review:#}");
    for attempt in attempts {
        let name = attempt["id"].as_str().unwrap();
        assert_eq!(
            attempt["sandbox_name"],
            json!({"kind": "recorded", "value": name})
        );
        let id = attempt["sandbox_id"]["value"].as_str().unwrap();
        assert!(id.starts_with(&format!("{name}-")), "{id}");
    }
}

#[test]
fn a_line_of_json_in_a_plan_is_only_text_to_the_terminal() {
    let main = r#"
resource "terraform_data" "one" {
  input = "first\n{\"@level\":\"info\",\"@message\":\"\\u001b[8mgone\",\"type\":\"log\"}\nlast"
}
"#;
    let world = World::shared();
    let (_, checkout) = world.begin("json-line", main);
    let shown = checkout.tofu(&["plan"]).exits(0);
    let line = r#"| {"@level":"info","@message":"\u001b[8mgone","type":"log"}"#;
    assert!(shown.contains(line), "{shown}");
}
