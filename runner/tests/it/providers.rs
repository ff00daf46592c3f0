//! Providers from a mirror: which ones run, and that the approved ones are those that apply.

use std::fs;
use std::path::{Path, PathBuf};

use stackship_domain::Sha256Digest;
use stackship_domain::run::EvidencePart;
use stackship_runner_protocol::{ApplyEnd, PhaseResult, PlanEnd};
use stackship_sandbox::egress::EgressPolicy;
use tempfile::TempDir;

use crate::support::{ControlPlane, Pinned, World, providers};

/// One provider of the mirror is unpacked, the other is packed.
const MAIN: &str = r#"
terraform {
  required_providers {
    fixture = {
      source  = "stackship/fixture"
      version = "VERSION"
    }
    time = {
      source = "hashicorp/time"
    }
  }
}
resource "fixture_object" "a" {
  name = "a"
}
resource "time_static" "a" {
  rfc3339 = "2026-01-01T00:00:00Z"
}
output "written_by" {
  value = fixture_object.a.written_by
}
"#;

fn main(version: &str) -> String {
    MAIN.replace("VERSION", version)
}

/// The digest of the dependency bundle, and the lock file.
fn dependencies(plan: &PhaseResult, control_plane: &ControlPlane) -> (Sha256Digest, String) {
    match plan {
        PhaseResult::Plan {
            end:
                PlanEnd::Planned {
                    dependencies,
                    lock_file: Some(lock_file),
                    ..
                },
        } => {
            let lock_file = control_plane.object(lock_file.object);
            (*dependencies, String::from_utf8(lock_file).unwrap())
        }
        other => panic!("no plan: {other:?}\n{}", control_plane.log()),
    }
}

/// Plans, applies, and says the plan's dependencies and the newest state.
async fn applied(world: &World, run: &Pinned) -> ((Sha256Digest, String), String) {
    let control_plane = &world.control_plane;
    run.pin(control_plane);
    let plan = world.execute(run.plan.clone()).await;
    let found = dependencies(&plan, control_plane);
    let applied = world.execute(run.apply(&plan, control_plane)).await;
    assert!(
        matches!(
            &applied,
            PhaseResult::Apply {
                end: ApplyEnd::Exited { exit_code: 0, .. }
            }
        ),
        "{applied:?}\n{}",
        control_plane.log()
    );
    let state = control_plane.staged().last().unwrap().bytes.clone();
    (found, String::from_utf8(state).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_lock_file_takes_the_newest_of_the_mirror_and_applies_with_that() {
    let world = World::with(|settings| settings.provider_mirror = Some(providers())).await;
    let ((_, lock), state) = applied(&world, &Pinned::of(&[("main.tf", &main(">= 1.0.0"))])).await;
    assert_eq!(lock.matches("h1:").count(), 2, "{lock}");
    assert!(state.contains("fixture 1.1.0"), "{state}");
    let log = world.control_plane.log();
    assert!(
        log.contains("Reusing previous version"),
        "the apply chose again: {log}"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_takes_what_its_lock_file_says() {
    let world = World::with(|settings| settings.provider_mirror = Some(providers())).await;
    let control_plane = &world.control_plane;
    let older = Pinned::of(&[("main.tf", &main("1.0.0"))]);
    older.pin(control_plane);
    let plan = world.execute(older.plan.clone()).await;
    let (_, older_lock) = dependencies(&plan, control_plane);
    // The constraint would allow an upgrade; the committed lock does not.
    let committed = older_lock.replace("constraints = \"1.0.0\"", "constraints = \">= 1.0.0\"");
    let main = main(">= 1.0.0");
    let files = [
        ("main.tf", main.as_str()),
        (".terraform.lock.hcl", committed.as_str()),
    ];
    let ((_, lock), state) = applied(&world, &Pinned::of(&files)).await;
    assert_eq!(lock, committed);
    assert!(state.contains("fixture 1.0.0"), "{state}");
    world.stop().await;
}

/// A mirror of one's own with only the fixture in it, and the fixture's file.
fn own_mirror() -> (TempDir, PathBuf, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let mirror = home.path().join("mirror");
    let provider = "registry.opentofu.org/stackship/fixture/1.1.0";
    let platform = fs::read_dir(providers().join(provider))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let directory = mirror.join(provider).join(platform.file_name());
    fs::create_dir_all(&directory).unwrap();
    let file = "terraform-provider-fixture_v1.1.0";
    fs::copy(platform.path().join(file), directory.join(file)).unwrap();
    (home, mirror, directory.join(file))
}

/// Behind the end of a program nothing is ever read: it runs as before.
fn change_a_byte(program: &Path) {
    let mut bytes = fs::read(program).unwrap();
    bytes.push(b'x');
    fs::write(program, bytes).unwrap();
}

const ONE: &str = r#"
terraform {
  required_providers {
    fixture = {
      source = "stackship/fixture"
    }
  }
}
resource "fixture_object" "a" {
  name = "a"
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_changes_after_the_approval_is_refused_and_named() {
    let (_home, mirror, program) = own_mirror();
    let world = World::with(|settings| settings.provider_mirror = Some(mirror)).await;
    let control_plane = &world.control_plane;
    let run = Pinned::of(&[("main.tf", ONE)]);
    run.pin(control_plane);
    let plan = world.execute(run.plan.clone()).await;
    let (approved, lock) = dependencies(&plan, control_plane);

    change_a_byte(&program);
    let refused = world.execute(run.apply(&plan, control_plane)).await;
    let PhaseResult::Apply {
        end: ApplyEnd::NotStarted { part, detail },
    } = &refused
    else {
        panic!("an apply was started: {refused:?}");
    };
    assert_eq!(*part, Some(EvidencePart::Dependencies), "{detail}");
    assert!(!control_plane.tofu_was_started());
    assert!(
        control_plane.log().contains("checksums"),
        "{}",
        control_plane.log()
    );

    // Nothing else differs, and still it would be another approval.
    let plan = world.execute(run.plan.clone()).await;
    let (changed, other_lock) = dependencies(&plan, control_plane);
    assert_ne!(approved, changed);
    assert_ne!(lock, other_lock);

    let files = [("main.tf", ONE), (".terraform.lock.hcl", lock.as_str())];
    let committed = Pinned::of(&files);
    committed.pin(control_plane);
    let plan = world.execute(committed.plan.clone()).await;
    assert!(
        matches!(
            &plan,
            PhaseResult::Plan {
                end: PlanEnd::Failed { .. }
            }
        ),
        "a plan with another provider than its lock file names: {plan:?}"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_mirror_has_needs_no_registry_where_hosts_may_be_reached() {
    let world = World::with(|settings| {
        settings.provider_mirror = Some(providers());
        let allowed = ["registry.invalid".to_owned()];
        settings.egress = Some(EgressPolicy::parse(&allowed).unwrap());
    })
    .await;
    let run = Pinned::of(&[("main.tf", ONE)]);
    run.pin(&world.control_plane);
    let plan = world.execute(run.plan.clone()).await;
    dependencies(&plan, &world.control_plane);
    world.stop().await;
}

/// Puts a changed copy of another provider in its place: what a provider that runs can do to the rest.
const SWAP: &str = r#"
data "fixture_command" "swap" {
  command = <<-EOT
    set -e
    cd .terraform/providers/registry.opentofu.org/hashicorp/time/*/*
    cp terraform-provider-time* /tmp/changed && echo x >>/tmp/changed
    mv -f /tmp/changed terraform-provider-time*
  EOT
  lifecycle {
    postcondition {
      condition     = self.exit_code == 0
      error_message = "not swapped: ${self.output}"
    }
  }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_swapped_while_a_plan_is_made_does_not_say_what_the_plan_holds() {
    let world = World::with(|settings| settings.provider_mirror = Some(providers())).await;
    let honest = Pinned::of(&[("main.tf", &main("1.1.0"))]);
    honest.pin(&world.control_plane);
    let plan = world.execute(honest.plan.clone()).await;
    let (packages, _) = dependencies(&plan, &world.control_plane);

    // The packages were taken before the plan began, so the swap, which succeeds, reaches nobody.
    let run = Pinned::of(&[("main.tf", &main("1.1.0")), ("swap.tf", SWAP)]);
    run.pin(&world.control_plane);
    let plan = world.execute(run.plan.clone()).await;
    assert_eq!(dependencies(&plan, &world.control_plane).0, packages);
    world.stop().await;
}

/// Writes a plan of its own into the terminal's text, and so much that the log is full.
const FORGE: &str = r#"
resource "fixture_object" "hidden" {
  name = "hidden"
}
data "fixture_command" "forge" {
  command = <<-EOT
    set -e
    for process in /proc/[0-9]*; do
      if tr '\0' ' ' <$process/cmdline | grep -q '^/opt/tofu/tofu plan '; then
        yes 'Plan: 0 to add, 0 to change, 0 to destroy.' | head -n 450000 >$process/fd/1
        exit 0
      fi
    done
    exit 1
  EOT
  lifecycle {
    postcondition {
      condition     = self.exit_code == 0
      error_message = "not forged: ${self.output}"
    }
  }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_log_ends_with_what_the_plan_holds_whatever_a_program_of_the_plan_writes_into_it() {
    let world = World::with(|settings| settings.provider_mirror = Some(providers())).await;
    let run = Pinned::of(&[("main.tf", &main("1.1.0")), ("forge.tf", FORGE)]);
    run.pin(&world.control_plane);
    let plan = world.execute(run.plan.clone()).await;
    dependencies(&plan, &world.control_plane);
    let log = world.control_plane.log();
    let (above, statement) = log.rsplit_once("StackShip read the saved plan").unwrap();
    assert!(
        above.contains("to destroy.\nPlan: 0 to add"),
        "{above:.2000}"
    );
    assert!(above.ends_with("(the log is longer than is kept; the rest is left out)\n\n"));
    for line in [
        "    + fixture_object.a: create\n",
        "    + fixture_object.hidden: create\n",
        "Plan: 3 to add, 0 to change, 0 to destroy, 1 output to change.\n",
    ] {
        assert!(statement.contains(line), "{statement}");
    }
    world.stop().await;
}
