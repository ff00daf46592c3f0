//! A runner on a machine of its own, which dies while the control plane lives.

use crate::support::{RemoteRunner, SLOW_PLAN, World, eventually};

const SETTINGS: &[(&str, &str)] = &[
    ("STACKSHIP_RUNNER__ENABLED", "false"),
    ("STACKSHIP_LEASE_SECONDS", "5"),
];
/// An apply that never ends.
const ENDLESS_APPLY: &str = r#"
resource "terraform_data" "one" {
  provisioner "local-exec" {
    command = "echo begun; exec sleep 600"
  }
}
"#;

#[test]
fn a_remote_runner_that_dies_is_replaced_in_a_plan_and_leaves_a_question_in_an_apply() {
    let world = World::own(SETTINGS);
    let mut runner =
        RemoteRunner::start(&world.server, &format!("it-{}-remote", std::process::id()));
    let workspace = world.owner.workspace("remote");
    let files = [("main.tf", SLOW_PLAN), ("apply.tf", ENDLESS_APPLY)];
    let run = world.owner.start(&workspace, "plan_and_apply", &files);
    world
        .owner
        .wait_log(&run, "plan", "successfully initialized");
    runner.kill();
    runner.restart();
    let asked = world.owner.wait_status(&run, "awaiting_approval");
    let attempts = asked["plan"]["attempts"].as_array().map(Vec::len);
    assert_eq!(attempts, Some(2), "{asked:#}");

    world.owner.approve(&run);
    world.owner.wait_log(&run, "apply", "begun");
    let held = world.owner.lock(&workspace);
    runner.kill();
    runner.restart();
    let doubtful = world.owner.wait_status(&run, "recovery_required");
    assert_eq!(doubtful["recovery"]["reason"], "lease_lost", "{doubtful:#}");
    let attempts = doubtful["apply"]["attempts"].as_array().map(Vec::len);
    assert_eq!(
        attempts,
        Some(1),
        "an apply is never begun a second time: {doubtful:#}"
    );
    let detail = world.owner.detail(&workspace);
    assert_eq!(world.owner.lock(&workspace), held);
    assert!(detail["state"].is_null(), "{detail:#}");

    // The runner itself is as good as before.
    let other = world.owner.workspace("remote-after");
    let quick = [("main.tf", "resource \"terraform_data\" \"one\" {}\n")];
    let next = world.owner.start(&other, "plan_and_apply", &quick);
    world.owner.approve(&next);
    world.owner.wait_status(&next, "applied");
    eventually("the lock is free", || {
        let detail = world.owner.detail(&other);
        detail["lock"].is_null().then_some(())
    });
}
