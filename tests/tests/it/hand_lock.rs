//! A lock that a person holds.

use serde_json::json;

use crate::support::World;

const ONE: &str = r#"
resource "terraform_data" "one" {
  input = "first"
}
"#;

#[test]
fn a_lock_set_by_hand_survives_a_speculative_run_and_makes_an_apply_wait() {
    let world = World::shared();
    let (workspace, checkout) = world.begin("hand-lock", ONE);
    let path = format!("/v1/workspaces/{}", workspace.id);
    world
        .owner
        .post(&format!("{path}/lock"), &json!({"reason": "maintenance"}));
    let held = world.owner.detail(&workspace)["lock"].clone();
    assert_eq!(held["reason"], "maintenance");
    checkout.tofu(&["plan"]).exits(0);
    assert_eq!(world.owner.detail(&workspace)["lock"], held);
    let terminal = checkout.tofu(&["apply"]);
    terminal.expect("Waiting for the manually locked workspace to be unlocked...");
    world.owner.post(&format!("{path}/unlock"), &json!({}));
    terminal.expect("Enter a value:");
}
