//! Limits and the end of a whole process tree, by control groups.
//!
//! Two layouts. **Hybrid**: memory, pids and cpu are v1 controllers, each with its own tree, and
//! the v2 tree, when mounted, has no controllers but its `cgroup.kill` ends a tree at once; limits
//! come from v1 and the kill from v2. **Pure v2**: one delegated subtree does everything; the
//! runner first moves itself into a leaf, because a group with processes cannot pass controllers
//! on.

mod files;
mod layout;

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::files::{field, make, names, number, remove, set};
use self::layout::Layout;
use super::settings::unavailable;
use crate::driver::{LaunchError, SweepError, Unavailable};
use crate::spec::Limits;

/// Accounting period of the processor limit.
const CPU_PERIOD_MICROS: u64 = 100_000;
/// Most memory of the kernel for a tree's TCP connections, where that is not counted as the tree's own.
const TCP_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long a killed tree may take to vanish before its slot is given up.
const EMPTY_WAIT_MAX: Duration = Duration::from_secs(20);
/// Pause between looks where the kernel does not notify.
const EMPTY_LOOK_PAUSE: Duration = Duration::from_millis(5);
/// The file of that limit.
const TCP_LIMIT: &str = "memory.kmem.tcp.limit_in_bytes";
/// First part of the names of groups, by which leftovers are known.
const GROUP_PREFIX: &str = "slot-";

/// Where this runner's groups go.
#[derive(Debug)]
pub(super) struct Hierarchy {
    layout: Layout,
}

/// The groups of one sandbox.
#[derive(Debug)]
pub(super) struct Group {
    /// Every directory, the controllers' first.
    directories: Vec<PathBuf>,
    memory: PathBuf,
    pids: PathBuf,
    unified: Option<PathBuf>,
    v1: bool,
}

/// What a tree used, as far as the kernel tells.
#[derive(Debug, Default)]
pub(super) struct Usage {
    pub(super) peak_memory_bytes: Option<u64>,
    pub(super) cpu_time: Option<Duration>,
    pub(super) oom_kills: u64,
    pub(super) pids_refusals: u64,
}

impl Hierarchy {
    /// Finds the controllers and makes this runner's own groups, or says what is missing.
    pub(super) fn discover(runner_name: &str) -> Result<Self, Unavailable> {
        let layout =
            Layout::discover(runner_name).map_err(|detail| unavailable("cgroup", &detail))?;
        Ok(Self { layout })
    }

    /// Name of the layout for evidence.
    pub(super) fn version(&self) -> &'static str {
        match &self.layout {
            Layout::V1 { unified: None, .. } => "v1",
            Layout::V1 {
                unified: Some(_), ..
            } => "v1+v2",
            Layout::V2 { .. } => "v2",
        }
    }

    /// Makes the groups of a slot with these limits, and reads the limits back.
    pub(super) fn create(&self, slot: u16, limits: &Limits) -> Result<Group, LaunchError> {
        let group = self.group(&format!("{GROUP_PREFIX}{slot}"));
        let failed = |detail| LaunchError::Limits { detail };
        group.remove_left_over().map_err(failed)?;
        for directory in &group.directories {
            make(directory).map_err(failed)?;
        }
        group
            .limit(limits, &self.layout)
            .and_then(|()| group.check(limits))
            .map_err(|detail| {
                // Best effort: what stays is swept at the next start, and the launch fails anyway.
                drop(group.remove());
                failed(detail)
            })?;
        Ok(group)
    }

    /// Ends and removes the groups of an earlier life.
    pub(super) fn sweep(&self) -> Result<u32, SweepError> {
        let mut found = std::collections::BTreeSet::new();
        for parent in self.layout.parents() {
            found.extend(
                names(parent)
                    .into_iter()
                    .filter(|name| name.starts_with(GROUP_PREFIX)),
            );
        }
        let mut swept = 0;
        for name in found {
            let group = self.group(&name);
            group.kill();
            group.wait_until_empty();
            group
                .remove()
                .map_err(|(path, source)| SweepError { path, source })?;
            swept += 1;
        }
        Ok(swept)
    }

    fn group(&self, name: &str) -> Group {
        match &self.layout {
            Layout::V1 {
                memory,
                pids,
                cpu,
                unified,
            } => {
                let unified = unified.as_ref().map(|parent| parent.join(name));
                let controllers = [memory, pids, cpu].map(|parent| parent.join(name));
                Group {
                    memory: controllers[0].clone(),
                    pids: controllers[1].clone(),
                    directories: controllers.into_iter().chain(unified.clone()).collect(),
                    unified,
                    v1: true,
                }
            }
            Layout::V2 { parent } => {
                let directory = parent.join(name);
                Group {
                    memory: directory.clone(),
                    pids: directory.clone(),
                    unified: Some(directory.clone()),
                    directories: vec![directory],
                    v1: false,
                }
            }
        }
    }
}

impl Drop for Hierarchy {
    fn drop(&mut self) {
        for parent in self.layout.parents() {
            if let Err(error) = std::fs::remove_dir(parent) {
                tracing::debug!(path = %parent.display(), %error, "a control group stays");
            }
        }
    }
}

impl Group {
    /// The files by which a process enters every group.
    pub(super) fn entrances(&self) -> Vec<PathBuf> {
        self.directories
            .iter()
            .map(|directory| directory.join("cgroup.procs"))
            .collect()
    }

    /// The file that lists the processes of the group.
    pub(super) fn process_list(&self) -> PathBuf {
        self.pids.join("cgroup.procs")
    }

    fn limit(&self, limits: &Limits, layout: &Layout) -> Result<(), String> {
        let memory = limits.memory_bytes.to_string();
        let pids = limits.pids.to_string();
        let quota = u64::from(limits.cpu_millis) * CPU_PERIOD_MICROS / 1000;
        set(&self.pids.join("pids.max"), &pids)?;
        match layout {
            Layout::V1 { .. } => {
                set(&self.memory.join("memory.limit_in_bytes"), &memory)?;
                let swap = self.memory.join("memory.memsw.limit_in_bytes");
                if swap.exists() {
                    set(&swap, &memory)?;
                } else {
                    set(&self.memory.join("memory.swappiness"), "0")?;
                }
                // With v2 it counts as the group's own; here, without a limit, it is not counted at all,
                // and is taken from what all of the host's connections share.
                let tcp = self.memory.join(TCP_LIMIT);
                if tcp.exists() {
                    set(&tcp, &TCP_BYTES_MAX.to_string())?;
                }
                let cpu = &self.directories[2];
                set(
                    &cpu.join("cpu.cfs_period_us"),
                    &CPU_PERIOD_MICROS.to_string(),
                )?;
                set(&cpu.join("cpu.cfs_quota_us"), &quota.to_string())
            }
            Layout::V2 { .. } => {
                set(&self.memory.join("memory.max"), &memory)?;
                let swap = self.memory.join("memory.swap.max");
                if swap.exists() {
                    set(&swap, "0")?;
                }
                set(
                    &self.memory.join("cpu.max"),
                    &format!("{quota} {CPU_PERIOD_MICROS}"),
                )
            }
        }
    }

    /// The kernel rounds down to pages but must not have ignored a limit.
    fn check(&self, limits: &Limits) -> Result<(), String> {
        let memory = self.memory.join(if self.v1 {
            "memory.limit_in_bytes"
        } else {
            "memory.max"
        });
        let pids = self.pids.join("pids.max");
        if number(&memory).is_none_or(|bytes| bytes > limits.memory_bytes) {
            return Err(format!("{} does not hold the limit", memory.display()));
        }
        if number(&pids) != Some(limits.pids.into()) {
            return Err(format!("{} does not hold the limit", pids.display()));
        }
        Ok(())
    }

    pub(super) fn usage(&self) -> Usage {
        let (peak, oom) = if self.v1 {
            ("memory.max_usage_in_bytes", "memory.oom_control")
        } else {
            ("memory.peak", "memory.events")
        };
        let cpu = self
            .unified
            .as_ref()
            .and_then(|unified| field(&unified.join("cpu.stat"), "usage_usec"));
        Usage {
            peak_memory_bytes: number(&self.memory.join(peak)),
            cpu_time: cpu.map(Duration::from_micros),
            oom_kills: field(&self.memory.join(oom), "oom_kill").unwrap_or(0),
            pids_refusals: field(&self.pids.join("pids.events"), "max").unwrap_or(0),
        }
    }

    /// Sends SIGKILL to every process of the group; with v2 this includes those being forked.
    pub(super) fn kill(&self) {
        if let Some(unified) = &self.unified
            && std::fs::write(unified.join("cgroup.kill"), "1").is_ok()
        {
            return;
        }
        // Without forks, one pass reaches everybody; later passes come from the wait.
        drop(std::fs::write(self.pids.join("pids.max"), "0"));
        for process in self.processes() {
            // One that is gone already is what was wanted.
            let _gone = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
    }

    fn processes(&self) -> Vec<i32> {
        let text = std::fs::read_to_string(self.process_list()).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Blocks until no process is left; false when that takes too long.
    pub(super) fn wait_until_empty(&self) -> bool {
        match &self.unified {
            Some(unified) if unified.exists() => wait_for_events(&unified.join("cgroup.events")),
            _ => self.wait_by_looking(),
        }
    }

    fn wait_by_looking(&self) -> bool {
        let looks = EMPTY_WAIT_MAX.as_millis() / EMPTY_LOOK_PAUSE.as_millis();
        for _ in 0..looks {
            if self.processes().is_empty() {
                return true;
            }
            self.kill();
            std::thread::sleep(EMPTY_LOOK_PAUSE);
        }
        false
    }

    /// Removes the directories; a group with processes stays and is the error.
    pub(super) fn remove(&self) -> Result<(), (PathBuf, std::io::Error)> {
        self.directories
            .iter()
            .rev()
            .try_for_each(|directory| remove(directory))
    }

    /// A slot's groups can be there already when an earlier tree would not die in time.
    fn remove_left_over(&self) -> Result<(), String> {
        if !self.directories.iter().any(|directory| directory.exists()) {
            return Ok(());
        }
        self.kill();
        self.wait_until_empty();
        self.remove()
            .map_err(|(path, error)| format!("{}: {error}", path.display()))
    }
}

/// `cgroup.events` becomes readable for `poll` when the group turns empty.
fn wait_for_events(path: &Path) -> bool {
    let Ok(file) = std::fs::File::open(path) else {
        return true;
    };
    let deadline = std::time::Instant::now() + EMPTY_WAIT_MAX;
    loop {
        if field(path, "populated") != Some(1) {
            return true;
        }
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        let Ok(timeout) = Timespec::try_from(left) else {
            return false;
        };
        // The first poll of a fresh file may report at once; the loop then looks again.
        read_to_arm(&file);
        if field(path, "populated") != Some(1) {
            return true;
        }
        match poll(&mut [PollFd::new(&file, PollFlags::PRI)], Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Reading notes the present count of changes, so that the next poll waits for a later one.
fn read_to_arm(file: &std::fs::File) {
    use std::os::unix::fs::FileExt;
    let mut text = [0; 128];
    if let Err(error) = file.read_at(&mut text, 0) {
        tracing::debug!(%error, "cannot read the group's events");
    }
}
