//! Attempts that do not end by themselves.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use stackship_runner_protocol::{ApplyEnd, PhaseResult, PlanEnd};

use crate::support::{INTERRUPT_GRACE, Pinned, World};

/// Far longer than it takes to hear of a cancel and to end a sandbox; far shorter than the time
/// between two heartbeats of a long lease, and than the grace that this runner gives to an apply.
const HEARD_WITHIN: Duration = Duration::from_mins(2);

/// Two that fail, and more than a runner sends that has lost its lease.
const BEATS_AFTER: usize = 6;
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Computed for hours, in one expression; not before the plan has the resource, whose id is unknown to
/// the validation that comes first.
const ENDLESS: &str = r#"
output "endless" {
  value = sum([for a in range(terraform_data.first.id == "" ? 0 : 1000) : sum([for b in range(1000) : sum([for c in range(1000) : (a * b * c) % 7])])])
}
"#;

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

/// OpenTofu looks for an interrupt when it turns to a resource; this plan never turns to another.
#[tokio::test(flavor = "multi_thread")]
async fn a_canceled_plan_that_computes_is_not_given_the_grace_of_an_apply() {
    const FIRST: &str = "resource \"terraform_data\" \"first\" {}\n";
    assert!(HEARD_WITHIN < INTERRUPT_GRACE);
    let world = World::start().await;
    let control_plane = &world.control_plane;
    let run = Pinned::of(&[("main.tf", FIRST)]);
    run.pin(control_plane);
    let plan = world.execute(run.plan.clone()).await;
    world.execute(run.apply(&plan, control_plane)).await;
    control_plane.publish();

    let endless = format!("{FIRST}{ENDLESS}");
    let next = run.again(&[("main.tf", &endless)], control_plane);
    next.pin(control_plane);
    control_plane.offer(next.plan.clone());
    // The plan itself has begun: before that, the sandbox would just be killed.
    control_plane
        .logged("terraform_data.first: Refreshing state...")
        .await;
    control_plane.cancel();
    let result = tokio::time::timeout(HEARD_WITHIN, control_plane.result())
        .await
        .expect("the plan is not waited for");
    let stopped = PhaseResult::Plan {
        end: PlanEnd::Stopped,
    };
    assert_eq!(result, stopped);
    assert!(control_plane.staged().is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_that_were_not_answered_are_sent_again_before_the_lease_is_over() {
    let world = World::start().await;
    let control_plane = &world.control_plane;
    let mut run = long_run();
    // A heartbeat a second: without others in between, two that fail would be the lease.
    run.plan.lease_seconds = 3;
    run.pin(control_plane);
    control_plane.offer(run.plan.clone());
    control_plane
        .logged("has been successfully initialized")
        .await;
    control_plane.be_deaf_for(2);
    let enough = control_plane.heartbeats() + BEATS_AFTER;
    let beating = async {
        while control_plane.heartbeats() < enough {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let outcome = tokio::time::timeout(HEARD_WITHIN, beating).await;
    assert!(outcome.is_ok(), "the runner gave its lease up");
    control_plane.cancel();
    let result = control_plane.result().await;
    assert!(
        matches!(
            result,
            PhaseResult::Plan {
                end: PlanEnd::Stopped
            }
        ),
        "{result:?}"
    );
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

/// The control plane was away for longer than a lease: it takes neither the state nor a report.
#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_comes_after_the_lease_is_kept_at_the_runner() {
    let world = World::start().await;
    let control_plane = std::sync::Arc::clone(&world.control_plane);
    control_plane.refuse_uploads();
    let mut run = Pinned::of(&[(
        "main.tf",
        "resource \"terraform_data\" \"first\" {\n  input = \"made\"\n}\nresource \"terraform_data\" \"slow\" {\n\
         depends_on = [terraform_data.first]\n  provisioner \"local-exec\" {\n    command = \"echo at work; sleep 600\"\n  }\n}\n",
    )]);
    run.plan.lease_seconds = 1;
    run.pin(&control_plane);
    let plan = world.execute(run.plan.clone()).await;
    let lease = run.apply(&plan, &control_plane);
    let name = format!("{}.{}.tfstate", lease.run, lease.attempt);
    control_plane.offer(lease);
    control_plane.logged("at work").await;
    control_plane.lose();
    let (control_plane, work) = world.end().await;
    assert!(!control_plane.has_result());

    let kept = work.path().join("work/kept-states").join(name);
    let state = std::fs::read_to_string(&kept).unwrap();
    assert!(state.contains("\"made\""), "{state}");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&kept), mode(kept.parent().unwrap())), (0o600, 0o700));

    // Another life of the runner cleans up behind this one, and leaves it where it is.
    let next = World::again(|_| {}, work).await;
    let run = Pinned::of(&[("main.tf", "")]);
    run.pin(&next.control_plane);
    next.execute(run.plan.clone()).await;
    let (_, _work) = next.end().await;
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), state);
}
