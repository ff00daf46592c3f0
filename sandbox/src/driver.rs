//! The contract between a caller and a way of isolating.

use async_trait::async_trait;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::{Event, Outcome, SandboxSpec, SpecError};

/// A way of isolating process trees.
#[async_trait]
pub trait SandboxDriver: Send + Sync {
    /// Stable name for evidence, for example `bubblewrap`.
    fn id(&self) -> &'static str;

    /// Launches a real sandbox with production settings and checks it from inside and outside.
    /// The first failed item is the error.
    async fn probe(&self) -> Result<Capabilities, Unavailable>;

    /// Starts a sandbox. On success the supervisor inside is up and the listeners are ready.
    /// Waits while all places are taken.
    async fn launch(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>, LaunchError>;

    /// Ends and removes what an earlier life of this runner left. Call before the first launch.
    async fn sweep(&self) -> Result<u32, SweepError>;
}

/// A running process tree. Dropping the handle kills the tree.
#[async_trait]
pub trait Sandbox: Send {
    /// Name of this sandbox, unique on the machine for its life.
    fn id(&self) -> &str;

    /// The listener at [`GATEWAY_ADDRESS`](crate::spec::GATEWAY_ADDRESS) inside, once.
    fn take_gateway(&mut self) -> Option<TcpListener>;

    /// The listener at [`EGRESS_ADDRESS`](crate::spec::EGRESS_ADDRESS) inside, once.
    fn take_egress(&mut self) -> Option<TcpListener>;

    /// A handle to steer the sandbox while another task reads its events.
    fn control(&self) -> Control;

    /// The next event; `None` when the sandbox ended. A caller that does not read slows the steps
    /// down, since only [`EVENTS_QUEUED_MAX`] events wait.
    async fn next_event(&mut self) -> Option<Event>;

    /// Drops the events not yet read and waits for the end. All processes are gone and the place
    /// is free when it returns. A second call returns the same.
    async fn wait(&mut self) -> Outcome;
}

/// Most events that wait for the caller.
pub const EVENTS_QUEUED_MAX: usize = 64;

/// Most commands that wait for the sandbox.
pub(crate) const COMMANDS_QUEUED_MAX: usize = 16;

/// What a caller can ask of a running sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Interrupt,
    Kill,
    Proceed,
}

/// Steers a sandbox. Asking something of a sandbox that ended does nothing.
#[derive(Debug, Clone)]
pub struct Control {
    commands: mpsc::Sender<Command>,
}

impl Control {
    pub(crate) fn new(commands: mpsc::Sender<Command>) -> Self {
        Self { commands }
    }

    /// Sends SIGINT to the running step's process and starts no further step. A second call sends
    /// a second SIGINT. The tree is killed when the grace period after the first ends.
    pub async fn interrupt(&self) {
        self.ask(Command::Interrupt).await;
    }

    /// Kills the tree.
    pub async fn kill(&self) {
        self.ask(Command::Kill).await;
    }

    /// Ends a pause.
    pub async fn proceed(&self) {
        self.ask(Command::Proceed).await;
    }

    async fn ask(&self, command: Command) {
        if self.commands.send(command).await.is_err() {
            tracing::debug!(?command, "the sandbox has already ended");
        }
    }
}

/// What a driver found it can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// Id of the driver.
    pub driver: &'static str,
    /// Version text of the isolating program.
    pub version: String,
    /// Which files the system directories inside come from.
    pub base_profile: &'static str,
    /// `v1`, `v1+v2` or `v2`.
    pub cgroup: &'static str,
    /// Whether Landlock restricts the steps as well.
    pub landlock: bool,
    /// How many sandboxes can run at the same time.
    pub slots: u16,
    /// The checks that passed, in order.
    pub checks: Vec<String>,
}

/// The driver cannot isolate here; nothing may be launched.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("sandbox check `{item}` failed: {detail}")]
pub struct Unavailable {
    /// The first failed item.
    pub item: String,
    /// What was found, and the remedy where one is known.
    pub detail: String,
}

/// A sandbox could not be started; nothing of it is left running.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The spec breaks a rule.
    #[error("the sandbox specification is not valid")]
    Spec(#[from] SpecError),
    /// An input file or directory of the spec cannot be used.
    #[error("input `{name}` cannot be opened")]
    Input {
        /// Name of the input, or path inside of the directory.
        name: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The limits cannot be set up; without limits nothing is launched.
    #[error("cannot set the limits of the sandbox: {detail}")]
    Limits {
        /// Which operation failed and the remedy where one is known.
        detail: String,
    },
    /// The isolating program ended before the supervisor was up.
    #[error("the sandbox did not come up: {detail}")]
    Setup {
        /// What it said, at most 4 KiB.
        detail: String,
    },
    /// A system call on the host failed.
    #[error("{action} failed")]
    Host {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

/// Leftovers of an earlier life could not be removed.
#[derive(Debug, Error)]
#[error("cannot remove what an earlier life left at {path}")]
pub struct SweepError {
    /// The directory that remains.
    pub path: std::path::PathBuf,
    /// Why.
    #[source]
    pub source: std::io::Error,
}
