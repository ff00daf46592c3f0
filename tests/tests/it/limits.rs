//! Runs that take more than they may: the end says so, and the lock is where it must be.

use std::sync::OnceLock;

use serde_json::Value;

use crate::support::{ENDLESS_PLAN, Workspace, World, bomb, eventually};

const MIB: u64 = 1 << 20;
/// Small enough to be reached in seconds.
const SMALL: &[(&str, &str)] = &[
    ("STACKSHIP_RUNNER__PLAN_SECONDS_MAX", "10"),
    ("STACKSHIP_RUNNER__APPLY_SECONDS_MAX", "10"),
    ("STACKSHIP_RUNNER__INTERRUPT_GRACE_SECONDS", "1"),
    ("STACKSHIP_RUNNER__MEMORY_MIB", "448"),
    ("STACKSHIP_RUNNER__WORKSPACE_MIB", "64"),
    ("STACKSHIP_RUNNER__PIDS", "128"),
];

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| World::own(SMALL))
}

/// A resource, so that there is something to lose, then another that does this.
fn doing(command: &str) -> String {
    format!(
        r#"
resource "terraform_data" "first" {{}}
resource "terraform_data" "greedy" {{
  depends_on = [terraform_data.first]
  provisioner "local-exec" {{
    command = <<-EOT
      {command}
    EOT
  }}
}}
"#
    )
}

#[track_caller]
fn assert_plan_is_stopped(name: &str, main: &str, detail: &str) {
    let owner = &world().owner;
    let workspace = owner.workspace(name);
    let run = owner.start(&workspace, "plan_and_apply", &[("main.tf", main)]);
    let ended = owner.wait_status(&run, "failed");
    assert_eq!(ended["ended"]["reason"], "plan_limit_exceeded", "{ended:#}");
    assert_eq!(
        ended["ended"]["sentence"],
        "The plan was stopped because it exceeded a limit."
    );
    assert_eq!(ended["ended"]["detail"], detail, "{ended:#}");
    assert_unlocked(&workspace);
}

#[track_caller]
fn assert_unlocked(workspace: &Workspace) {
    eventually("the lock is free", || {
        let detail = world().owner.detail(workspace);
        detail["lock"].is_null().then_some(())
    });
}

/// Nobody can say what the apply did: that is said, and the workspace stays closed.
#[track_caller]
fn assert_apply_is_in_doubt(name: &str, command: &str, detail: &str) -> Value {
    let owner = &world().owner;
    let workspace = owner.workspace(name);
    let main = doing(command);
    let run = owner.start(&workspace, "plan_and_apply", &[("main.tf", &main)]);
    owner.approve(&run);
    let doubtful = owner.wait_status(&run, "recovery_required");
    assert_eq!(
        doubtful["recovery"]["reason"], "limit_exceeded",
        "{doubtful:#}"
    );
    assert_eq!(doubtful["recovery"]["detail"], detail, "{doubtful:#}");
    let detail = owner.detail(&workspace);
    assert!(!detail["lock"].is_null(), "{detail:#}");
    assert!(detail["state"].is_null(), "{detail:#}");
    doubtful
}

#[test]
fn a_plan_that_takes_too_long_is_stopped() {
    assert_plan_is_stopped("plan-time", ENDLESS_PLAN, "It took longer than it may.");
}

#[test]
fn a_plan_that_takes_too_much_memory_is_stopped() {
    let kib = "x".repeat(1024);
    let main = format!(
        r#"
locals {{
  mib = join("", [for n in range(1024) : "{kib}"])
  gib = join("", [for n in range(1024) : local.mib])
}}
output "many" {{
  value = length(local.gib)
}}
"#
    );
    assert_plan_is_stopped("plan-memory", &main, "It used more memory than it may.");
}

#[test]
fn an_apply_that_takes_too_long_is_in_doubt_and_keeps_what_it_did() {
    let doubtful = assert_apply_is_in_doubt(
        "apply-time",
        "exec sleep 600",
        "It took longer than it may.",
    );
    assert_eq!(
        doubtful["apply"]["has_emergency_state"], true,
        "{doubtful:#}"
    );
}

#[test]
fn an_apply_that_takes_too_much_memory_is_in_doubt() {
    let command = "exec perl -e '$x .= \"x\" x (1 << 24) while 1'";
    assert_apply_is_in_doubt("apply-memory", command, "It used more memory than it may.");
}

#[test]
fn an_apply_that_starts_too_many_processes_is_in_doubt_and_keeps_what_it_did() {
    let command = "exec perl -e 'while (defined(my $p = fork)) { sleep 600 if !$p; push @p, $p } kill 9, @p; exit 1'";
    let doubtful = assert_apply_is_in_doubt(
        "apply-processes",
        command,
        "It started more processes than it may.",
    );
    assert_eq!(
        doubtful["apply"]["has_emergency_state"], true,
        "{doubtful:#}"
    );
}

#[test]
fn an_apply_that_writes_more_log_than_is_kept_ends_well_and_its_log_says_so() {
    let owner = &World::shared().owner;
    let workspace = owner.workspace("apply-log");
    let main = doing("head -c 17000000 /dev/zero | tr '\\0' x | fold -w 8000");
    let run = owner.start(&workspace, "plan_and_apply", &[("main.tf", &main)]);
    owner.approve(&run);
    owner.wait_status(&run, "applied");
    let path = format!("/v1/runs/{run}/logs/apply?offset=16600000");
    let end = owner.get(&path)["text"].to_string();
    assert!(end.contains("than is kept"), "{} characters", end.len());
}

#[test]
fn a_configuration_that_inflates_without_end_is_refused() {
    let owner = &World::shared().owner;
    let workspace = owner.workspace("bomb");
    let run = owner.start_packed(&workspace, "plan_and_apply", bomb(257 * MIB));
    let ended = owner.wait_status(&run, "failed");
    assert_eq!(ended["ended"]["reason"], "plan_refused", "{ended:#}");
    let detail = "`configuration` was refused: the archive inflates to more than allowed";
    assert_eq!(ended["ended"]["detail"], detail, "{ended:#}");
    eventually("the lock is free", || {
        let detail = owner.detail(&workspace);
        detail["lock"].is_null().then_some(())
    });
}
