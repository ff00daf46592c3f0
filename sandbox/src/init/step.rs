//! One step: its process, its two output streams, and nothing of it left behind.

use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open};

use super::start;
use super::supervisor::Shared;
use crate::StepExit;
use crate::outcome::LOG_CHUNK_MAX;
use crate::wire::{Job, JobStep, Report};

/// How long to wait between looks at processes that were killed but are not gone.
const REAP_PAUSE: Duration = Duration::from_millis(1);
/// How many looks; the limits outside end a sandbox in which a process cannot die.
const REAP_LOOKS_MAX: u32 = 5_000;

/// A step's process and its left-over children are gone and its output was reported.
pub(super) struct Ended {
    pub(super) exit: StepExit,
    output_too_large: bool,
}

impl Ended {
    pub(super) fn may_continue(&self, step: &JobStep) -> bool {
        let known = matches!(self.exit, StepExit::Code(code) if step.continue_on.contains(&code));
        known && !self.output_too_large
    }
}

/// Runs the step; `None` when an interrupt came before it started.
pub(super) fn run(shared: &Shared, job: &Job, index: u16) -> io::Result<Option<Ended>> {
    let step = &job.steps[usize::from(index)];
    let mut child = match shared.start(|| spawn(step)) {
        None => return Ok(None),
        Some(Ok(child)) => child,
        Some(Err(error)) => return not_started(shared, index, step, &error).map(Some),
    };
    shared.report(&Report::StepStarted { step: index })?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
        return Err(io::Error::other("a step without pipes"));
    };
    std::thread::scope(|scope| {
        let errors = scope.spawn(move || pump_log(shared, index, true, stderr));
        let output = scope.spawn(move || match step.stdout_artifact {
            None => pump_log(shared, index, false, stdout).map(|()| false),
            Some(artifact) => {
                let bytes_max = job.artifacts[usize::from(artifact)].bytes_max;
                pump_artifact(shared, artifact, bytes_max, stdout)
            }
        });
        let status = child.wait();
        shared.ended();
        // What the step left running holds the pipes open and could disturb the next step.
        kill_left_overs();
        let output_too_large = joined(output.join())?;
        joined(errors.join())?;
        Ok(Some(Ended {
            exit: exit_of(status?),
            output_too_large,
        }))
    })
}

fn spawn(step: &JobStep) -> io::Result<(Child, std::os::fd::OwnedFd)> {
    let child = start::start(step)?;
    let pid = rustix::process::Pid::from_child(&child);
    // The child is not reaped yet, so the number is still its own.
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    Ok((child, process))
}

fn not_started(
    shared: &Shared,
    index: u16,
    step: &JobStep,
    error: &io::Error,
) -> io::Result<Ended> {
    let program = step.argv.first().map(String::as_str).unwrap_or_default();
    let text = format!("cannot start {program} in {}: {error}\n", step.directory);
    let bytes = &text.as_bytes()[..text.len().min(LOG_CHUNK_MAX)];
    shared.report(&Report::StepStarted { step: index })?;
    shared.report(&Report::Log {
        step: index,
        stderr: true,
        bytes,
    })?;
    Ok(Ended {
        exit: StepExit::NotStarted,
        output_too_large: false,
    })
}

fn pump_log(shared: &Shared, step: u16, stderr: bool, mut from: impl Read) -> io::Result<()> {
    let mut buffer = vec![0; LOG_CHUNK_MAX];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            read => shared.report(&Report::Log {
                step,
                stderr,
                bytes: &buffer[..read],
            })?,
        }
    }
}

/// Sends what can be read as an artifact; true when it is too large. Either way it reads to the
/// end, so that the step never waits for its output to be taken.
pub(super) fn pump_artifact(
    shared: &Shared,
    artifact: u16,
    bytes_max: u64,
    mut from: impl Read,
) -> io::Result<bool> {
    let mut buffer = vec![0; LOG_CHUNK_MAX];
    let mut left = bytes_max;
    let mut too_large = false;
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        match left.checked_sub(read as u64) {
            Some(rest) if !too_large => {
                left = rest;
                shared.report(&Report::ArtifactChunk {
                    artifact,
                    bytes: &buffer[..read],
                })?;
            }
            _ if !too_large => {
                too_large = true;
                shared.report(&Report::ArtifactTooLarge { artifact })?;
            }
            _ => {}
        }
    }
    if !too_large {
        shared.report(&Report::ArtifactEnd { artifact })?;
    }
    Ok(too_large)
}

/// Kills every other process inside except PID 1, and waits until PID 1 has reaped them.
fn kill_left_overs() {
    for _ in 0..REAP_LOOKS_MAX {
        match kill(Pid::from_raw(-1), Signal::SIGKILL) {
            Ok(()) => std::thread::sleep(REAP_PAUSE),
            // Nobody is left, or nobody who may be signaled.
            Err(Errno::ESRCH | Errno::EPERM) => return,
            Err(error) => {
                eprintln!("sandbox-init: cannot end left-over processes: {error}");
                return;
            }
        }
    }
}

fn exit_of(status: ExitStatus) -> StepExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => StepExit::Code(code),
        (None, Some(signal)) => StepExit::Signal(signal),
        (None, None) => StepExit::NotStarted,
    }
}

fn joined<T>(result: std::thread::Result<io::Result<T>>) -> io::Result<T> {
    result.unwrap_or_else(|_| Err(io::Error::other("a thread of the supervisor panicked")))
}
