//! Attempts that do not end by themselves.

use std::time::Duration;

use stackship_runner_protocol::{ApplyEnd, PhaseResult, PlanEnd};

use crate::support::{INTERRUPT_GRACE, Pinned, World};

/// Far longer than it takes to hear of a cancel and to end a sandbox; far shorter than the time
/// between two heartbeats of a long lease, and than the grace that this runner gives to an apply.
const HEARD_WITHIN: Duration = Duration::from_mins(2);

/// A plan that computes for a long time without any provider.
fn long_plan() -> String {
    let sums = (0..40).map(|n| {
        format!("  s{n} = sum([for a in range(1000) : sum([for b in range(1000) : (a * b + {n}) % 7])])\n")
    });
    format!(
        "locals {{\n{}}}\nresource \"terraform_data\" \"a\" {{\n  input = [{}]\n}}\n",
        sums.collect::<String>(),
        (0..40)
            .map(|n| format!("local.s{n}"))
            .collect::<Vec<_>>()
            .join(", ")
    )
}

fn long_run() -> Pinned {
    let mut run = Pinned::of(&[("main.tf", &long_plan())]);
    run.plan.lease_seconds = 1;
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canceled_plan_stops_and_writes_no_state() {
    let world = World::start().await;
    let mut run = long_run();
    assert!(HEARD_WITHIN < INTERRUPT_GRACE);
    // The next heartbeat is due after longer than this test would wait for it.
    run.plan.lease_seconds = 600;
    run.pin(&world.control_plane);
    world.control_plane.offer(run.plan.clone());
    world
        .control_plane
        .logged("has been successfully initialized")
        .await;
    world.control_plane.cancel();
    let result = tokio::time::timeout(HEARD_WITHIN, world.control_plane.result())
        .await
        .expect("the cancel was heard");
    assert!(
        matches!(
            result,
            PhaseResult::Plan {
                end: PlanEnd::Stopped
            }
        ),
        "{result:?}"
    );
    assert!(
        !world
            .control_plane
            .requests()
            .iter()
            .any(|request| request.starts_with("POST /api/v2"))
    );
    assert!(world.control_plane.staged().is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_handed_back_when_the_runner_shuts_down() {
    let world = World::start().await;
    let run = long_run();
    run.pin(&world.control_plane);
    world.control_plane.offer(run.plan.clone());
    world
        .control_plane
        .logged("has been successfully initialized")
        .await;
    let control_plane = world.stop().await;
    assert!(control_plane.was_handed_back());
    assert!(!control_plane.has_result());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_whose_lease_is_lost_reports_nothing() {
    let world = World::start().await;
    let run = long_run();
    run.pin(&world.control_plane);
    world.control_plane.offer(run.plan.clone());
    world
        .control_plane
        .logged("has been successfully initialized")
        .await;
    world.control_plane.lose();
    let control_plane = world.stop().await;
    assert!(!control_plane.has_result());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_started_apply_goes_on_while_the_runner_shuts_down_and_a_cancel_interrupts_it() {
    let world = World::start().await;
    let control_plane = std::sync::Arc::clone(&world.control_plane);
    let mut run = Pinned::of(&[(
        "main.tf",
        "resource \"terraform_data\" \"first\" {}\nresource \"terraform_data\" \"slow\" {\n\
         depends_on = [terraform_data.first]\n  provisioner \"local-exec\" {\n    command = \"echo at work; sleep 600\"\n  }\n}\n",
    )]);
    run.plan.lease_seconds = 1;
    run.pin(&control_plane);
    let plan = world.execute(run.plan.clone()).await;
    control_plane.offer(run.apply(&plan, &control_plane));
    control_plane.logged("at work").await;
    let stopping = tokio::spawn(world.stop());
    control_plane.cancel();
    let result = control_plane.result().await;
    let PhaseResult::Apply {
        end:
            ApplyEnd::Exited {
                exit_code: 1,
                interrupted: true,
                seen: Some(seen),
                ..
            },
    } = &result
    else {
        panic!("{result:?}\n{}", control_plane.log());
    };
    let staged = control_plane.staged();
    assert_eq!(seen.version, staged.last().unwrap().id);
    let lineages: std::collections::HashSet<_> =
        staged.iter().map(|state| state.lineage.as_str()).collect();
    assert_eq!(lineages.len(), 1, "the run reads back what it staged");
    stopping.await.unwrap();
    assert!(!control_plane.was_handed_back());
}
