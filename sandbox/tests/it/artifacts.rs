//! Files that come out.

use std::os::unix::fs::PermissionsExt;

use stackship_sandbox::{
    Artifact, Digest, EndReason, Event, Presence, SandboxSpec, Stdout, StepExit,
};

use crate::support::{run, shell, spec};

fn artifact(name: &str, path: &str, presence: Presence) -> Artifact {
    Artifact {
        name: name.to_owned(),
        path: path.to_owned(),
        bytes_max: 8 << 20,
        after: "one".to_owned(),
        presence,
    }
}

fn with_artifact(script: &str, artifact: Artifact) -> SandboxSpec {
    let mut spec = spec(vec![shell("one", script), shell("two", "echo after")]);
    spec.artifacts.push(artifact);
    spec
}

#[tokio::test]
async fn an_artifact_comes_out_whole_private_and_hashed_outside() {
    let script = "head -c 3000000 /dev/zero > /workspace/plan.bin";
    let spec = with_artifact(
        script,
        artifact("plan", "/workspace/plan.bin", Presence::Required),
    );
    let ran = run(spec).await;
    assert_eq!(ran.outcome.reason, EndReason::Exited);
    let plan = ran.outcome.artifact("plan").unwrap();
    let bytes = std::fs::read(plan.path()).unwrap();
    assert_eq!(bytes, vec![0; 3_000_000]);
    assert_eq!(
        (plan.bytes(), plan.digest()),
        (3_000_000, Digest::of(&bytes))
    );
    assert_eq!(
        plan.path().metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    let place = |wanted: fn(&Event) -> bool| ran.events.iter().position(wanted).unwrap();
    assert!(
        place(|event| matches!(event, Event::Artifact(_)))
            < place(|event| matches!(event, Event::StepEnded(_))),
        "the file is there when the step's end is reported"
    );
}

#[tokio::test]
async fn an_artifact_is_deleted_with_its_last_handle() {
    let spec = with_artifact(
        "echo x > a",
        artifact("a", "/workspace/a", Presence::Required),
    );
    let ran = run(spec).await;
    let path = ran.outcome.artifact("a").unwrap().path().to_owned();
    assert!(path.exists());
    drop(ran);
    assert!(!path.exists());
}

#[tokio::test]
async fn an_empty_file_is_an_artifact() {
    let spec = with_artifact(": > a", artifact("a", "/workspace/a", Presence::Required));
    let ran = run(spec).await;
    let empty = ran.outcome.artifact("a").unwrap();
    assert_eq!((empty.bytes(), empty.digest()), (0, Digest::of(b"")));
    assert_eq!(std::fs::read(empty.path()).unwrap(), b"");
}

#[tokio::test]
async fn a_missing_required_artifact_ends_the_sandbox_and_is_named() {
    let spec = with_artifact(":", artifact("plan", "/workspace/none", Presence::Required));
    let ran = run(spec).await;
    assert_eq!(
        ran.outcome.reason,
        EndReason::ArtifactMissing {
            name: "plan".into()
        }
    );
    assert_eq!(ran.stdout, "");
}

#[tokio::test]
async fn a_missing_optional_artifact_is_normal() {
    let spec = with_artifact(
        ":",
        artifact("errored", "/workspace/none", Presence::Optional),
    );
    let ran = run(spec).await;
    assert_eq!(
        (ran.outcome.reason, ran.stdout.as_str()),
        (EndReason::Exited, "after\n")
    );
}

#[tokio::test]
async fn a_failed_step_still_gives_its_artifacts() {
    let script = "echo saved > errored.tfstate; exit 1";
    let file = artifact("errored", "/workspace/errored.tfstate", Presence::Optional);
    let mut spec = with_artifact(script, file);
    spec.artifacts
        .push(artifact("plan", "/workspace/none", Presence::Required));
    let ran = run(spec).await;
    let expected = EndReason::StepFailed {
        step: "one".into(),
        exit: StepExit::Code(1),
    };
    assert_eq!(ran.outcome.reason, expected);
    assert_eq!(ran.outcome.artifact("errored").unwrap().bytes(), 6);
}

#[tokio::test]
async fn an_artifact_above_its_limit_ends_the_sandbox_and_is_named() {
    let mut large = artifact("plan", "/workspace/a", Presence::Required);
    large.bytes_max = 1000;
    let ran = run(with_artifact("head -c 1000 /dev/zero > a", large.clone())).await;
    assert_eq!(ran.outcome.reason, EndReason::Exited);
    let ran = run(with_artifact("head -c 1001 /dev/zero > a", large)).await;
    assert_eq!(
        ran.outcome.reason,
        EndReason::ArtifactTooLarge {
            name: "plan".into()
        }
    );
    assert!(ran.outcome.artifacts.is_empty());
}

#[tokio::test]
async fn a_link_a_pipe_and_a_device_are_no_artifacts() {
    for script in [
        "ln -s /etc/passwd a",
        "mkdir d; ln -s /etc e; mkfifo a",
        "ln -s /dev/zero a",
        "mkdir a",
        "ln -s /proc/self/environ a",
    ] {
        let spec = with_artifact(script, artifact("plan", "/workspace/a", Presence::Required));
        let ran = run(spec).await;
        let expected = EndReason::ArtifactMissing {
            name: "plan".into(),
        };
        assert_eq!(ran.outcome.reason, expected, "{script}");
    }
    let script = "mkdir real; echo x > real/a; ln -s real d";
    let spec = with_artifact(
        script,
        artifact("plan", "/workspace/d/a", Presence::Required),
    );
    let reason = run(spec).await.outcome.reason;
    assert_eq!(
        reason,
        EndReason::ArtifactMissing {
            name: "plan".into()
        },
        "link on the way"
    );
}

#[tokio::test]
async fn standard_output_can_be_an_artifact_beside_the_log_of_errors() {
    let mut step = shell("one", "echo '{}'; echo note >&2");
    step.stdout = Stdout::Artifact {
        name: "json".to_owned(),
        bytes_max: 100,
    };
    let ran = run(spec(vec![step])).await;
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", "note\n"));
    let json = ran.outcome.artifact("json").unwrap();
    assert_eq!(std::fs::read(json.path()).unwrap(), b"{}\n");
}

#[tokio::test]
async fn endless_standard_output_as_an_artifact_ends_the_sandbox() {
    let mut step = shell("one", "exec cat /dev/zero");
    step.stdout = Stdout::Artifact {
        name: "json".to_owned(),
        bytes_max: 1 << 20,
    };
    let ran = run(spec(vec![step])).await;
    assert_eq!(
        ran.outcome.reason,
        EndReason::ArtifactTooLarge {
            name: "json".into()
        }
    );
}
