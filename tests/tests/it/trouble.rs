//! Phases that fail or are told to stop.

use crate::support::{ENDLESS_PLAN, World, eventually};

/// How long an interrupted phase may take to end by itself.
const SHORT_GRACE: &[(&str, &str)] = &[("STACKSHIP_RUNNER__INTERRUPT_GRACE_SECONDS", "2")];

#[test]
fn a_failing_apply_keeps_what_it_did_aside_and_leaves_the_published_state() {
    let world = World::shared();
    let main = r#"
resource "terraform_data" "one" {
  provisioner "local-exec" {
    command = "echo this goes wrong; exit 1"
  }
}
"#;
    let (workspace, checkout) = world.begin("apply-fails", main);
    let mut terminal = checkout.apply_until_asked();
    terminal.type_line("yes");
    let shown = terminal.exits(1);
    assert!(shown.contains("local-exec provisioner error"), "{shown}");
    let run = world.owner.run(&world.owner.only_run(&workspace));
    assert_eq!(run["status"], "failed", "{run:#}");
    assert_eq!(run["apply"]["has_emergency_state"], true, "{run:#}");
    assert!(run["apply"]["published"].is_null(), "{run:#}");
    assert!(world.owner.detail(&workspace)["state"].is_null());
}

#[test]
fn a_run_can_be_canceled_while_it_plans() {
    let world = World::own(SHORT_GRACE);
    let workspace = world.owner.workspace("cancel-plan");
    let run = world
        .owner
        .start(&workspace, "plan_and_apply", &[("main.tf", ENDLESS_PLAN)]);
    world
        .owner
        .wait_log(&run, "plan", "successfully initialized");
    world.owner.cancel(&run);
    world.owner.wait_status(&run, "canceled");
    eventually("the lock is free", || {
        let detail = world.owner.detail(&workspace);
        detail["lock"].is_null().then_some(())
    });
}
#[test]
fn an_apply_that_is_told_to_stop_is_in_doubt_and_keeps_what_it_did() {
    let world = World::own(SHORT_GRACE);
    let main = r#"
resource "terraform_data" "one" {
  provisioner "local-exec" {
    command = "echo begun; exec sleep 600"
  }
}
"#;
    let workspace = world.owner.workspace("cancel-apply");
    let files = [("main.tf", main)];
    let run = world.owner.start(&workspace, "plan_and_apply", &files);
    world.owner.approve(&run);
    world.owner.wait_log(&run, "apply", "begun");
    let held = world.owner.lock(&workspace);
    world.owner.cancel(&run);
    let doubtful = world.owner.wait_status(&run, "recovery_required");
    assert_eq!(
        doubtful["recovery"]["reason"], "interrupted",
        "{doubtful:#}"
    );
    assert_eq!(
        doubtful["apply"]["has_emergency_state"], true,
        "{doubtful:#}"
    );
    let detail = world.owner.detail(&workspace);
    assert_eq!(world.owner.lock(&workspace), held);
    assert!(detail["state"].is_null(), "{detail:#}");
}
