//! A doubtful apply is adopted, and nothing that was made is made again.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::{World, eventually};

/// The server's shortest lease.
const SHORT_LEASE: &[(&str, &str)] = &[("STACKSHIP_LEASE_SECONDS", "5")];

/// OpenTofu saves the state on its way only 20 seconds after it began, so the second resource has to
/// take that long: when it is made, a state with both is saved.
const MAIN: &str = r#"
resource "terraform_data" "one" {
  input = "one"
}

resource "terraform_data" "two" {
  input = terraform_data.one.id
  provisioner "local-exec" {
    command = "echo begun; exec sleep 21"
  }
}

resource "terraform_data" "three" {
  input = terraform_data.two.id
  provisioner "local-exec" {
    command = "echo saved; exec sleep 600"
  }
}
"#;

#[test]
fn what_a_killed_runner_had_made_is_adopted_and_not_made_again() {
    let mut world = World::own(SHORT_LEASE);
    let (workspace, checkout) = world.begin("killed", MAIN);
    let run = world
        .owner
        .start(&workspace, "plan_and_apply", &[("main.tf", MAIN)]);
    world.owner.approve(&run);
    world.owner.wait_log(&run, "apply", "begun");
    world.owner.wait_log(&run, "apply", "saved");
    let held = world.owner.lock(&workspace);
    world.server.signal(Signal::SIGKILL);
    world.server.wait_exit();
    world.restart();
    world.owner.wait_status(&run, "recovery_required");
    let path = format!("/v1/runs/{run}/recovery");
    let seen = world.owner.get(&path);
    assert_eq!(seen["doubt"]["reason"], "lease_lost", "{seen:#}");
    assert!(!seen["tofu_started_at"].is_null(), "{seen:#}");
    assert_eq!(seen["choices"]["adopt"]["possible"], true, "{seen:#}");
    assert_eq!(world.owner.lock(&workspace), held);

    let reason = json!({"reason": "The runner was killed by this test."});
    let adopted = world.owner.post(&format!("{path}/adopt"), &reason);
    assert_eq!(adopted["status"], "recovered", "{adopted:#}");
    eventually("the lock is free", || {
        let detail = world.owner.detail(&workspace);
        detail["lock"].is_null().then_some(())
    });
    let detail = world.owner.detail(&workspace);
    assert_eq!(detail["state"]["version"], seen["staged_state"]["version"]);

    let shown = checkout.tofu(&["plan"]).exits(0);
    assert!(
        shown.contains("terraform_data.three will be created"),
        "{shown}"
    );
    assert!(
        shown.contains("1 to add, 0 to change, 0 to destroy"),
        "{shown}"
    );
}
