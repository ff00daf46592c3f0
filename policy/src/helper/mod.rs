//! The limited process: this same binary, started again for one evaluation.
//!
//! It limits itself before it reads a byte, because nothing that comes after can be trusted to. Then
//! it has two pipes and a processor: no file, no socket, no other process, no environment. It ends
//! with 0 and a reply, or in any other way, which is never a pass.

mod confine;
mod engine;
mod filter;
mod member;
mod serve;

use std::process::exit;

pub use confine::{
    ADDRESS_SPACE_BYTES, CPU_SECONDS_MAX, EvaluationThread, NotConfined, confine_process,
    confine_threads,
};

use crate::wire::HELPER_ARGUMENT;

/// The stack of the evaluating thread: recursion that is deep but ends must not overflow it.
pub const STACK_BYTES: usize = 64 * 1024 * 1024;

/// Becomes the limited process when the first argument says so; otherwise returns.
///
/// Call it first in `main`, before any thread is started and any argument is parsed.
pub fn run_helper_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments
        .next()
        .is_none_or(|first| first != HELPER_ARGUMENT)
    {
        return;
    }
    let seconds = arguments
        .next()
        .and_then(|text| text.to_str()?.parse().ok());
    let outcome = seconds.ok_or(NotConfined::Arguments).and_then(run);
    exit(match outcome {
        Ok(()) => 0,
        Err(_) => 1,
    })
}

fn run(cpu_seconds: u64) -> Result<(), NotConfined> {
    confine_process(cpu_seconds)?;
    EvaluationThread::run(|| {
        confine_threads()?;
        serve::serve(&mut std::io::stdin().lock(), &mut std::io::stdout().lock());
        Ok(())
    })
}
