//! What is applied is what was approved, part by part.

use stackship_domain::Sha256Digest;
use stackship_domain::run::{EvidencePart, Predecessor};
use stackship_domain::variable::VariableCategory;
use stackship_runner_protocol::{ApplyEnd, InputName, Lease, PhaseResult, PlanEnd};

use crate::support::{Pinned, World, snapshot, text_variable};

const DEFAULTED: &str = "variable \"greeting\" { default = \"reviewed\" }\n\
    resource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" {\n    command = \"echo greeting=${var.greeting}\"\n  }\n}\n";

fn refused(result: &PhaseResult) -> Option<EvidencePart> {
    match result {
        PhaseResult::Apply {
            end: ApplyEnd::NotStarted { part, .. },
        } => *part,
        other => panic!("an apply was started: {other:?}"),
    }
}

fn approve_other(lease: &mut Lease, change: impl FnOnce(&mut stackship_domain::run::Evidence)) {
    let approved = lease.approved.as_mut().unwrap();
    change(&mut approved.evidence);
    approved.binding = approved.evidence.binding();
}

#[tokio::test(flavor = "multi_thread")]
async fn tampering_with_any_part_is_refused_and_named() {
    let world = World::start().await;
    let control_plane = &world.control_plane;
    let run = Pinned::of(&[("main.tf", DEFAULTED)]);
    run.pin(control_plane);
    let plan = world.execute(run.plan.clone()).await;
    let lease = run.apply(&plan, control_plane);
    let other = Sha256Digest::of(b"another");

    for (name, part) in [
        (InputName::Plan, EvidencePart::Plan),
        (InputName::PlanJson, EvidencePart::PlanJson),
        (InputName::PolicyResult, EvidencePart::Policy),
        (InputName::Configuration, EvidencePart::Configuration),
    ] {
        let original = control_plane.input_bytes(name);
        let mut changed = original.clone();
        *changed.last_mut().unwrap() ^= 1;
        control_plane.input(name, changed);
        assert_eq!(refused(&world.execute(lease.clone()).await), Some(part));
        control_plane.input(name, original);
    }
    for part in [
        EvidencePart::Dependencies,
        EvidencePart::TofuVersion,
        EvidencePart::Binding,
        EvidencePart::Predecessor,
    ] {
        let mut lease = lease.clone();
        match part {
            EvidencePart::Dependencies => {
                approve_other(&mut lease, |evidence| evidence.dependencies = other);
            }
            EvidencePart::TofuVersion => {
                approve_other(&mut lease, |evidence| {
                    evidence.tofu_version = "1.12.5".parse().unwrap();
                });
            }
            EvidencePart::Binding => lease.approved.as_mut().unwrap().binding = other,
            _ => {
                // Planned on another state than the workspace has now: it has none.
                let gone = Predecessor::Version {
                    id: "sv-00000000000000000000000001".parse().unwrap(),
                    serial: 4,
                    digest: other,
                };
                lease.predecessor = gone.clone();
                approve_other(&mut lease, |evidence| evidence.predecessor = gone);
            }
        }
        assert_eq!(refused(&world.execute(lease).await), Some(part));
    }
    assert!(!control_plane.tofu_was_started());
    assert!(control_plane.staged().is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_left_at_its_default_cannot_be_given_another_value_after_the_approval() {
    let world = World::start().await;
    let control_plane = &world.control_plane;
    let run = Pinned::of(&[("main.tf", DEFAULTED)]);
    run.pin(control_plane);
    let plan = world.execute(run.plan.clone()).await;
    let lease = run.apply(&plan, control_plane);

    let mut changed = run.clone();
    changed.snapshot = snapshot(vec![text_variable(
        "greeting",
        "smuggled",
        VariableCategory::Terraform,
        false,
    )]);
    changed.pin(control_plane);
    assert_eq!(
        refused(&world.execute(lease.clone()).await),
        Some(EvidencePart::Inputs)
    );

    run.pin(control_plane);
    let applied = world.execute(lease).await;
    assert!(
        matches!(
            &applied,
            PhaseResult::Apply {
                end: ApplyEnd::Exited { exit_code: 0, .. }
            }
        ),
        "{applied:?}"
    );
    assert!(
        control_plane.log().contains("greeting=reviewed"),
        "{}",
        control_plane.log()
    );
    world.stop().await;
}

/// Serves a module from inside the sandbox, and changes a file of ours where there is one: what a
/// program that `tofu init` runs could do.
const HOSTILE_TRANSPORT: &str = r#"[ ! -f "$TARGET" ] || echo '# changed' >>"$TARGET"
if [ ! -d /tmp/repo ]; then
  git init -q /tmp/repo && cd /tmp/repo && echo 'output "o" { value = 1 }' >main.tf && git add main.tf &&
    git -c user.name=a -c user.email=a@b.invalid commit -qm module
fi >&2
exec git upload-pack /tmp/repo
"#;

const MODULE: &str = "module \"m\" {\n  source = \"git::ssh://git@localhost/repo.git\"\n}\n\
    resource \"terraform_data\" \"a\" {\n  input = \"reviewed\"\n}\n";

fn hostile_to(target: &str) -> Pinned {
    let variables = [
        ("GIT_SSH_COMMAND", "sh /workspace/transport.sh"),
        ("TARGET", target),
    ];
    let variables = variables
        .map(|(key, value)| text_variable(key, value, VariableCategory::Env, false))
        .to_vec();
    let files = [("main.tf", MODULE), ("transport.sh", HOSTILE_TRANSPORT)];
    Pinned::with(&files, snapshot(variables))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_init_changes_after_it_was_verified_is_not_applied() {
    let world = World::start().await;
    let control_plane = &world.control_plane;
    let run = hostile_to("/tmp/stackship/plan.bin");
    run.pin(control_plane);
    let plan = world.execute(run.plan.clone()).await;
    let lease = run.apply(&plan, control_plane);
    assert_eq!(
        refused(&world.execute(lease).await),
        Some(EvidencePart::Plan)
    );
    assert!(!control_plane.tofu_was_started());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_that_init_changes_are_not_planned_with() {
    let world = World::start().await;
    let run = hostile_to("/tmp/stackship/inputs.tfvars");
    run.pin(&world.control_plane);
    let plan = world.execute(run.plan.clone()).await;
    match &plan {
        PhaseResult::Plan {
            end: PlanEnd::Failed { detail, .. },
        } => assert!(detail.contains("`variables`"), "{detail}"),
        other => panic!("a plan was made: {other:?}"),
    }
    world.stop().await;
}
