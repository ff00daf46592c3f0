//! A run belongs to the server: what becomes of the terminal that started it does not matter.

use crate::support::{CANCEL_QUESTION, World, eventually};

const ONE: &str = r#"
resource "terraform_data" "one" {
  input = "first"
}
"#;

#[test]
fn ctrl_c_at_the_question_leaves_the_run_and_the_next_apply_says_that_it_waits() {
    let world = World::shared();
    let (workspace, checkout) = world.begin("ctrl-c", ONE);
    let mut terminal = checkout.apply_until_asked();
    terminal.ctrl_c();
    // OpenTofu gives the interrupt to its question and to the operation at the same time; when the
    // operation is faster, it asks once more.
    if terminal.shows_or_ends(CANCEL_QUESTION) {
        terminal.type_line("no");
        terminal.ends();
    } else {
        terminal.exits(1);
    }
    let run = world.owner.only_run(&workspace);
    assert_eq!(world.owner.run(&run)["status"], "awaiting_approval");
    let next = checkout.tofu(&["apply"]);
    next.expect("Waiting for 1 run(s) to finish before being queued...");
    let second = world.owner.runs(&workspace)[1].clone();
    let waiting = world.owner.run(&second)["waiting_for"].clone();
    assert_eq!(
        (&waiting["kind"], &waiting["id"]),
        (&"run".into(), &run.as_str().into())
    );
}

#[test]
fn a_run_survives_the_death_of_its_terminal() {
    let world = World::shared();
    let (workspace, checkout) = world.begin("terminal-dies", ONE);
    let mut terminal = checkout.apply_until_asked();
    terminal.kill();
    let run = world.owner.only_run(&workspace);
    world.owner.approve(&run);
    world.owner.wait_status(&run, "applied");
}

#[test]
fn an_approval_given_elsewhere_lets_a_waiting_terminal_go_on() {
    let world = World::shared();
    let (workspace, checkout) = world.begin("approved-elsewhere", ONE);
    let terminal = checkout.apply_until_asked();
    world.owner.approve(&world.owner.only_run(&workspace));
    let text = terminal.exits(0);
    assert!(
        text.contains("Apply complete! Resources: 1 added"),
        "{text}"
    );
}

#[test]
fn runs_of_one_workspace_go_one_after_the_other() {
    let world = World::shared();
    let workspace = world.owner.workspace("in-order");
    let first = world
        .owner
        .start(&workspace, "plan_and_apply", &[("main.tf", ONE)]);
    world.owner.wait_status(&first, "awaiting_approval");
    let second = world
        .owner
        .start(&workspace, "plan_and_apply", &[("main.tf", ONE)]);
    // The queue takes a new run in a step of its own.
    eventually("the second run waits for the first", || {
        let waiting = world.owner.run(&second)["waiting_for"].clone();
        (waiting["id"] == first.as_str()).then_some(())
    });
    world.owner.approve(&first);
    world.owner.wait_status(&first, "applied");
    let ended = world.owner.wait_status(&second, "no_changes");
    assert!(ended["approval"].is_null(), "{ended:#}");
}
