//! The supervisor inside a sandbox, from the host's own binary re-executed.
//!
//! It hands the two listeners out, receives the job, verifies and places the inputs, runs the
//! steps in order and sends logs and artifacts out as small messages. It is plain threads, so that
//! it starts fast. Three things keep the steps away from it: it is not dumpable, its sockets are
//! close-on-exec, and where the kernel has Landlock scopes the steps cannot signal it.
//!
//! Its socket to the outside is a fresh pair made inside, because `bwrap`'s own processes keep the
//! one they were started with; the outside shuts that one down once the new one has arrived.

mod artifacts;
mod confine;
mod inputs;
pub(crate) mod self_test;
mod start;
mod step;
mod supervisor;

use std::ffi::OsStr;

use crate::bubblewrap::launch_main;
use crate::wire::{INIT_ARGUMENT, LAUNCH_ARGUMENT, SELF_TEST_ARGUMENT, STEP_ARGUMENT};

/// Becomes one of the room's helpers when the first argument says so; otherwise returns.
///
/// Call it first in `main`, before any thread is started and any argument is parsed.
pub fn run_helper_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    match first.as_deref().and_then(OsStr::to_str) {
        Some(LAUNCH_ARGUMENT) => launch_main(),
        Some(INIT_ARGUMENT) => init_main(),
        Some(STEP_ARGUMENT) => start::main(arguments),
        Some(SELF_TEST_ARGUMENT) => self_test::main(arguments.next()),
        Some(_) | None => {}
    }
}

/// Supervises one sandbox from inside, then ends the process.
///
/// Refuses to work outside a sandbox, because it kills every process it can signal between steps.
pub fn init_main() -> ! {
    let code = match supervisor::run() {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("sandbox-init: {error}");
            1
        }
    };
    std::process::exit(code)
}
