//! Code of a configuration that tries what it may not.
//!
//! Here a provisioner tries from inside an apply; what a provider tries while a run is planned is among
//! the promises of the whole system.

use stackship_runner_protocol::{ApplyEnd, PhaseResult};

use crate::support::{Pinned, World};

const SCRIPT: &str = r#"
try() { echo "tried $1 $2 $(curl -s -o /dev/null -w '%{http_code}' -X "$1" -H 'Authorization: Bearer x' "http://127.0.0.1:8080$2")"; }
try POST /v1/runs/run-1/approve
try POST /api/v2/runs/run-1/actions/apply
try GET /api/v2/organizations/acme/workspaces/other
try GET /api/v2/organizations/globex/workspaces/net
try POST /api/v2/workspaces/ws-00000000000000000000000001/state-versions
try GET /api/v2/workspaces/ws-00000000000000000000000001/current-state-version
try PUT /transfer/sv-00000000000000000000000001/state
try POST /runner/v1/leases
try GET /api/v2/organizations/acme/workspaces/net/../other
try GET /api/v2/ping
grep -rqs 'ss[xlr]_the' /workspace /tmp /proc/self/environ /proc/1/environ && echo "token found" || echo "no token found"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn from_inside_an_apply_only_the_runs_own_requests_pass() {
    let world = World::start().await;
    let control_plane = &world.control_plane;
    let main = "resource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" {\n    command = \"sh ${path.module}/try.sh\"\n  }\n}\n";
    let run = Pinned::of(&[("main.tf", main), ("try.sh", SCRIPT)]);
    run.pin(control_plane);
    let plan = world.execute(run.plan.clone()).await;
    let applied = world.execute(run.apply(&plan, control_plane)).await;
    assert!(
        matches!(
            &applied,
            PhaseResult::Apply {
                end: ApplyEnd::Exited { exit_code: 0, .. }
            }
        ),
        "{applied:?}"
    );
    let log = control_plane.log();
    let tried: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split_once("tried "))
        .map(|(_, tried)| tried)
        .collect();
    assert_eq!(tried.len(), 10, "{log}");
    for line in &tried {
        // curl itself resolves `..`, so that request names a foreign workspace like the one above it.
        let expected = if line.starts_with("GET /api/v2/ping") {
            " 204"
        } else {
            " 403"
        };
        assert!(line.ends_with(expected), "{line}");
    }
    assert!(log.contains("no token found"), "{log}");
    let asked = control_plane.requests();
    for path in [
        "/v1/runs",
        "/actions/apply",
        "workspaces/other",
        "globex",
        "ws-00000000000000000000000001/",
    ] {
        assert!(
            !asked.iter().any(|request| request.contains(path)),
            "{path} reached the control plane"
        );
    }
    world.stop().await;
}
