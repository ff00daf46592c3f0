//! What leaves a plan: nothing that is sensitive, and nothing at all when that is not certain.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use stackship_domain::run::TerminalReason;
use stackship_domain::variable::{InputVariable, VariableCategory};
use stackship_runner_protocol::{PhaseResult, PlanEnd};

use crate::planning::failure;
use crate::support::{Pinned, World, providers, snapshot, text_variable};

/// Sensitive in the configuration, in the provider's schema, and in the run's variables alone.
const MAIN: &str = r#"
terraform {
  required_providers {
    fixture = {
      source = "stackship/fixture"
    }
  }
}
variable "password" {
  sensitive = true
}
variable "token" {}
variable "login" {
  type = object({ name = string, key = string })
}
resource "fixture_nested" "a" {
  list = [{ name = "shown-in-a-list", secret = "planted-in-the-text" }]
  map  = { one = { name = "shown-in-a-map", secret = var.password } }
}
resource "terraform_data" "copy" {
  input = {
    plain  = "shown-plainly"
    echoed = nonsensitive(var.password)
    within = "before ${var.token} after"
    key    = var.login.key
  }
}
output "coded" {
  value = base64encode(var.token)
}
"#;

const PLANTED: [&str; 5] = [
    "planted-in-the-text",
    "planted-password",
    "planted-token",
    "cGxhbnRlZC10b2tlb",
    "planted-key",
];

fn variables() -> Vec<InputVariable> {
    let text = |key, value| text_variable(key, value, VariableCategory::Terraform, true);
    let login = r#"{ name = "shown-to-none", key = "planted-key" }"#;
    vec![
        text("password", "planted-password"),
        text("token", "planted-token"),
        InputVariable {
            hcl: true,
            ..text("login", login)
        },
    ]
}

/// The side of a change that the plan-diff shows at this path of this resource.
fn after<'a>(document: &'a Value, address: &str, path: &str) -> &'a Value {
    let resources = document["resources"].as_array().unwrap();
    let resource = resources.iter().find(|one| one["address"] == address);
    let changes = resource.unwrap()["detail"]["changes"].as_array().unwrap();
    let change = changes.iter().find(|one| one["path"] == path);
    &change.unwrap_or_else(|| panic!("no {path} in {document:#}"))["after"]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_sensitive_value_is_in_anything_that_people_or_policies_see() {
    let world = World::with(|settings| settings.provider_mirror = Some(providers())).await;
    let control_plane = &world.control_plane;
    let run = Pinned::with(&[("main.tf", MAIN)], snapshot(variables()));
    run.pin(control_plane);
    let result = world.execute(run.plan.clone()).await;
    let PhaseResult::Plan {
        end:
            PlanEnd::Planned {
                json,
                plan_json,
                plan_diff,
                policy_input: Some(policy_input),
                ..
            },
    } = &result
    else {
        panic!("{result:?}\n{}", control_plane.log());
    };
    assert_eq!((json.counts.create, json.counts.output), (2, 1));
    let text = |object| String::from_utf8(control_plane.object(object)).unwrap();
    let diff = text(plan_diff.object);
    let seen = [
        ("the plan-diff", diff.clone()),
        ("the policy input", text(policy_input.object)),
        ("the log", control_plane.log()),
        ("the report", serde_json::to_string(&result).unwrap()),
    ];
    let whole = text(plan_json.object);
    for planted in PLANTED {
        assert!(whole.contains(planted), "{planted} was not planted");
        for (what, text) in &seen {
            assert!(!text.contains(planted), "{planted} is in {what}:\n{text}");
        }
    }
    let document: Value = serde_json::from_str(&diff).unwrap();
    for (address, path, kind) in [
        ("fixture_nested.a", "list[0].secret", "sensitive"),
        ("fixture_nested.a", "list[0].number", "unknown"),
        ("fixture_nested.a", "map.one.secret", "sensitive"),
        ("terraform_data.copy", "input.echoed", "withheld"),
        ("terraform_data.copy", "input.within", "withheld"),
        ("terraform_data.copy", "input.key", "withheld"),
    ] {
        let side = after(&document, address, path);
        assert_eq!(side["kind"], kind, "{path}");
    }
    for (address, path, shown) in [
        ("fixture_nested.a", "list[0].name", "shown-in-a-list"),
        ("fixture_nested.a", "map.one.name", "shown-in-a-map"),
        ("terraform_data.copy", "input.plain", "shown-plainly"),
    ] {
        assert_eq!(after(&document, address, path)["text"], shown);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_which_nothing_can_be_shown_is_no_plan() {
    let world = World::start().await;
    // OpenTofu takes it; the reader of plans does not.
    let (open, close) = ("[".repeat(140), "]".repeat(140));
    let main = format!("output \"deep\" {{\n  value = {open}\"planted-in-the-deep\"{close}\n}}\n");
    let run = Pinned::of(&[("main.tf", &main)]);
    run.pin(&world.control_plane);
    let result = world.execute(run.plan.clone()).await;
    let (reason, detail) = failure(&result);
    assert_eq!(reason, TerminalReason::PlanFailed);
    assert!(detail.starts_with("What may be shown"), "{detail}");
    let log = world.control_plane.log();
    assert!(log.contains("nests too deeply"), "{log}");
    let stored = world.control_plane.requests();
    assert!(
        !stored.iter().any(|request| request.starts_with("PUT ")),
        "{stored:?}"
    );
    world.stop().await;
}

fn redact(directory: &Path) -> Output {
    let program = env!("CARGO_BIN_EXE_runner-sandbox-init");
    let mut command = Command::new(program);
    command.arg("redact-plan").arg(directory);
    command.output().unwrap()
}

const PLAN: &str = r#"{"format_version":"1.2","terraform_version":"1.12.6","variables":{"a":{"value":"planted-value"}},"resource_changes":[],"output_changes":{},"errored":false}"#;

#[test]
fn the_step_that_fails_tells_nothing_of_what_it_read() {
    let nothing = "[]";
    for (secrets, plan, sentence) in [
        (
            "[\"planted-value\"",
            PLAN,
            "the list of sensitive values cannot be read",
        ),
        (
            nothing,
            "{\"planted-value\": planted-value",
            "the plan's JSON is damaged",
        ),
        (
            nothing,
            "{\"planted-value\": 1}",
            "the plan's JSON has no `format_version`",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("secrets.json"), secrets).unwrap();
        fs::write(directory.path().join("plan.json"), plan).unwrap();
        let output = redact(directory.path());
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(output.stdout.is_empty());
        assert!(told.contains(sentence), "{told}");
        assert!(!told.contains("planted-value"), "{told}");
    }
}

#[test]
fn the_step_takes_no_file_for_its_own_that_was_there_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("secrets.json"), "[]").unwrap();
    fs::write(path("plan.json"), PLAN).unwrap();
    std::os::unix::fs::symlink(path("elsewhere"), path("plan-diff.json")).unwrap();
    let output = redact(directory.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(!path("elsewhere").exists());
    fs::remove_file(path("plan-diff.json")).unwrap();
    let output = redact(directory.path());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["has_policy_input"], true);
    assert!(path("plan-diff.json").exists() && path("policy-input.json").exists());
}
