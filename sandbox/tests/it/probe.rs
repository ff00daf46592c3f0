//! A driver that cannot isolate says which check failed, and launches nothing.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use stackship_sandbox::SandboxDriver;

use crate::support::world;

#[tokio::test]
async fn the_probe_passes_here_and_names_its_checks() {
    let found = world()
        .driver
        .probe()
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(found.driver, "bubblewrap");
    for check in [
        "user namespace",
        "capabilities",
        "system call filter",
        "gateway",
        "host user",
    ] {
        assert!(
            found.checks.iter().any(|passed| passed == check),
            "{check}: {:?}",
            found.checks
        );
    }
}

#[test]
fn a_plain_user_without_a_delegated_group_is_told_the_remedy() {
    // The binary is copied because the build directory can be closed to other users.
    let open = tempfile::tempdir_in("/tmp").unwrap();
    let everyone = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(open.path(), everyone).unwrap();
    let binary = open.path().join("trial");
    std::fs::copy(env!("CARGO_BIN_EXE_sandbox-trial"), &binary).unwrap();
    let refused = Command::new(&binary)
        .args([
            "measure".as_ref(),
            open.path().join("run").as_os_str(),
            "1".as_ref(),
        ])
        .uid(65_534)
        .gid(65_534)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success());
    assert!(
        text.contains("cgroup") && text.contains("Delegate=yes"),
        "{text}"
    );
}
