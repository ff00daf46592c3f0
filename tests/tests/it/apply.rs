//! The main job: `tofu apply` in a terminal becomes a sandboxed plan, an approval and a state.

use crate::support::World;

const ONE: &str = r#"
resource "terraform_data" "one" {
  input = "first"
}
"#;

#[test]
fn a_plan_that_is_answered_with_yes_is_applied_and_published() {
    let world = World::shared();
    let (workspace, checkout) = world.begin("apply-yes", ONE);
    let mut terminal = checkout.apply_until_asked();
    terminal.expect("Plan: 1 to add, 0 to change, 0 to destroy.");
    terminal.type_line("yes");
    let text = terminal.exits(0);
    assert!(
        text.contains("Apply complete! Resources: 1 added"),
        "{text}"
    );
    let run = world.owner.run(&world.owner.only_run(&workspace));
    assert_eq!(run["status"], "applied");
    assert_eq!(run["apply"]["published"]["serial"], 1);
    assert_eq!(world.owner.detail(&workspace)["state"]["serial"], 1);
}

#[test]
fn a_plan_that_is_answered_with_no_is_discarded() {
    let world = World::shared();
    let (workspace, checkout) = world.begin("apply-no", ONE);
    let mut terminal = checkout.apply_until_asked();
    terminal.type_line("no");
    let text = terminal.exits(1);
    assert!(text.contains("Apply discarded"), "{text}");
    let run = world.owner.run(&world.owner.only_run(&workspace));
    assert_eq!(run["status"], "discarded");
    assert!(world.owner.detail(&workspace)["state"].is_null());
}

#[test]
fn automatic_apply_is_refused_and_leaves_no_run() {
    let world = World::shared();
    let (workspace, checkout) = world.begin("auto-approve", ONE);
    let text = checkout.tofu(&["apply", "-auto-approve"]).exits(1);
    let words = "Automatic apply is not supported. Rerun tofu apply without -auto-approve.";
    assert!(text.contains(words), "{text}");
    assert!(world.owner.runs(&workspace).is_empty());
}

#[test]
fn a_plan_without_changes_ends_without_a_question_and_without_an_apply() {
    let world = World::shared();
    let (workspace, checkout) = world.begin("no-changes", ONE);
    checkout.apply();
    let text = checkout.tofu(&["apply"]).exits(0);
    assert!(text.contains("No changes."), "{text}");
    assert!(!text.contains("Enter a value"), "{text}");
    let runs = world.owner.runs(&workspace);
    let run = world.owner.run(&runs[1]);
    assert_eq!(run["ended"]["reason"], "no_changes", "{run:#}");
    assert!(run["approval"].is_null(), "{run:#}");
    assert_eq!(
        run["apply"]["attempts"].as_array().map(Vec::len),
        Some(0),
        "{run:#}"
    );
}

#[test]
fn the_error_of_a_failing_plan_reaches_the_terminal() {
    let world = World::shared();
    let main = r#"
resource "terraform_data" "one" {
  lifecycle {
    precondition {
      condition     = 1 > length(terraform_data.two.input)
      error_message = "This cannot be planned."
    }
  }
}
resource "terraform_data" "two" {
  input = "x"
}
"#;
    let (workspace, checkout) = world.begin("plan-fails", main);
    let text = checkout.tofu(&["apply"]).exits(1);
    assert!(text.contains("This cannot be planned."), "{text}");
    let run = world.owner.run(&world.owner.only_run(&workspace));
    assert_eq!(run["ended"]["reason"], "plan_failed", "{run:#}");
}
