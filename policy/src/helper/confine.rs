//! What the limited process takes from itself.

use std::io;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};

use super::{STACK_BYTES, filter};

/// All memory that may be mapped, stacks and program included.
pub const ADDRESS_SPACE_BYTES: u64 = 1024 * 1024 * 1024;
/// The most processor time that may be asked for, in seconds.
pub const CPU_SECONDS_MAX: u64 = 10;
/// Between the signal that ends the process and the one that nothing can stop, in seconds.
const CPU_SECONDS_GRACE: u64 = 1;
/// The most open files; it opens none.
const OPEN_FILES: u64 = 16;

/// Why the process could not limit itself. It then does nothing at all.
#[derive(Debug, thiserror::Error)]
pub enum NotConfined {
    /// It was started in another way than [`Evaluator`](crate::Evaluator) does.
    #[error("the arguments are not those of the limited process")]
    Arguments,
    /// There is something in the environment, so there might be a secret in it.
    #[error("the environment is not empty")]
    Environment,
    /// The kernel refused.
    #[error("the kernel refused a limit")]
    Kernel(#[from] io::Error),
    /// The system call filter could not be made or loaded.
    #[error("the system call filter was not loaded")]
    Filter(#[from] seccompiler::Error),
    /// The evaluation ended in a panic.
    #[error("the evaluation panicked")]
    Panicked,
}

/// Limits the process. Call it before anything else, with one thread.
pub fn confine_process(cpu_seconds: u64) -> Result<(), NotConfined> {
    if std::env::vars_os().next().is_some() {
        return Err(NotConfined::Environment);
    }
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(io::Error::from)?;
    let seconds = cpu_seconds.min(CPU_SECONDS_MAX);
    limit(Resource::Cpu, seconds, seconds + CPU_SECONDS_GRACE)?;
    limit(Resource::As, ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES)?;
    limit(Resource::Core, 0, 0)?;
    limit(Resource::Fsize, 0, 0)?;
    limit(Resource::Nofile, OPEN_FILES, OPEN_FILES)?;
    Ok(())
}

/// Takes from every thread what no evaluation needs: new processes and threads, files, sockets,
/// executable memory. Nothing can be started after it, so it comes when all threads are there.
pub fn confine_threads() -> Result<(), NotConfined> {
    // Root is not bound by this one; the filter binds root too.
    limit(Resource::Nproc, 0, 0)?;
    seccompiler::apply_filter_all_threads(&filter::program()?)?;
    Ok(())
}

fn limit(resource: Resource, current: u64, maximum: u64) -> io::Result<()> {
    let limit = Rlimit {
        current: Some(current),
        maximum: Some(maximum),
    };
    Ok(setrlimit(resource, limit)?)
}

/// The thread that evaluates. The main thread's stack is what the system gives, this one's is ours.
#[derive(Debug)]
pub struct EvaluationThread;

impl EvaluationThread {
    /// Runs `work` on a stack of [`STACK_BYTES`].
    pub fn run<T: Send>(
        work: impl FnOnce() -> Result<T, NotConfined> + Send,
    ) -> Result<T, NotConfined> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            let handle = thread.spawn_scoped(scope, work)?;
            handle.join().map_err(|_| NotConfined::Panicked)?
        })
    }
}
