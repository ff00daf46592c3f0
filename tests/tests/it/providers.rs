//! What only real providers show: imports, objects that are there and broken, and a provider that
//! takes its time or falls over while a plan is made.

use crate::support::{World, eventually};

/// The fixture from `tools/providers`; a run finds it in the runner's mirror.
pub const FIXTURE: &str = r#"
terraform {
  required_providers {
    fixture = {
      source = "stackship/fixture"
    }
  }
}
"#;

#[test]
fn a_plan_that_only_imports_asks_and_is_applied() {
    let world = World::shared();
    let workspace = world.owner.workspace("imports");
    let main = r#"
resource "fixture_object" "one" {
  name = "found"
}
import {
  to = fixture_object.one
  id = "object-found"
}
"#;
    let files = [("fixture.tf", FIXTURE), ("main.tf", main)];
    let run = world.owner.start(&workspace, "plan_and_apply", &files);
    world.owner.approve(&run);
    let log = world.owner.log(&run, "plan");
    assert!(log.contains("1 to import, 0 to add, 0 to change"), "{log}");
    assert!(!log.contains("fixture-token-of-found"), "{log}");
    let applied = world.owner.wait_status(&run, "applied");
    assert_eq!(
        applied["plan"]["result"]["counts"]["import"], 1,
        "{applied:#}"
    );
    assert_eq!(applied["apply"]["published"]["serial"], 1, "{applied:#}");

    // What was imported is known from now on.
    let again = world.owner.start(&workspace, "plan_and_apply", &files);
    world.owner.wait_status(&again, "no_changes");
}

#[test]
fn an_object_that_failed_after_it_was_made_is_kept_aside_as_tainted() {
    let world = World::shared();
    let workspace = world.owner.workspace("tainted");
    let main = r#"
resource "fixture_object" "good" {
  name = "good"
}
resource "fixture_object" "bad" {
  name              = "bad"
  fail_after_create = "made, and then this"
  depends_on        = [fixture_object.good]
}
"#;
    let files = [("fixture.tf", FIXTURE), ("main.tf", main)];
    let run = world.owner.start(&workspace, "plan_and_apply", &files);
    world.owner.approve(&run);
    let failed = world.owner.wait_status(&run, "failed");
    assert_eq!(failed["ended"]["reason"], "apply_failed", "{failed:#}");
    assert_eq!(failed["apply"]["has_emergency_state"], true, "{failed:#}");
    assert!(failed["apply"]["published"].is_null(), "{failed:#}");
    assert!(world.owner.detail(&workspace)["state"].is_null());
    let log = world.owner.log(&run, "apply");
    assert!(log.contains("made, and then this"), "{log}");
}

#[test]
fn secrets_and_unknowns_in_every_nesting_are_planned_and_applied_unseen() {
    let world = World::shared();
    let workspace = world.owner.workspace("nested");
    let main = r#"
locals {
  part = { name = "part", secret = "nested-secret-value" }
}
resource "fixture_nested" "one" {
  list   = [local.part]
  set    = [local.part]
  map    = { a = local.part }
  object = local.part
}
"#;
    let files = [("fixture.tf", FIXTURE), ("main.tf", main)];
    let run = world.owner.start(&workspace, "plan_and_apply", &files);
    world.owner.approve(&run);
    world.owner.wait_status(&run, "applied");
    for phase in ["plan", "apply"] {
        let log = world.owner.log(&run, phase);
        for secret in ["nested-secret-value", "fixture-token-of-part"] {
            assert!(!log.contains(secret), "{phase}: {log}");
        }
    }
}

#[test]
fn a_plan_whose_provider_falls_over_fails_and_says_so() {
    let world = World::shared();
    let workspace = world.owner.workspace("falls-over");
    let main = "data \"fixture_command\" \"one\" {\n  command = \"kill -9 $PPID\"\n}\n";
    let files = [("fixture.tf", FIXTURE), ("main.tf", main)];
    let run = world.owner.start(&workspace, "plan_and_apply", &files);
    let failed = world.owner.wait_status(&run, "failed");
    assert_eq!(failed["ended"]["reason"], "plan_failed", "{failed:#}");
    let log = world.owner.log(&run, "plan");
    assert!(log.contains("The plugin encountered an error"), "{log}");
    eventually("the lock is free", || {
        let detail = world.owner.detail(&workspace);
        detail["lock"].is_null().then_some(())
    });
}

#[test]
fn a_plan_that_waits_for_its_provider_can_be_canceled() {
    let world = World::own(&[
        ("STACKSHIP_RUNNER__INTERRUPT_GRACE_SECONDS", "1"),
        ("STACKSHIP_LEASE_SECONDS", "5"),
    ]);
    let workspace = world.owner.workspace("slow-provider");
    let main = "data \"fixture_command\" \"one\" {\n  command = \"exec sleep 600\"\n}\n";
    let files = [("fixture.tf", FIXTURE), ("main.tf", main)];
    let run = world.owner.start(&workspace, "plan_and_apply", &files);
    world
        .owner
        .wait_log(&run, "plan", "data.fixture_command.one: Reading...");
    world.owner.cancel(&run);
    let canceled = world.owner.wait_status(&run, "canceled");
    assert!(canceled["plan"]["result"].is_null(), "{canceled:#}");
}
