//! Who may not, and what the terminal says then.

use crate::support::{Checkout, Client, World, text};

const ONE: &str = r#"
resource "terraform_data" "one" {
  input = "first"
}
"#;

#[test]
fn a_wrong_token_is_told_so() {
    let world = World::shared();
    let workspace = world.owner.workspace("wrong-token");
    let stranger = Client::new(
        world.owner.url().to_owned(),
        "wrong",
        world.owner.organization(),
    );
    let shown = Checkout::new(&stranger, &workspace, ONE)
        .tofu(&["init"])
        .exits(1);
    assert!(shown.contains("unauthorized"), "{shown}");
}

#[test]
fn a_workspace_of_another_organization_looks_as_if_it_were_not_there() {
    let world = World::shared();
    let workspace = world.owner.workspace("foreign");
    let made = world.server.bootstrap("other", "eve");
    let url = world.owner.url().to_owned();
    let eve = Client::new(url, &text(&made["token"]), world.owner.organization());
    let shown = Checkout::new(&eve, &workspace, ONE)
        .tofu(&["init"])
        .exits(1);
    assert!(shown.contains("not found"), "{shown}");
    let path = format!("/v1/workspaces/{}", workspace.id);
    let (status, _) = eve.send(reqwest::Method::GET, &path, None);
    assert_eq!(status, reqwest::StatusCode::NOT_FOUND);
}

#[test]
fn state_is_written_by_runs_only() {
    let world = World::shared();
    let (workspace, checkout) = world.begin("laptop", ONE);
    let checkout = checkout.with("TF_FORCE_LOCAL_BACKEND", "1");
    let shown = checkout.tofu(&["apply"]).exits(1);
    assert!(shown.contains("Error acquiring the state lock"), "{shown}");
    assert!(shown.contains("State here is changed by runs"), "{shown}");
    assert!(!shown.contains("Enter a value"), "{shown}");
    let detail = world.owner.detail(&workspace);
    assert!(
        detail["state"].is_null() && detail["lock"].is_null(),
        "{detail:#}"
    );
}

#[test]
fn destroy_mode_is_refused_and_leaves_no_run() {
    let world = World::shared();
    let (workspace, checkout) = world.begin("destroy", ONE);
    let shown = checkout.tofu(&["apply", "-destroy"]).exits(1);
    assert!(shown.contains("Destroy mode is not supported."), "{shown}");
    assert!(world.owner.runs(&workspace).is_empty());
}
