//! A program that is started, does one thing and ends: how long it took, and how much it held.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::memory::Watch;
use crate::Failure;

/// What one program took.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    /// From its start to its end.
    pub time: Duration,
    /// The most bytes that were resident at once.
    pub peak: u64,
}

/// Starts it and waits; says what it took and what it printed.
pub fn run(command: &mut Command) -> Result<(Taken, Vec<u8>), Failure> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let watch = Watch::next_child();
    let began = Instant::now();
    let output = command.spawn()?.wait_with_output();
    let time = began.elapsed();
    let peak = watch.peak();
    let output = output?;
    if !output.status.success() {
        return Err(format!("the measured program: {}", output.status).into());
    }
    Ok((Taken { time, peak: peak? }, output.stdout))
}
