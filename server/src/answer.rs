//! What a command answers with, on standard output, and what it remarks beside, on standard error.
//!
//! Every line goes through here: `println!` panics when whoever read is gone, as `head` is after its
//! last line.

use std::fmt::Display;
use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use crate::Failure;

/// What a shell shows for a program that SIGPIPE ended, as it does those that leave the signal alone.
const EXIT_PIPE_CLOSED: u8 = 128 + 13;

/// Nobody reads the answer any more, which is no mistake of anybody's.
#[derive(Debug, thiserror::Error)]
#[error("standard output is closed")]
struct NobodyReads;

/// Prints a line of the answer.
pub fn answer(line: impl Display) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(NobodyReads.into()),
        Err(error) => Err(format!("standard output: {error}").into()),
    }
}

/// Prints a remark. Where it cannot be read, the exit code is left to tell.
pub fn remark(line: impl Display) {
    drop(writeln!(std::io::stderr().lock(), "{line}"));
}

/// Says why a command failed, and with what it ends.
pub fn failed(failure: &Failure) -> ExitCode {
    if failure.is::<NobodyReads>() {
        return ExitCode::from(EXIT_PIPE_CLOSED);
    }
    let mut said = failure.to_string();
    remark(format_args!("stackship: {said}"));
    let mut cause = failure.source();
    while let Some(inner) = cause {
        let text = inner.to_string();
        // Some errors have their cause's words in their own.
        if !said.ends_with(&text) {
            remark(format_args!("  because: {text}"));
        }
        said = text;
        cause = inner.source();
    }
    ExitCode::FAILURE
}
