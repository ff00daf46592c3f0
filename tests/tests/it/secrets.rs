//! Secrets stay where they are needed.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::support::World;

/// A value that is found wherever it goes.
const PLANTED: &str = "planted-7c1f-correct-horse-battery";

#[test]
fn a_sensitive_variable_is_left_out_of_a_speculative_plan_and_named() {
    let world = World::shared();
    let main = r#"
variable "password" {
  type = string
}
resource "terraform_data" "one" {
  input = var.password
}
"#;
    let (workspace, checkout) = world.begin("withheld", main);
    let variable = json!({"key": "password", "value": PLANTED, "category": "terraform",
        "hcl": false, "sensitive": true});
    world.owner.variable(&workspace, &variable);
    let shown = checkout.tofu(&["plan"]).exits(1);
    assert!(shown.contains("password"), "{shown}");
    assert!(!shown.contains(PLANTED), "{shown}");
    let run = world.owner.run(&world.owner.only_run(&workspace));
    assert_eq!(run["withheld_variables"], json!(["password"]), "{run:#}");
}

#[test]
fn a_secret_reaches_the_run_but_no_log_and_no_file() {
    let world = World::shared();
    let main = r#"
resource "terraform_data" "one" {
  input = "another-planted-value-in-a-state"
  provisioner "local-exec" {
    command = "echo the key has $(printf %s \"$DEPLOY_KEY\" | wc -c) characters: $DEPLOY_KEY"
  }
}
"#;
    let workspace = world.owner.workspace("masked");
    let variable = json!({"key": "DEPLOY_KEY", "value": PLANTED, "category": "env",
        "hcl": false, "sensitive": true});
    world.owner.variable(&workspace, &variable);
    let run = world
        .owner
        .start(&workspace, "plan_and_apply", &[("main.tf", main)]);
    world.owner.approve(&run);
    world.owner.wait_status(&run, "applied");
    let log = world.owner.log(&run, "apply");
    assert!(
        log.contains(&format!("the key has {} characters", PLANTED.len())),
        "{log}"
    );
    assert!(!log.contains(PLANTED), "{log}");
    let looked_at = assert_absent(&world.server.data(), &[PLANTED, "another-planted-value"]);
    assert!(looked_at > 3, "only {looked_at} files were looked at");
    let logged = world.server.log();
    assert!(
        !logged.contains(PLANTED) && !logged.contains(world.owner.token()),
        "{logged}"
    );
}

/// Looks into every file below; says how many there were.
fn assert_absent(directory: &Path, planted: &[&str]) -> usize {
    let mut looked_at = 0;
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            looked_at += assert_absent(&path, planted);
        } else if let Ok(bytes) = fs::read(&path) {
            looked_at += 1;
            for value in planted {
                let found = bytes
                    .windows(value.len())
                    .any(|part| part == value.as_bytes());
                assert!(!found, "`{value}` lies in {}", path.display());
            }
        }
    }
    looked_at
}
