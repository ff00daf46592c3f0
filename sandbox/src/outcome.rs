//! What a sandbox reports while it lives and when it ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;

use crate::Digest;

/// Something that happened in a sandbox, in order.
#[derive(Debug, Clone)]
pub enum Event {
    /// A step's process was started.
    StepStarted {
        /// Name of the step.
        step: Arc<str>,
    },
    /// Raw bytes a step wrote. They may end in the middle of a line or of a character.
    Log {
        /// Name of the step.
        step: Arc<str>,
        /// Which of its streams.
        stream: LogStream,
        /// At most [`LOG_CHUNK_MAX`].
        bytes: Bytes,
    },
    /// The log limit was reached; later log bytes are dropped. Reported once.
    LogTruncated,
    /// A file came out. It is reported before the [`Event::StepEnded`] of its step.
    Artifact(ReceivedArtifact),
    /// A step's process ended and all its output was reported.
    StepEnded(StepReport),
    /// The step asked for a pause; the next one waits for [`Control::proceed`](crate::Control::proceed).
    Paused {
        /// Name of the step that ended.
        step: Arc<str>,
    },
}

/// Most bytes of one [`Event::Log`].
pub const LOG_CHUNK_MAX: usize = 64 * 1024;

/// One of a step's output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a step's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepExit {
    /// It exited with this code.
    Code(i32),
    /// A signal of this number ended it.
    Signal(i32),
    /// It could not be started, for example because the program is absent.
    NotStarted,
}

/// One step that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReport {
    /// Name of the step.
    pub step: Arc<str>,
    /// How it ended.
    pub exit: StepExit,
    /// From start to end, measured outside.
    pub duration: Duration,
}

/// A file that came out of a sandbox. Size and digest were computed outside, on receipt.
///
/// The file is private to the runner and is deleted with the last clone of its handle and the
/// sandbox.
#[derive(Debug, Clone)]
pub struct ReceivedArtifact {
    pub(crate) name: Arc<str>,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) digest: Digest,
    pub(crate) directory: Arc<TempDir>,
}

impl ReceivedArtifact {
    /// Name given in the spec.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file on the host.
    pub fn path(&self) -> &Path {
        debug_assert!(self.path.starts_with(self.directory.path()));
        &self.path
    }

    /// Its size.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its SHA-256.
    pub const fn digest(&self) -> Digest {
        self.digest
    }
}

/// Why a sandbox ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndReason {
    /// All steps ran and each exit code was one to continue on.
    Exited,
    /// A step ended with an exit that is not one to continue on.
    StepFailed {
        /// Name of the step.
        step: Arc<str>,
        /// How it ended.
        exit: StepExit,
    },
    /// A step's time limit or the total was reached; no step for the total while paused.
    Timeout {
        /// Name of the running step.
        step: Option<Arc<str>>,
    },
    /// A process was killed because the memory limit was reached, and the steps did not complete.
    Oom,
    /// A process could not be made because of the limit on processes, and a step failed.
    Pids,
    /// Far more log was written than the limit.
    LogFlood,
    /// Ended after an interrupt.
    Canceled {
        /// The grace period ran out and the tree was killed.
        forced: bool,
    },
    /// Killed on request, or because the handle was dropped.
    Killed,
    /// The supervisor inside vanished without a report.
    Lost {
        /// What the launcher said last; untrusted text of at most 4 KiB.
        detail: String,
    },
    /// An input's bytes are not those of its expected digest.
    InputMismatch {
        /// Name of the input.
        name: Arc<str>,
        /// What the bytes inside hash to.
        found: Digest,
    },
    /// An input could not be placed, or its archive was refused.
    InputRefused {
        /// Name of the input.
        name: Arc<str>,
        /// Entry and rule; contains names chosen by the archive's author.
        reason: String,
    },
    /// A required artifact is not there, or is not a regular file.
    ArtifactMissing {
        /// Name of the artifact.
        name: Arc<str>,
    },
    /// An artifact is larger than its limit.
    ArtifactTooLarge {
        /// Name of the artifact.
        name: Arc<str>,
    },
    /// What came over the control socket breaks the protocol.
    Protocol {
        /// Which rule.
        detail: &'static str,
    },
    /// The host could not keep what came out.
    HostFailure {
        /// The failing operation.
        detail: String,
    },
}

/// How a sandbox ended and what it used.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The id of the sandbox that ended.
    pub id: String,
    /// Why it ended.
    pub reason: EndReason,
    /// The steps that ended, in order.
    pub steps: Vec<StepReport>,
    /// The files that came out completely, in order.
    pub artifacts: Vec<ReceivedArtifact>,
    /// Most memory in use at one time, where the kernel tells.
    pub peak_memory_bytes: Option<u64>,
    /// Processor time of the whole tree, where the kernel tells.
    pub cpu_time: Option<Duration>,
    /// Processes killed for memory.
    pub oom_kills: u64,
    /// Refused attempts to make a process.
    pub pids_refusals: u64,
    /// Log bytes written, including dropped ones.
    pub log_bytes: u64,
    /// How it was isolated.
    pub isolation: Isolation,
}

impl Outcome {
    /// The artifact of this name, if it came out.
    pub fn artifact(&self, name: &str) -> Option<&ReceivedArtifact> {
        self.artifacts
            .iter()
            .find(|artifact| artifact.name() == name)
    }

    /// The report of the step of this name, if it ended.
    pub fn step(&self, name: &str) -> Option<&StepReport> {
        self.steps.iter().find(|report| &*report.step == name)
    }
}

/// Recorded evidence of how a sandbox was isolated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// Id of the driver.
    pub driver: &'static str,
    /// Which files the system directories inside came from.
    pub base_profile: &'static str,
    /// `v1`, `v1+v2` or `v2`.
    pub cgroup: &'static str,
    /// Whether the supervisor reported Landlock as enforced on the steps.
    pub landlock: bool,
    /// Host user the tree ran as.
    pub host_uid: u32,
}
