//! The start of a step: a process of its own that confines itself once more and becomes the step.
//!
//! A signal to any thread reaches its whole process, and Landlock asks only for that thread's domain. Were
//! one of the supervisor's threads in the domain of a step, and be it for the moment in which it starts
//! the step, the step could end or stop its supervisor.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use super::confine;
use crate::wire::{INIT_PATH, JobStep, STEP_ARGUMENT};

/// The longest reason why a step could not be started.
const REASON_BYTES_MAX: u64 = 1024;

/// Starts the step; returns once its own program runs.
pub(super) fn start(step: &JobStep) -> io::Result<Child> {
    let (reason, channel) = io::pipe()?;
    let mut command = Command::new(INIT_PATH);
    command
        .arg(STEP_ARGUMENT)
        .args(&step.argv)
        .env_clear()
        .envs(step.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&step.directory)
        .stdin(Stdio::from(channel))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn()?;
    // It has a copy of the channel, which would never end.
    drop(command);
    let mut said = String::new();
    let read = reason.take(REASON_BYTES_MAX).read_to_string(&mut said);
    if read.is_ok() && said.is_empty() {
        return Ok(child);
    }
    child.wait()?;
    read?;
    Err(io::Error::other(said))
}

/// Becomes the step whose program and arguments these are, or tells over its standard input why not and
/// ends. The channel closes by itself when the program takes over.
pub(super) fn main(argv: impl Iterator<Item = OsString>) -> ! {
    let told = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let error = match told.as_ref().map(|_| become_step(argv)) {
        Ok(Ok(never)) => match never {},
        Ok(Err(error)) => error,
        Err(_) => std::process::exit(1),
    };
    if let Ok(mut channel) = told {
        // Nobody listens only when the supervisor is gone, and everything ends with it.
        drop(write!(channel, "{error}"));
    }
    std::process::exit(1)
}

fn become_step(mut argv: impl Iterator<Item = OsString>) -> io::Result<Infallible> {
    let program = argv.next().ok_or(io::ErrorKind::InvalidInput)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    confine::once_more()?;
    Err(Command::new(program).args(argv).exec())
}
