//! The order of things inside, and what the control thread shares with the worker.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::process::{DumpableBehavior, Signal, pidfd_send_signal, set_dumpable_behavior};

use super::{artifacts, confine, inputs, step};
use crate::spec::{EGRESS_ADDRESS, GATEWAY_ADDRESS};
use crate::wire::{
    DoneHow, Incoming, Job, ORDER_MAX, Report, order, read_frame, receive_fds, send_fds,
};

/// Longest order that may follow the job.
const STEERING_MAX: usize = 16;

/// Whether the supervisor goes on after a part of its work. Why it stops was already reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Continue,
    Stop,
}

/// State of the worker that the control thread acts on.
#[derive(Default)]
struct Steering {
    running: Option<OwnedFd>,
    interrupted: bool,
    proceed: bool,
}

/// The way out and the steering, shared by all threads.
pub(super) struct Shared {
    out: Mutex<UnixStream>,
    steering: Mutex<Steering>,
    changed: Condvar,
}

impl Shared {
    pub(super) fn report(&self, report: &Report<'_>) -> io::Result<()> {
        report.write(&mut *lock(&self.out))
    }

    /// Runs `start` unless an interrupt came first, and lets later interrupts reach its process.
    /// Both happen under the lock, so that no interrupt falls between them.
    pub(super) fn start<T>(
        &self,
        start: impl FnOnce() -> io::Result<(T, OwnedFd)>,
    ) -> Option<io::Result<T>> {
        let mut steering = lock(&self.steering);
        if steering.interrupted {
            return None;
        }
        Some(start().map(|(value, process)| {
            steering.running = Some(process);
            value
        }))
    }

    pub(super) fn ended(&self) {
        lock(&self.steering).running = None;
    }

    fn interrupt(&self) {
        let mut steering = lock(&self.steering);
        steering.interrupted = true;
        if let Some(process) = &steering.running
            && let Err(error) = pidfd_send_signal(process, Signal::INT)
        {
            // The process ended by itself; the flag still keeps the next step from starting.
            debug_assert_eq!(error, rustix::io::Errno::SRCH);
        }
        self.changed.notify_all();
    }

    fn proceed(&self) {
        lock(&self.steering).proceed = true;
        self.changed.notify_all();
    }

    fn interrupted(&self) -> bool {
        lock(&self.steering).interrupted
    }

    fn wait_to_proceed(&self) {
        let waiting = |steering: &mut Steering| !steering.interrupted && !steering.proceed;
        let steering = lock(&self.steering);
        let waited = self.changed.wait_while(steering, waiting);
        waited.unwrap_or_else(PoisonError::into_inner).proceed = false;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Supervises from the first byte to the last report.
pub(super) fn run() -> io::Result<()> {
    refuse_outside_a_sandbox()?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut control = hand_out_sockets()?;
    let (job, inputs) = receive_job(&mut control)?;
    let shared = Arc::new(Shared {
        out: Mutex::new(control.try_clone()?),
        steering: Mutex::default(),
        changed: Condvar::new(),
    });
    let worker = {
        let shared = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("worker".to_owned())
            .spawn(move || finish(&work(&shared, &job, inputs)))?
    };
    steer(&shared, control)?;
    // The outside is gone, and PID 1 ends everything when this process ends.
    drop(worker);
    Err(io::Error::new(
        io::ErrorKind::BrokenPipe,
        "the control socket was closed",
    ))
}

fn finish(worked: &io::Result<()>) -> ! {
    if let Err(error) = worked {
        eprintln!("sandbox-init: {error}");
    }
    std::process::exit(i32::from(worked.is_err()))
}

/// Between steps the supervisor kills every process it may signal, so it must be where that is
/// only its own tree.
fn refuse_outside_a_sandbox() -> io::Result<()> {
    let first = std::fs::read_to_string("/proc/1/comm")?;
    let inside = first.trim_end() == "bwrap"
        && rustix::process::getuid().as_raw() == 1000
        && rustix::system::uname().nodename().to_bytes() == b"sandbox";
    if inside {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "this is not the inside of a sandbox",
        ))
    }
}

fn hand_out_sockets() -> io::Result<UnixStream> {
    let bootstrap = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let gateway = TcpListener::bind(GATEWAY_ADDRESS)?;
    let egress = TcpListener::bind(EGRESS_ADDRESS)?;
    let (ours, theirs) = UnixStream::pair()?;
    send_fds(
        &bootstrap,
        &[theirs.as_fd(), gateway.as_fd(), egress.as_fd()],
    )?;
    Ok(ours)
}

fn receive_job(control: &mut UnixStream) -> io::Result<(Job, Vec<OwnedFd>)> {
    let mut payload = Vec::new();
    match read_frame(control, &mut payload, ORDER_MAX)? {
        Incoming::Frame(order::JOB) => {}
        other => return Err(io::Error::other(format!("expected a job, found {other:?}"))),
    }
    let job: Job = serde_json::from_slice(&payload).map_err(io::Error::other)?;
    let inputs = receive_fds(&*control, job.inputs.len())?;
    Ok((job, inputs))
}

fn steer(shared: &Shared, mut control: UnixStream) -> io::Result<()> {
    let mut payload = Vec::new();
    loop {
        match read_frame(&mut control, &mut payload, STEERING_MAX)? {
            Incoming::Frame(order::INTERRUPT) => shared.interrupt(),
            Incoming::Frame(order::PROCEED) => shared.proceed(),
            Incoming::End => return Ok(()),
            other => return Err(io::Error::other(format!("unexpected order {other:?}"))),
        }
    }
}

fn work(shared: &Shared, job: &Job, inputs: Vec<OwnedFd>) -> io::Result<()> {
    // Only this thread and what it starts are confined: the control thread stays outside, so
    // that it may signal the steps. They are confined once more than this thread, and may signal
    // neither of the two.
    let landlock = confine::this_thread();
    shared.report(&Report::Ready { landlock })?;
    if inputs::place_all(shared, job, inputs)? == Next::Continue {
        run_steps(shared, job)?;
    }
    let how = if shared.interrupted() {
        DoneHow::Interrupted
    } else {
        DoneHow::Finished
    };
    shared.report(&Report::Done(how))
}

fn run_steps(shared: &Shared, job: &Job) -> io::Result<()> {
    for (index, step) in (0_u16..).zip(&job.steps) {
        let Some(ended) = step::run(shared, job, index)? else {
            return Ok(());
        };
        let continues = ended.may_continue(step);
        let collected = artifacts::collect(shared, job, index, continues)?;
        shared.report(&Report::StepEnded {
            step: index,
            exit: ended.exit,
        })?;
        if !continues || collected == Next::Stop {
            return Ok(());
        }
        if step.pause_after {
            shared.report(&Report::Paused { step: index })?;
            shared.wait_to_proceed();
        }
    }
    Ok(())
}
