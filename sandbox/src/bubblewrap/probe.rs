//! The self-test: a real sandbox with production flags, checked from inside and outside.

use std::fs::{self, File, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::launch::{BubblewrapSandbox, HostProcess, launch};
use super::settings::{bwrap_version, unavailable};
use super::{BASE_PROFILE, DRIVER, Inner};
use crate::driver::{Capabilities, Sandbox, Unavailable};
use crate::init::self_test::{Canaries, Findings};
use crate::outcome::{EndReason, Event, Outcome};
use crate::spec::{Environment, Limits, Network, SandboxSpec, Stdout, Step};
use crate::wire::{INIT_PATH, SELF_TEST_ARGUMENT};

/// Longest report of the inside.
const FINDINGS_MAX: u64 = 64 * 1024;
/// Longest time of either step.
const STEP_TIME_MAX: Duration = Duration::from_secs(30);
/// Between the kill and the end of a process; a dying one is still visible for a moment.
const END_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest request of the inside to the gateway that is read.
const REQUEST_MAX: usize = 1024;
/// Leaves a process that has its own session, no parent and ignores every signal it can.
const LINGER: &str = "(setsid sh -c 'trap \"\" HUP INT TERM; while :; do sleep 1000; done' &) ; \
                      trap '' INT TERM; echo up; while :; do sleep 1000; done";

pub(super) async fn run(inner: &Arc<Inner>) -> Result<Capabilities, Unavailable> {
    let version = bwrap_version(&inner.bwrap)?;
    let canary = CanaryFile::plant(&inner.settings.runtime_directory)?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await;
    let listener = listener.map_err(|error| unavailable("canary listener", &error.to_string()))?;
    let address = listener.local_addr();
    let address = address.map_err(|error| unavailable("canary listener", &error.to_string()))?;
    tracing::info!("Sandbox self-test: one is started, looked at from both sides, and killed");
    let sandbox = launch(Arc::clone(inner), spec(&canary, address)?).await;
    let sandbox = sandbox.map_err(|error| unavailable("launch", &full_text(&error)))?;
    let (outcome, seen) = observe(sandbox).await?;
    let mut checks = vec!["launch".to_owned(), "limits read back".to_owned()];
    checks.extend(inside(&outcome)?);
    let outcome = checked_outside(outcome, seen).await?;
    checks.extend(["host user", "left-over processes"].map(str::to_owned));
    Ok(Capabilities {
        driver: DRIVER,
        version,
        base_profile: BASE_PROFILE,
        cgroup: inner.hierarchy.version(),
        landlock: outcome.isolation.landlock,
        slots: inner.settings.slots,
        checks,
    })
}

fn spec(canary: &CanaryFile, listener: SocketAddr) -> Result<SandboxSpec, Unavailable> {
    let file = canary.0.to_string_lossy().into_owned();
    let canaries = serde_json::to_string(&Canaries { file, listener });
    let canaries = canaries.map_err(|error| unavailable("canaries", &error.to_string()))?;
    let findings = Stdout::Artifact {
        name: "findings".to_owned(),
        bytes_max: FINDINGS_MAX,
    };
    Ok(SandboxSpec {
        name: "self-test".to_owned(),
        directories: Vec::new(),
        inputs: Vec::new(),
        steps: vec![
            step(
                "inside",
                &[INIT_PATH, SELF_TEST_ARGUMENT, &canaries],
                findings,
            ),
            step("linger", &["/bin/sh", "-c", LINGER], Stdout::Log),
        ],
        artifacts: Vec::new(),
        limits: Limits {
            total_time: STEP_TIME_MAX * 2,
            ..Limits::default()
        },
        network: Network {
            gateway: true,
            egress: false,
        },
    })
}

fn step(name: &str, argv: &[&str], stdout: Stdout) -> Step {
    Step {
        name: name.to_owned(),
        argv: argv.iter().map(|&argument| argument.to_owned()).collect(),
        environment: Environment::base(Network::default()),
        directory: "/workspace".to_owned(),
        stdout,
        continue_on: vec![0],
        time_limit: STEP_TIME_MAX,
        pause_after: false,
    }
}

/// Serves the gateway, looks at the tree while it lingers, kills it and waits.
async fn observe(
    mut sandbox: BubblewrapSandbox,
) -> Result<(Outcome, Vec<HostProcess>), Unavailable> {
    let gateway = sandbox.take_gateway();
    let gateway = gateway.ok_or_else(|| unavailable("gateway", "there is no listener"))?;
    let answering = tokio::spawn(answer(gateway));
    let mut seen = Vec::new();
    while let Some(event) = sandbox.next_event().await {
        if let Event::Log { .. } = event
            && seen.is_empty()
        {
            seen = sandbox.host_processes();
            sandbox.control().kill().await;
        }
    }
    answering.abort();
    Ok((sandbox.wait().await, seen))
}

async fn answer(gateway: TcpListener) {
    while let Ok((mut stream, _)) = gateway.accept().await {
        let mut request = vec![0; REQUEST_MAX];
        let answered = async {
            let _read = stream.read(&mut request).await?;
            stream.write_all(b"HTTP/1.0 204 No Content\r\n\r\n").await
        };
        if let Err(error) = answered.await {
            tracing::debug!(%error, "the probe's gateway lost a connection");
        }
    }
}

/// The findings of the inside; the first failed check is the error.
fn inside(outcome: &Outcome) -> Result<Vec<String>, Unavailable> {
    let missing = || {
        let reason = &outcome.reason;
        unavailable(
            "self-test",
            &format!("it reported nothing; the sandbox ended as {reason:?}"),
        )
    };
    let artifact = outcome.artifact("findings").ok_or_else(missing)?;
    let text = fs::read(artifact.path()).map_err(|_| missing())?;
    let findings: Findings = serde_json::from_slice(&text).map_err(|_| missing())?;
    match findings.failed {
        None => Ok(findings.passed),
        Some((item, detail)) => Err(Unavailable { item, detail }),
    }
}

/// Waits for processes, so it runs where blocking is allowed.
async fn checked_outside(outcome: Outcome, seen: Vec<HostProcess>) -> Result<Outcome, Unavailable> {
    let checked = tokio::task::spawn_blocking(move || {
        outside(&outcome, &seen)?;
        Ok(outcome)
    });
    let broken = |error: tokio::task::JoinError| unavailable("self-test", &error.to_string());
    checked.await.map_err(broken)?
}

fn outside(outcome: &Outcome, seen: &[HostProcess]) -> Result<(), Unavailable> {
    let expected = outcome.isolation.host_uid;
    if expected == 0 || seen.is_empty() || seen.iter().any(|process| process.uid != expected) {
        let detail = format!("not all of {seen:?} ran as user {expected}");
        return Err(unavailable("host user", &detail));
    }
    if outcome.reason != EndReason::Killed {
        let detail = format!("the tree ended as {:?}, not by the kill", outcome.reason);
        return Err(unavailable("left-over processes", &detail));
    }
    match seen
        .iter()
        .find(|process| !process.ends_within(END_TIME_MAX))
    {
        None => Ok(()),
        Some(survivor) => {
            let detail = format!("process {} survived the kill", survivor.number);
            Err(unavailable("left-over processes", &detail))
        }
    }
}

fn full_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// A file that any user could read if it were visible; removed at the end.
struct CanaryFile(std::path::PathBuf);

impl CanaryFile {
    fn plant(directory: &Path) -> Result<Self, Unavailable> {
        let path = directory.join("canary");
        let planted = File::create(&path)
            .and_then(|file| file.set_permissions(Permissions::from_mode(0o644)));
        planted.map_err(|error| unavailable("canary file", &error.to_string()))?;
        Ok(Self(path))
    }
}

impl Drop for CanaryFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::debug!(%error, "the probe's canary file was already gone");
        }
    }
}
