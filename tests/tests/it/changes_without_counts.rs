//! Plans that create, change and destroy nothing, and are changes all the same.

use crate::support::World;

const BEFORE: &str = r#"
resource "terraform_data" "one" {
  input = "first"
}
"#;

/// Applies `BEFORE`, then `after`, which must ask.
fn asks_and_applies(name: &str, after: &str) {
    let world = World::shared();
    let workspace = world.owner.workspace(name);
    for (main, serial) in [(BEFORE, 1), (after, 2)] {
        let run = world
            .owner
            .start(&workspace, "plan_and_apply", &[("main.tf", main)]);
        world.owner.approve(&run);
        let applied = world.owner.wait_status(&run, "applied");
        assert_eq!(
            applied["apply"]["published"]["serial"], serial,
            "{applied:#}"
        );
    }
}

#[test]
fn a_plan_that_only_moves_asks() {
    let after = r#"
resource "terraform_data" "two" {
  input = "first"
}
moved {
  from = terraform_data.one
  to   = terraform_data.two
}
"#;
    asks_and_applies("moved", after);
}

#[test]
fn a_plan_that_only_forgets_asks() {
    let after = r"
removed {
  from = terraform_data.one
  lifecycle {
    destroy = false
  }
}
";
    asks_and_applies("forgotten", after);
}

#[test]
fn a_plan_that_only_changes_an_output_asks() {
    let after = r#"
resource "terraform_data" "one" {
  input = "first"
}
output "new" {
  value = "x"
}
"#;
    asks_and_applies("output", after);
}
