//! Who takes whose place, and what the next run is told.

use crate::support::{ENDLESS_PLAN, World, eventually};

const QUICK: &str = "output \"quick\" {\n  value = 1\n}\n";
/// Makes one resource and fails at the next.
const HALF_WAY: &str = r#"
resource "terraform_data" "one" {
  input = "one"
}

resource "terraform_data" "two" {
  input = terraform_data.one.id
  provisioner "local-exec" {
    command = "echo this goes wrong; exit 1"
  }
}
"#;
const WHOLE: &str = r#"
resource "terraform_data" "one" {
  input = "one"
}
"#;

/// The runner has one place, so the newer plan begins only when the older one's sandbox is gone: that is
/// long before the older plan would have ended, and before the grace of an apply would be over.
#[test]
fn a_newer_plan_of_a_ref_stops_the_older_one() {
    let world = World::own(&[
        ("STACKSHIP_RUNNER__SLOTS", "1"),
        ("STACKSHIP_RUNNER__INTERRUPT_GRACE_SECONDS", "120"),
    ]);
    let workspace = world.owner.workspace("superseded");
    let older =
        world
            .owner
            .start_of_ref(&workspace, "refs/pull/7/head", &[("main.tf", ENDLESS_PLAN)]);
    world
        .owner
        .wait_log(&older, "plan", "successfully initialized");
    let newer = world
        .owner
        .start_of_ref(&workspace, "refs/pull/7/head", &[("main.tf", QUICK)]);
    world.owner.wait_status(&newer, "speculative_finished");
    let ended = world.owner.run(&older)["ended"].clone();
    assert_eq!(ended["reason"], "superseded", "{ended:#}");
    assert_eq!(ended["superseded_by"], newer.as_str());
    let log = world.owner.log(&older, "plan");
    assert!(log.contains("A newer run took this run's place."), "{log}");
}

#[test]
fn the_run_after_a_failed_apply_is_warned_in_the_terminal_and_the_one_after_it_is_not() {
    let world = World::shared();
    let (workspace, checkout) = world.begin("warned", HALF_WAY);
    let mut terminal = checkout.apply_until_asked();
    terminal.type_line("yes");
    terminal.exits(1);
    let failed = world.owner.only_run(&workspace);
    eventually("the lock is free", || {
        let detail = world.owner.detail(&workspace);
        detail["lock"].is_null().then_some(())
    });
    let warning = format!("The apply of {failed} failed, and the state it left");
    checkout.write("main.tf", WHOLE);
    let planned = checkout.tofu(&["plan"]);
    planned.expect(&warning);
    planned.exits(0);

    let mut terminal = checkout.apply_until_asked();
    terminal.expect(&warning);
    terminal.expect("terraform_data.one will be created");
    terminal.type_line("yes");
    terminal.exits(0);
    let runs = world.owner.runs(&workspace);
    let warned = world.owner.run(&runs[2]);
    assert_eq!(warned["status"], "applied", "{warned:#}");
    assert_eq!(warned["warnings"][0]["run"], failed.as_str(), "{warned:#}");

    let shown = checkout.tofu(&["apply"]).exits(0);
    assert!(shown.contains("No changes."), "{shown}");
    assert!(!shown.contains("the state it left"), "{shown}");
}
