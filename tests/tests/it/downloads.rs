//! Large downloads of a real server: what is guarded is in the history whatever becomes of it, and a large
//! plan costs no memory, however slowly it is read.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::{Download, ScriptedRunner, World, eventually};

const MIB: usize = 1024 * 1024;
/// More than any kernel takes for a reader who does not read.
const PLAN_BYTES: usize = 40 * MIB;
/// What a slow reader takes at a time.
const SIP_BYTES: usize = 64 * 1024;
/// What eight downloads of it at once may cost.
const MEMORY_BYTES_MAX: u64 = 24 * 1024 * 1024;
/// Longer than an unoptimized server takes to store a plan.
const LONG_LEASE: &[(&str, &str)] = &[("STACKSHIP_LEASE_SECONDS", "600")];
const PASSWORD: &str = "correct horse battery";

#[test]
fn a_download_that_a_crash_cuts_off_is_in_the_history() {
    let mut world = World::own(LONG_LEASE);
    let runner = ScriptedRunner::new(&world, "cut-off");
    let workspace = ScriptedRunner::workspace(&world.owner, "cut-off");
    let run = runner.plan(&world.owner, &workspace, &vec![7; PLAN_BYTES], b"{}");
    world
        .server
        .set_password(world.owner.organization(), "ada", PASSWORD);
    let proof = json!({"password": PASSWORD});
    world.owner.post("/v1/user/step-up", &proof);
    let reason = "The plan that this test is about";
    let path = format!("/v1/runs/{run}/raw-plan");
    let body = json!({"reason": reason}).to_string();
    let mut download = Download::begin(&world.owner, "POST", &path, &body);
    assert_eq!(download.length, PLAN_BYTES);
    download.read(MIB);
    // Whoever reads no further: the server is in the middle of it.
    world.server.signal(Signal::SIGKILL);
    world.server.wait_exit();
    download.read(PLAN_BYTES);
    assert!(download.came < download.length, "all of it came");

    world.restart();
    let released = format!(
        "/v1/organizations/{}/audit-events?type=guarded_artifact_released",
        world.owner.organization()
    );
    let entries = eventually("the history has the release", || {
        let entries = world.owner.get(&released);
        entries
            .as_array()
            .filter(|entries| !entries.is_empty())
            .cloned()
    });
    assert_eq!(entries.len(), 1, "{entries:#?}");
    assert_eq!(entries[0]["run"], run.as_str(), "{entries:#?}");
    let told = &entries[0]["payload"];
    assert_eq!(
        (&told["reason"], &told["bytes"]),
        (&json!(reason), &json!(PLAN_BYTES))
    );
}

#[test]
fn a_large_plan_is_given_out_in_constant_memory() {
    let world = World::own(LONG_LEASE);
    let runner = ScriptedRunner::new(&world, "large");
    let workspace = ScriptedRunner::workspace(&world.owner, "large");
    let document = vec![b' '; PLAN_BYTES];
    let run = runner.plan(&world.owner, &workspace, b"plan", &document);
    let path = format!("/api/v2/plans/{}/json-output", run.replace("run-", "plan-"));
    let begin = || Download::begin(&world.owner, "GET", &path, "");
    // Whatever is made once is made.
    begin().read(MIB);
    let before = world.server.forget_peak_memory();
    let mut slow: Vec<_> = (0..7).map(|_| begin()).collect();
    for download in &mut slow {
        download.read(MIB);
    }
    let mut fast = begin();
    for _ in 0..PLAN_BYTES / MIB {
        fast.read(MIB);
        // Slow, but not standing still: the server gives up on whoever takes nothing.
        for download in &mut slow {
            assert!(
                download.read(SIP_BYTES) >= SIP_BYTES,
                "a slow reader is cut off"
            );
        }
    }
    assert_eq!(fast.came, PLAN_BYTES);
    let grown = world.server.peak_memory().saturating_sub(before);
    assert!(grown < MEMORY_BYTES_MAX, "{grown} bytes more than idle");
}
