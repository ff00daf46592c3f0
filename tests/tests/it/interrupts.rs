//! Ctrl-C, and the end of the terminal, while a phase's log streams.

use std::sync::OnceLock;

use crate::support::{Checkout, ENDLESS_PLAN, Terminal, Workspace, World, eventually};

/// An apply that never ends by itself.
const LONG_APPLY: &str = r#"
resource "terraform_data" "first" {}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" {
    command = "echo begun; exec sleep 600"
  }
}
"#;
/// An apply that goes on for long enough to be looked at.
const APPLY_OF_SECONDS: &str = r#"
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "echo begun; sleep 6"
  }
}
"#;
const QUICK: &str = "output \"quick\" {\n  value = 1\n}\n";
const QUESTION: &str = "Do you want to cancel the remote operation?";

/// An installation in which an interrupted phase is given little time.
fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| World::own(&[("STACKSHIP_RUNNER__INTERRUPT_GRACE_SECONDS", "2")]))
}

/// Applies until the provisioner's words are on the screen.
#[track_caller]
fn begun(checkout: &Checkout) -> Terminal {
    let mut terminal = checkout.apply_until_asked();
    terminal.type_line("yes");
    terminal.expect("begun");
    terminal
}

#[track_caller]
fn wait_unlocked(workspace: &Workspace) {
    eventually("the lock is free", || {
        let detail = world().owner.detail(workspace);
        detail["lock"].is_null().then_some(())
    });
}

#[test]
fn ctrl_c_and_yes_while_the_plan_streams_cancel_the_run_and_free_the_workspace() {
    let world = world();
    let (workspace, checkout) = world.begin("interrupt-plan", ENDLESS_PLAN);
    let mut terminal = checkout.tofu(&["apply"]);
    terminal.expect("has been successfully initialized!");
    terminal.ctrl_c();
    terminal.expect(QUESTION);
    terminal.type_line("yes");
    let shown = terminal.exits(0);
    assert!(shown.contains("successfully cancelled"), "{shown}");
    let run = world.owner.only_run(&workspace);
    let ended = world.owner.wait_status(&run, "canceled");
    assert_eq!(ended["ended"]["reason"], "canceled_by_person", "{ended:#}");
    wait_unlocked(&workspace);
    assert!(world.owner.detail(&workspace)["state"].is_null());
    checkout.write("main.tf", QUICK);
    checkout.tofu(&["plan"]).exits(0);
    checkout.apply();
}

#[test]
fn ctrl_c_and_yes_while_the_apply_streams_leave_doubt_the_lock_and_what_was_done() {
    let world = world();
    let (workspace, checkout) = world.begin("interrupt-apply", LONG_APPLY);
    let mut terminal = begun(&checkout);
    let held = world.owner.lock(&workspace);
    terminal.ctrl_c();
    terminal.expect(QUESTION);
    terminal.type_line("yes");
    terminal.exits(0);
    let run = world.owner.only_run(&workspace);
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
    assert!(
        detail["state"].is_null(),
        "nothing half-done is published: {detail:#}"
    );
    // Planning needs no lock; applying says what it waits for.
    checkout.tofu(&["plan"]).exits(0);
    let next = checkout.tofu(&["apply"]);
    next.expect(&format!("Waits for {run}, which is in doubt since"));
}

#[test]
fn ctrl_c_and_no_while_the_apply_streams_leave_the_run_to_end_well() {
    let world = world();
    let (workspace, checkout) = world.begin("interrupt-apply-no", APPLY_OF_SECONDS);
    let mut terminal = begun(&checkout);
    terminal.ctrl_c();
    terminal.expect(QUESTION);
    terminal.type_line("no");
    let shown = terminal.exits(0);
    assert!(shown.contains("not cancelled"), "{shown}");
    let run = world.owner.only_run(&workspace);
    let applied = world.owner.wait_status(&run, "applied");
    assert_eq!(applied["apply"]["published"]["serial"], 1, "{applied:#}");
    wait_unlocked(&workspace);
    let shown = checkout.tofu(&["plan"]).exits(0);
    assert!(shown.contains("No changes."), "{shown}");
}

#[test]
fn two_ctrl_c_or_a_crash_while_the_apply_streams_leave_the_run_to_end_well() {
    let world = world();
    let (twice, twice_checkout) = world.begin("interrupt-twice", APPLY_OF_SECONDS);
    let (killed, killed_checkout) = world.begin("interrupt-kill", APPLY_OF_SECONDS);
    let mut terminal = begun(&twice_checkout);
    terminal.ctrl_c();
    terminal.expect(QUESTION);
    terminal.ctrl_c();
    terminal.exits(1);
    begun(&killed_checkout).kill();
    for workspace in [twice, killed] {
        world
            .owner
            .wait_status(&world.owner.only_run(&workspace), "applied");
        wait_unlocked(&workspace);
        assert_eq!(world.owner.detail(&workspace)["state"]["serial"], 1);
    }
}
