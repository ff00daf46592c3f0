//! The private protocol between the driver, the launch helper and the supervisor inside.
//!
//! Length-framed messages on Unix stream sockets. What goes inside is ours and is JSON; what comes
//! out is written by an attacker and is a closed set of small binary messages with limits.

mod fds;
mod frame;
mod job;
mod report;

pub(crate) use fds::{receive_fds, send_fds};
pub(crate) use frame::{Incoming, read_frame, write_frame};
pub(crate) use job::{
    ArtifactFacts, Job, JobInput, JobNames, JobPlacement, JobStep, LaunchPlan, StepFacts,
};
pub(crate) use report::{BadReport, DoneHow, REPORT_MAX, Report};

/// Largest message towards the inside; it holds at most the spec's texts, escaped as JSON.
pub(crate) const ORDER_MAX: usize = 128 * 1024 * 1024;

/// Kinds of message towards the inside.
pub(crate) mod order {
    /// The launch plan, for the launch helper only.
    pub(crate) const LAUNCH: u8 = 1;
    /// The job, once, first.
    pub(crate) const JOB: u8 = 2;
    /// Interrupt the running step and start no further one.
    pub(crate) const INTERRUPT: u8 = 3;
    /// End a pause.
    pub(crate) const PROCEED: u8 = 4;
}

/// First argument by which the host binary knows that it is the launch helper.
pub(crate) const LAUNCH_ARGUMENT: &str = "sandbox-launch";
/// First argument by which the host binary knows that it is the supervisor inside.
pub(crate) const INIT_ARGUMENT: &str = "sandbox-init";
/// First argument of the process that becomes a step.
pub(crate) const STEP_ARGUMENT: &str = "sandbox-step";
/// First argument by which the host binary knows that it is the self-test inside.
pub(crate) const SELF_TEST_ARGUMENT: &str = "sandbox-self-test";
/// Where the host binary appears inside.
pub(crate) const INIT_PATH: &str = crate::spec::HOST_BINARY;
