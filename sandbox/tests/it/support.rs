//! One driver for the whole test process, and short ways to say what differs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use stackship_sandbox::bubblewrap::{Bubblewrap, Settings};
use stackship_sandbox::{
    Environment, Event, Limits, LogStream, Network, Outcome, Sandbox, SandboxDriver, SandboxSpec,
    Stdout, Step,
};
use tempfile::TempDir;

/// Places for all tests of this process at once.
const SLOTS: u16 = 8;

pub struct World {
    pub driver: Arc<Bubblewrap>,
    pub settings: Settings,
    _runtime: TempDir,
}

/// The binary with the room's helpers.
pub fn helper() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_sandbox-init"))
}

pub fn settings(name: &str, runtime: PathBuf) -> Settings {
    let mut settings = Settings::new(format!("{name}-{}", std::process::id()), runtime).unwrap();
    settings.helper = helper();
    settings.slots = SLOTS;
    settings
}

/// Makes the driver once; without `bwrap` every test fails with the remedy.
pub fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        remove_groups_of_dead_tests();
        let runtime = tempfile::tempdir().unwrap();
        let settings = settings("test", runtime.path().join("run"));
        let driver = Bubblewrap::new(settings.clone()).unwrap_or_else(|error| panic!("{error}"));
        World {
            driver: Arc::new(driver),
            settings,
            _runtime: runtime,
        }
    })
}

/// A static is never dropped, so each test process leaves the empty groups of its driver.
fn remove_groups_of_dead_tests() {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let trees = std::fs::read_dir("/sys/fs/cgroup").unwrap().flatten();
    for tree in trees {
        for own in groups.lines().filter_map(|line| line.rsplit(':').next()) {
            let directory = tree.path().join(own.trim_start_matches('/'));
            for group in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                let name = group.file_name().to_string_lossy().into_owned();
                let process = name.strip_prefix("stackship-test-");
                let process = process.and_then(|rest| rest.split('-').next());
                if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
                    // Another test process can have been first.
                    drop(std::fs::remove_dir(group.path()));
                }
            }
        }
    }
}

/// A step that runs a shell script.
pub fn shell(name: &str, script: &str) -> Step {
    Step {
        name: name.to_owned(),
        argv: ["/bin/sh", "-c", script].map(String::from).to_vec(),
        environment: Environment::base(Network::default()),
        directory: "/workspace".to_owned(),
        stdout: Stdout::Log,
        continue_on: vec![0],
        time_limit: Duration::from_mins(1),
        pause_after: false,
    }
}

/// A valid spec with modest limits.
pub fn spec(steps: Vec<Step>) -> SandboxSpec {
    SandboxSpec {
        name: "test".to_owned(),
        directories: Vec::new(),
        inputs: Vec::new(),
        steps,
        artifacts: Vec::new(),
        limits: Limits {
            memory_bytes: 512 << 20,
            pids: 64,
            workspace_bytes: 128 << 20,
            tmp_bytes: 32 << 20,
            log_bytes: 1 << 20,
            total_time: Duration::from_mins(2),
            interrupt_grace: Duration::from_secs(30),
            ..Limits::default()
        },
        network: Network::default(),
    }
}

pub async fn launch(spec: SandboxSpec) -> Box<dyn Sandbox> {
    world()
        .driver
        .launch(spec)
        .await
        .unwrap_or_else(|error| panic!("{error}: {error:?}"))
}

/// Everything a sandbox said and how it ended.
pub struct Ran {
    pub stdout: String,
    pub stderr: String,
    pub events: Vec<Event>,
    pub outcome: Outcome,
}

pub async fn finish(mut sandbox: Box<dyn Sandbox>) -> Ran {
    let mut events = Vec::new();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while let Some(event) = sandbox.next_event().await {
        if let Event::Log { stream, bytes, .. } = &event {
            let text = if *stream == LogStream::Stdout {
                &mut stdout
            } else {
                &mut stderr
            };
            text.extend_from_slice(bytes);
        }
        events.push(event);
    }
    Ran {
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
        events,
        outcome: sandbox.wait().await,
    }
}

pub async fn run(spec: SandboxSpec) -> Ran {
    finish(launch(spec).await).await
}

/// Runs one script and gives what it wrote; the script must end well.
pub async fn output(script: &str) -> String {
    let ran = run(spec(vec![shell("script", script)])).await;
    assert_eq!(
        ran.outcome.reason,
        stackship_sandbox::EndReason::Exited,
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    ran.stdout
}

/// Reads events until a log contains `text`; a sandbox that ends before is a failure.
pub async fn until_log(sandbox: &mut Box<dyn Sandbox>, text: &str) {
    let mut seen = String::new();
    while let Some(event) = sandbox.next_event().await {
        if let Event::Log { bytes, .. } = &event {
            seen.push_str(&String::from_utf8_lossy(bytes));
        }
        if seen.contains(text) {
            return;
        }
    }
    panic!(
        "it ended without `{text}`, after `{seen}`: {:?}",
        sandbox.wait().await.reason
    );
}

/// A process of the host, watched by a handle that no later process can take over.
pub struct Watched(std::os::fd::OwnedFd);

/// The living processes in the control groups of a runner.
pub fn processes_of(runner: &str) -> Vec<i32> {
    let mark = format!("/stackship-{runner}-");
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let inside = |pid: &i32| {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
        let living = read("stat").is_ok_and(|stat| !stat.contains(") Z "));
        living && read("cgroup").is_ok_and(|groups| groups.contains(&mark))
    };
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(inside).collect()
}

pub fn watch(processes: &[i32]) -> Vec<Watched> {
    let open = |pid: &i32| {
        let pid = rustix::process::Pid::from_raw(*pid)?;
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())
            .ok()
            .map(Watched)
    };
    processes.iter().filter_map(open).collect()
}

/// Blocks until all have ended; one that has not after 20 seconds is a failure.
pub fn all_end(watched: &[Watched]) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    for process in watched {
        let limit = Timespec {
            tv_sec: 20,
            tv_nsec: 0,
        };
        let ended = poll(&mut [PollFd::new(&process.0, PollFlags::IN)], Some(&limit)).unwrap();
        assert_eq!(ended, 1, "a process survived");
    }
}
