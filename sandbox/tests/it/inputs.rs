//! What a sandbox starts with.

use std::os::unix::fs::PermissionsExt;

use stackship_sandbox::{
    Digest, EndReason, Input, InputSource, LaunchError, Placement, ReadOnlyDirectory,
    SandboxDriver, SandboxSpec,
};

use crate::support::{run, shell, spec, world};
use crate::unpack::{archive, file_entry};

fn with_input(script: &str, source: InputSource, expected: Option<Digest>) -> SandboxSpec {
    let mut spec = spec(vec![shell("one", script)]);
    spec.inputs.push(Input {
        name: "plan".to_owned(),
        source,
        expected,
        placement: Placement::File {
            path: "/workspace/in/plan.bin".to_owned(),
            mode: 0o640,
        },
    });
    spec
}

#[tokio::test]
async fn a_private_file_of_the_host_and_bytes_in_memory_are_placed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plan");
    std::fs::write(&path, "content").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    for source in [
        InputSource::File(path),
        InputSource::Bytes(b"content".to_vec()),
    ] {
        let script = "cat in/plan.bin; stat -c ' %a %u' in/plan.bin";
        let ran = run(with_input(script, source, Some(Digest::of(b"content")))).await;
        assert_eq!(ran.stdout, "content 640 1000\n", "{:?}", ran.outcome.reason);
    }
}

#[tokio::test]
async fn an_input_with_other_bytes_ends_the_sandbox_and_is_named() {
    let source = InputSource::Bytes(b"tampered".to_vec());
    let ran = run(with_input("echo no", source, Some(Digest::of(b"content")))).await;
    let expected = EndReason::InputMismatch {
        name: "plan".into(),
        found: Digest::of(b"tampered"),
    };
    assert_eq!(ran.outcome.reason, expected);
    assert!(ran.outcome.steps.is_empty() && ran.stdout.is_empty());
}

fn with_archive(script: &str, bytes: Vec<u8>, expected: Digest) -> SandboxSpec {
    let mut spec = spec(vec![shell("one", script)]);
    spec.inputs.push(Input {
        name: "configuration".to_owned(),
        source: InputSource::Bytes(bytes),
        expected: Some(expected),
        placement: Placement::Unpack {
            directory: "/workspace/config".to_owned(),
        },
    });
    spec
}

#[tokio::test]
async fn an_archive_is_verified_and_unpacked() {
    let bytes = archive(&[
        file_entry("main.tf", b"x"),
        file_entry("terraform.tfstate", b"{}"),
    ]);
    let digest = Digest::of(&bytes);
    let ran = run(with_archive("find config -type f", bytes, digest)).await;
    assert_eq!(ran.stdout, "config/main.tf\n", "{:?}", ran.outcome.reason);
}

#[tokio::test]
async fn a_tampered_archive_is_not_unpacked() {
    let bytes = archive(&[file_entry("main.tf", b"x")]);
    let ran = run(with_archive("echo no", bytes, Digest::of(b"other"))).await;
    assert!(
        matches!(ran.outcome.reason, EndReason::InputMismatch { .. }),
        "{:?}",
        ran.outcome
    );
}

#[tokio::test]
async fn a_refused_archive_names_entry_and_rule() {
    let bytes = archive(&[file_entry("../x", b"x")]);
    let digest = Digest::of(&bytes);
    let ran = run(with_archive("echo no", bytes, digest)).await;
    let EndReason::InputRefused { name, reason } = ran.outcome.reason else {
        panic!("{:?}", ran.outcome.reason);
    };
    assert_eq!(
        (&*name, reason.as_str()),
        (
            "configuration",
            "entry `../x`: the path leads out of the archive"
        )
    );
}

#[tokio::test]
async fn a_directory_below_a_private_one_is_shown_read_only() {
    let private = tempfile::tempdir().unwrap();
    let host = private.path().join("with space");
    std::fs::create_dir(&host).unwrap();
    std::fs::write(host.join("tofu"), "#!/bin/sh\necho ran\n").unwrap();
    std::fs::set_permissions(host.join("tofu"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut spec = spec(vec![shell(
        "one",
        "tofu; ls /providers; touch /opt/tofu/x /providers/x",
    )]);
    for inside in ["/opt/tofu", "/providers"] {
        spec.directories.push(ReadOnlyDirectory {
            host: host.clone(),
            inside: inside.to_owned(),
        });
    }
    let ran = run(spec).await;
    assert_eq!(ran.stdout, "ran\ntofu\n");
    assert_eq!(
        ran.stderr.matches("Read-only file system").count(),
        2,
        "{}",
        ran.stderr
    );
    assert_eq!(std::fs::read_dir(&host).unwrap().count(), 1);
}

#[tokio::test]
async fn an_absent_file_or_directory_is_named_before_anything_starts() {
    let source = InputSource::File("/nonexistent/plan".into());
    let refused = world().driver.launch(with_input(":", source, None)).await;
    assert!(matches!(refused.err(), Some(LaunchError::Input { name, .. }) if name == "plan"));
    let mut absent = spec(vec![shell("one", ":")]);
    absent.directories.push(ReadOnlyDirectory {
        host: "/nonexistent".into(),
        inside: "/opt/tofu".to_owned(),
    });
    let refused = world().driver.launch(absent).await;
    assert!(matches!(refused.err(), Some(LaunchError::Input { name, .. }) if name == "/opt/tofu"));
}

#[tokio::test]
async fn secrets_of_the_specification_are_not_shown_in_debug_texts() {
    let mut spec = with_input(":", InputSource::Bytes(b"hidden-bytes".to_vec()), None);
    spec.steps[0].environment.set("TOKEN", "hidden-value");
    let text = format!("{spec:?}");
    assert!(text.contains("TOKEN") && !text.contains("hidden"), "{text}");
}
