//! A driver that cannot isolate says which check failed, and launches nothing.

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
