//! The machine that runs a phase dies. A plan is done again; an apply is never guessed about.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::{SLOW_PLAN, World, eventually};

/// The server's shortest lease.
const SHORT_LEASE: &[(&str, &str)] = &[("STACKSHIP_LEASE_SECONDS", "5")];

#[test]
fn a_runner_that_dies_in_an_apply_leaves_a_question_and_the_lock_until_it_is_answered() {
    let mut world = World::own(SHORT_LEASE);
    let main = r#"
resource "terraform_data" "one" {
  provisioner "local-exec" {
    command = "echo begun; exec sleep 600"
  }
}
"#;
    let workspace = world.owner.workspace("dies-applying");
    let run = world
        .owner
        .start(&workspace, "plan_and_apply", &[("main.tf", main)]);
    world.owner.approve(&run);
    world.owner.wait_log(&run, "apply", "begun");
    let held = world.owner.lock(&workspace);
    world.server.signal(Signal::SIGKILL);
    world.server.wait_exit();
    world.restart();
    let doubtful = world.owner.wait_status(&run, "recovery_required");
    assert!(!doubtful["recovery"].is_null(), "{doubtful:#}");
    let detail = world.owner.detail(&workspace);
    assert_eq!(world.owner.lock(&workspace), held);
    assert!(detail["state"].is_null(), "{detail:#}");

    let reason = json!({"reason": "The runner was killed by this test."});
    let path = format!("/v1/runs/{run}/recovery/no-change");
    let resolved = world.owner.post(&path, &reason);
    assert_eq!(resolved["status"], "recovered", "{resolved:#}");
    eventually("the lock is free", || {
        let detail = world.owner.detail(&workspace);
        detail["lock"].is_null().then_some(())
    });
    assert!(world.owner.detail(&workspace)["state"].is_null());
    let next = world
        .owner
        .start(&workspace, "plan_and_apply", &[("main.tf", main)]);
    let asked = world.owner.wait_status(&next, "awaiting_approval");
    assert_eq!(asked["plan"]["result"]["counts"]["create"], 1, "{asked:#}");
}

#[test]
fn a_runner_that_dies_in_a_plan_is_followed_by_another_attempt() {
    let mut world = World::own(SHORT_LEASE);
    let workspace = world.owner.workspace("dies-planning");
    let run = world
        .owner
        .start(&workspace, "plan_and_apply", &[("main.tf", SLOW_PLAN)]);
    world.owner.wait_status(&run, "planning");
    world.server.signal(Signal::SIGKILL);
    world.server.wait_exit();
    world.restart();
    let asked = world.owner.wait_status(&run, "awaiting_approval");
    assert_eq!(
        asked["plan"]["attempts"].as_array().map(Vec::len),
        Some(2),
        "{asked:#}"
    );
}

#[test]
fn a_server_that_is_told_to_end_hands_its_plan_back() {
    let mut world = World::own(&[]);
    let workspace = world.owner.workspace("told-to-end");
    let run = world
        .owner
        .start(&workspace, "plan_and_apply", &[("main.tf", SLOW_PLAN)]);
    world.owner.wait_status(&run, "planning");
    world.server.signal(Signal::SIGTERM);
    assert!(world.server.wait_exit().success(), "{}", world.server.log());
    world.restart();
    world.owner.approve(&run);
    world.owner.wait_status(&run, "applied");
}
