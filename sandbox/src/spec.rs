//! What to run in a sandbox: inputs, steps, artifacts, limits and network.

mod check;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use check::SpecError;

use crate::Digest;

/// The writable work directory inside; the only place besides [`TMP_DIR`] where inputs may land.
pub const WORKSPACE_DIR: &str = "/workspace";
/// The writable scratch directory inside.
pub const TMP_DIR: &str = "/tmp";
/// Where a driver shows the tool directory by convention.
pub const TOFU_DIR: &str = "/opt/tofu";
/// Where a driver shows a provider mirror by convention.
pub const PROVIDERS_DIR: &str = "/providers";
/// Where a driver shows the host's own binary, read-only. A step may start it with a word of the host's
/// own, which its `main` must look for after [`run_helper_if_asked`](crate::run_helper_if_asked).
pub const HOST_BINARY: &str = "/sandbox-init";
/// Address of the gateway as seen from inside.
pub const GATEWAY_ADDRESS: &str = "127.0.0.1:8080";
/// Address of the egress proxy as seen from inside.
pub const EGRESS_ADDRESS: &str = "127.0.0.1:3128";

/// Most inputs in one spec; each may need one descriptor handed inside.
pub const INPUTS_MAX: usize = 64;
/// Most steps in one spec.
pub const STEPS_MAX: usize = 32;
/// Most artifacts in one spec.
pub const ARTIFACTS_MAX: usize = 64;
/// Most read-only directories in one spec.
pub const DIRECTORIES_MAX: usize = 16;
/// Most bytes of inputs given as [`InputSource::Bytes`], and of all step arguments and variables.
pub const INLINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// One process tree to isolate, from its inputs to its artifacts.
///
/// The driver verifies and places all inputs inside, then runs the steps in order. The first
/// step whose exit code is not among its [`Step::continue_on`] ends the sandbox.
#[derive(Debug, Clone)]
pub struct SandboxSpec {
    /// Short name for logs and directory names: 1 to 40 of `a-z`, `0-9` and `-`.
    pub name: String,
    /// Host directories shown read-only inside.
    pub directories: Vec<ReadOnlyDirectory>,
    /// Files and archives placed below [`WORKSPACE_DIR`] or [`TMP_DIR`] before the first step.
    pub inputs: Vec<Input>,
    /// What to run, in order.
    pub steps: Vec<Step>,
    /// Which files to bring out, and after which step.
    pub artifacts: Vec<Artifact>,
    /// Bounds of everything the tree may use.
    pub limits: Limits,
    /// Which of the two listeners exist inside.
    pub network: Network,
}

/// A host directory shown read-only. Its files must be readable by any user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOnlyDirectory {
    /// The directory on the host. Its parents may be private to the runner.
    pub host: PathBuf,
    /// [`TOFU_DIR`], [`PROVIDERS_DIR`] or another path below `/opt`.
    pub inside: String,
}

/// Bytes that the sandbox starts with.
#[derive(Debug, Clone)]
pub struct Input {
    /// Name used in outcomes, for example `configuration`.
    pub name: String,
    /// Where the bytes come from.
    pub source: InputSource,
    /// Checked inside before the bytes are used; a difference ends the sandbox with
    /// [`EndReason::InputMismatch`](crate::EndReason::InputMismatch).
    pub expected: Option<Digest>,
    /// Where the bytes go.
    pub placement: Placement,
}

/// Where an input's bytes come from.
#[derive(Clone)]
pub enum InputSource {
    /// A regular file on the host; it may be private to the runner and must not change.
    File(PathBuf),
    /// Bytes in memory; they may be secret.
    Bytes(Vec<u8>),
}

impl fmt::Debug for InputSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
        }
    }
}

/// Where an input goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// Copied to this new file.
    File {
        /// Absolute path below [`WORKSPACE_DIR`] or [`TMP_DIR`].
        path: String,
        /// Permission bits, at most `0o755`.
        mode: u32,
    },
    /// A tar.gz archive, unpacked by the rules of [`crate::unpack`] into this directory.
    Unpack {
        /// Absolute path below [`WORKSPACE_DIR`]; created if it is missing.
        directory: String,
    },
}

/// One command.
#[derive(Debug, Clone)]
pub struct Step {
    /// Unique name, for example `plan`.
    pub name: String,
    /// Program (absolute path inside) and arguments. Never a secret: processes inside can read it.
    pub argv: Vec<String>,
    /// The whole environment. Secrets are allowed here.
    pub environment: Environment,
    /// Absolute working directory inside.
    pub directory: String,
    /// Where standard output goes. Standard error is always a log.
    pub stdout: Stdout,
    /// Exit codes after which the next step runs.
    pub continue_on: Vec<i32>,
    /// Interrupted after this time, killed after the grace period.
    pub time_limit: Duration,
    /// Wait for [`Control::proceed`](crate::Control::proceed) before the next step, so that the
    /// caller can look at the artifacts of this one.
    pub pause_after: bool,
}

/// The variables of a step. `Debug` shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(Vec<(String, String)>);

impl Environment {
    /// `PATH`, `HOME` and `LANG`, and the proxy variables when `network` has an egress listener.
    pub fn base(network: Network) -> Self {
        let mut environment = Self::default();
        environment.set("PATH", "/opt/tofu:/usr/bin:/usr/sbin");
        environment.set("HOME", "/tmp");
        environment.set("LANG", "C.UTF-8");
        environment.set("AWS_EC2_METADATA_DISABLED", "true");
        if network.egress {
            // curl reads only the lower-case form of the second.
            for name in ["HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"] {
                environment.set(name, format!("http://{EGRESS_ADDRESS}"));
            }
        }
        environment
    }

    /// Sets a variable, replacing an earlier value.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        let name = name.into();
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value.into()));
        self
    }

    /// All pairs, in the order they were set.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

/// Where a step's standard output goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stdout {
    /// Into the log, as [`LogStream::Stdout`](crate::LogStream::Stdout).
    Log,
    /// Into an artifact of this name.
    Artifact {
        /// Artifact name, unique in the spec.
        name: String,
        /// Most bytes; more end the sandbox.
        bytes_max: u64,
    },
}

/// A file to bring out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Unique name, for example `plan`.
    pub name: String,
    /// Absolute path below [`WORKSPACE_DIR`] or [`TMP_DIR`]. Must be a regular file reached
    /// without symbolic links.
    pub path: String,
    /// Most bytes; more end the sandbox.
    pub bytes_max: u64,
    /// The step after whose end, good or bad, the file is collected.
    pub after: String,
    /// What its absence means.
    pub presence: Presence,
}

/// What the absence of an artifact means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// After a step that may continue, absence ends the sandbox. After a failed step it is normal.
    Required,
    /// Absence is normal.
    Optional,
}

/// Bounds of everything a sandbox may use.
///
/// Pages of the writable directories count as memory, so `memory_bytes` must exceed their sizes
/// plus what the processes need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory of all processes and writable directories; swap is off.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub pids: u32,
    /// Processor time per second, in thousandths of one processor.
    pub cpu_millis: u32,
    /// Size of [`WORKSPACE_DIR`].
    pub workspace_bytes: u64,
    /// Size of [`TMP_DIR`].
    pub tmp_bytes: u64,
    /// Log bytes reported as events. The rest is dropped; at [`Limits::LOG_FLOOD_FACTOR`] times
    /// this the sandbox is killed.
    pub log_bytes: u64,
    /// From launch to the end of the last step; includes pauses.
    pub total_time: Duration,
    /// Between an interrupt and the kill.
    pub interrupt_grace: Duration,
}

impl Limits {
    /// How many times `log_bytes` may be written before the sandbox is killed.
    pub const LOG_FLOOD_FACTOR: u64 = 64;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 3 << 30,
            pids: 512,
            cpu_millis: 2000,
            workspace_bytes: 1 << 30,
            tmp_bytes: 256 << 20,
            log_bytes: 16 << 20,
            total_time: Duration::from_hours(3),
            interrupt_grace: Duration::from_mins(1),
        }
    }
}

/// Which listeners exist inside. There is no other network: no route and no resolver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Network {
    /// A listener at [`GATEWAY_ADDRESS`].
    pub gateway: bool,
    /// A listener at [`EGRESS_ADDRESS`].
    pub egress: bool,
}
