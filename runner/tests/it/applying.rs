//! Applies: the approved plan file, its state through the gateway, and honest ends.

use stackship_domain::Sha256Digest;
use stackship_domain::run::Counts;
use stackship_runner_protocol::{ApplyEnd, PhaseResult, PlanEnd};

use crate::support::{ControlPlane, Pinned, World};

const TWO: &str = "resource \"terraform_data\" \"a\" {\n  count = 2\n  input = count.index\n}\n\
                   module \"inner\" {\n  source = \"./inner\"\n}\noutput \"name\" {\n  value = \"n\"\n}\n";
const FILES: [(&str, &str); 2] = [
    ("main.tf", TWO),
    ("inner/main.tf", "resource \"terraform_data\" \"b\" {}\n"),
];

/// Seven tries of each of the two inputs that are fetched first, some two seconds.
const AWAY_FOR: u32 = 14;

/// What a plan counted.
pub fn planned(result: &PhaseResult, control_plane: &ControlPlane) -> (i32, Counts) {
    match result {
        PhaseResult::Plan {
            end: PlanEnd::Planned {
                exit_code, json, ..
            },
        } => (*exit_code, json.counts),
        other => panic!("no plan: {other:?}\n{}", control_plane.log()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_applied_and_the_next_one_finds_nothing_to_do() {
    let world = World::start().await;
    let control_plane = &world.control_plane;
    let run = Pinned::of(&FILES);
    run.pin(control_plane);
    let plan = world.execute(run.plan.clone()).await;
    let expected = Counts {
        create: 3,
        output: 1,
        ..Counts::default()
    };
    assert_eq!(planned(&plan, control_plane), (2, expected));
    assert!(
        control_plane
            .log()
            .contains("Plan: 3 to add, 0 to change, 0 to destroy."),
        "{}",
        control_plane.log()
    );
    assert!(!control_plane.tofu_was_started());

    let applied = world.execute(run.apply(&plan, control_plane)).await;
    let PhaseResult::Apply {
        end:
            ApplyEnd::Exited {
                exit_code: 0,
                interrupted: false,
                seen,
                errored_state: None,
                ..
            },
    } = &applied
    else {
        panic!("{applied:?}\n{}", control_plane.log());
    };
    assert!(
        control_plane
            .log()
            .contains("Apply complete! Resources: 3 added"),
        "{}",
        control_plane.log()
    );
    assert!(control_plane.tofu_was_started());
    let staged = control_plane.staged();
    let newest = staged.last().unwrap();
    let seen = seen.as_ref().unwrap();
    assert_eq!(
        (seen.version, seen.sha256),
        (newest.id, Sha256Digest::of(&newest.bytes))
    );

    control_plane.publish();
    let next = run.again(&FILES, control_plane);
    next.pin(control_plane);
    let plan = world.execute(next.plan.clone()).await;
    assert_eq!(
        planned(&plan, control_plane),
        (0, Counts::default()),
        "{}",
        control_plane.log()
    );

    let moved = TWO.replace("terraform_data\" \"a\"", "terraform_data\" \"c\"")
        + "moved {\n  from = terraform_data.a\n  to = terraform_data.c\n}\n";
    let next = run.again(&[("main.tf", moved.as_str()), FILES[1]], control_plane);
    next.pin(control_plane);
    let plan = world.execute(next.plan.clone()).await;
    let expected = Counts {
        moved: 2,
        ..Counts::default()
    };
    assert_eq!(
        planned(&plan, control_plane),
        (2, expected),
        "a plan that only moves is a change"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_plane_that_is_away_for_a_moment_costs_no_approval() {
    let world = World::start().await;
    let control_plane = &world.control_plane;
    let run = Pinned::of(&FILES);
    run.pin(control_plane);
    let plan = world.execute(run.plan.clone()).await;
    control_plane.be_away_for(AWAY_FOR);
    let applied = world.execute(run.apply(&plan, control_plane)).await;
    let PhaseResult::Apply {
        end: ApplyEnd::Exited { exit_code: 0, .. },
    } = &applied
    else {
        panic!("{applied:?}\n{}", control_plane.log());
    };
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_apply_keeps_the_state_of_what_it_did() {
    let world = World::start().await;
    let control_plane = &world.control_plane;
    let run = Pinned::of(&[(
        "main.tf",
        "resource \"terraform_data\" \"good\" {}\nresource \"terraform_data\" \"bad\" {\n\
         depends_on = [terraform_data.good]\n  provisioner \"local-exec\" {\n    command = \"exit 7\"\n  }\n}\n",
    )]);
    run.pin(control_plane);
    let plan = world.execute(run.plan.clone()).await;
    let applied = world.execute(run.apply(&plan, control_plane)).await;
    let PhaseResult::Apply {
        end:
            ApplyEnd::Exited {
                exit_code: 1,
                interrupted: false,
                seen: Some(seen),
                ..
            },
    } = &applied
    else {
        panic!("{applied:?}\n{}", control_plane.log());
    };
    let staged = control_plane.staged();
    assert_eq!(seen.version, staged.last().unwrap().id);
    let state = String::from_utf8(staged.last().unwrap().bytes.clone()).unwrap();
    assert!(state.contains("\"name\":\"good\""), "{state}");
    assert!(
        control_plane.log().contains("exit status 7"),
        "{}",
        control_plane.log()
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_could_not_be_uploaded_is_brought_out() {
    let world = World::start().await;
    let control_plane = &world.control_plane;
    control_plane.refuse_uploads();
    let run = Pinned::of(&[(
        "main.tf",
        "resource \"terraform_data\" \"a\" {\n  input = \"kept\"\n}\n",
    )]);
    run.pin(control_plane);
    let plan = world.execute(run.plan.clone()).await;
    let applied = world.execute(run.apply(&plan, control_plane)).await;
    let PhaseResult::Apply {
        end:
            ApplyEnd::Exited {
                exit_code: 1,
                seen: None,
                errored_state: Some(errored),
                ..
            },
    } = &applied
    else {
        panic!("{applied:?}\n{}", control_plane.log());
    };
    let state = String::from_utf8(control_plane.object(errored.object)).unwrap();
    assert!(state.contains("kept"), "{state}");
    world.stop().await;
}
