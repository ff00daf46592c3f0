//! What goes into a run is what was pinned, and nothing that would lead around us.

use serde_json::json;

use crate::support::World;

#[test]
fn a_variable_left_at_its_default_keeps_it_until_the_apply() {
    let world = World::shared();
    let main = r#"
variable "word" {
  default = "default"
}
resource "terraform_data" "one" {
  provisioner "local-exec" {
    command = "echo the word is ${var.word}"
  }
}
"#;
    let workspace = world.owner.workspace("kept-default");
    let run = world
        .owner
        .start(&workspace, "plan_and_apply", &[("main.tf", main)]);
    world.owner.wait_status(&run, "awaiting_approval");
    let later = json!({"key": "word", "value": "later", "category": "terraform", "hcl": false,
        "sensitive": false});
    world.owner.variable(&workspace, &later);
    world.owner.approve(&run);
    world.owner.wait_status(&run, "applied");
    let log = world.owner.log(&run, "apply");
    assert!(log.contains("the word is default"), "{log}");
    assert!(!log.contains("later"), "{log}");
}

#[test]
fn a_configuration_that_overrides_the_backend_is_refused() {
    let world = World::shared();
    let workspace = world.owner.workspace("backend");
    let files = [
        ("main.tf", "resource \"terraform_data\" \"one\" {}\n"),
        ("zz_override.tf", "terraform {\n  backend \"local\" {}\n}\n"),
    ];
    let run = world.owner.start(&workspace, "plan_and_apply", &files);
    let ended = world.owner.wait_status(&run, "failed");
    assert_eq!(ended["ended"]["reason"], "plan_refused", "{ended:#}");
}

#[test]
fn a_state_file_in_the_archive_is_dropped() {
    let world = World::shared();
    let workspace = world.owner.workspace("stray-state");
    let files = [
        ("main.tf", "resource \"terraform_data\" \"one\" {}\n"),
        ("terraform.tfstate", "this is no state"),
    ];
    let run = world.owner.start(&workspace, "plan_and_apply", &files);
    world.owner.approve(&run);
    let applied = world.owner.wait_status(&run, "applied");
    assert_eq!(applied["apply"]["published"]["serial"], 1);
}
