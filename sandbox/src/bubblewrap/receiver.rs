//! The thread that receives what comes out of one sandbox.
//!
//! Everything here is written by an attacker: each message is parsed with limits and each index is
//! looked up; files are hashed while they are written. The thread may wait for a slow caller; the
//! [`conductor`](super::conductor), which decides about time, never does.

mod files;

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use rustix::net::{Shutdown, shutdown};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};

use self::files::Files;
use crate::outcome::{EndReason, Event, LogStream, ReceivedArtifact, StepExit, StepReport};
use crate::spec::Limits;
use crate::wire::{
    BadReport, DoneHow, Incoming, Job, JobNames, ORDER_MAX, REPORT_MAX, Report, order, read_frame,
    receive_fds, send_fds, write_frame,
};

/// What the supervisor handed out first.
pub(super) struct Hello {
    pub(super) control: UnixStream,
    pub(super) listeners: Listeners,
}

/// The two listeners of a sandbox, made inside.
pub(super) struct Listeners {
    pub(super) gateway: TcpListener,
    pub(super) egress: TcpListener,
}

/// What the conductor must know at once.
#[derive(Debug)]
pub(super) enum Note {
    StepStarted(u16),
    StepEnded,
    /// The tree must be killed for this reason.
    Fatal(EndReason),
}

/// Everything that came out, when nothing more will.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) landlock: bool,
    pub(super) steps: Vec<StepReport>,
    pub(super) artifacts: Vec<ReceivedArtifact>,
    pub(super) log_bytes: u64,
    /// Why the supervisor stopped early, by its own report.
    pub(super) verdict: Option<EndReason>,
    pub(super) done: Option<DoneHow>,
    /// Why the tree had to be killed because of what came out.
    pub(super) fatal: Option<EndReason>,
}

/// What the thread needs.
pub(super) struct Receiver {
    pub(super) bootstrap: UnixStream,
    pub(super) job: Job,
    pub(super) inputs: Vec<OwnedFd>,
    pub(super) names: Arc<JobNames>,
    pub(super) limits: Limits,
    pub(super) directory: Arc<TempDir>,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) notes: mpsc::Sender<Note>,
}

/// State while messages arrive.
struct Receiving {
    names: Arc<JobNames>,
    limits: Limits,
    files: Files,
    events: mpsc::Sender<Event>,
    notes: mpsc::Sender<Note>,
    running: Option<(u16, Instant)>,
    next_step: u16,
    truncated: bool,
    received: Received,
}

impl Receiver {
    /// Runs until the supervisor's socket closes, which it does when the tree is gone.
    pub(super) fn run(self, hello: oneshot::Sender<Hello>) -> Received {
        let Some(mut control) = greet(&self.bootstrap, &self.job, &self.inputs, hello) else {
            return Received::default();
        };
        drop((self.bootstrap, self.job, self.inputs));
        let mut receiving = Receiving {
            files: Files::new(self.directory, &self.names.artifacts),
            names: self.names,
            limits: self.limits,
            events: self.events,
            notes: self.notes,
            running: None,
            next_step: 0,
            truncated: false,
            received: Received::default(),
        };
        receiving.receive_all(&mut control);
        receiving.received
    }
}

/// Swaps the socket the tree was started with for one that only the supervisor holds.
fn greet(
    bootstrap: &UnixStream,
    job: &Job,
    inputs: &[OwnedFd],
    hello: oneshot::Sender<Hello>,
) -> Option<UnixStream> {
    use std::os::fd::AsFd;
    let fds = receive_fds(bootstrap, 3).ok()?;
    let [control, gateway, egress] = <[OwnedFd; 3]>::try_from(fds).ok()?;
    // The other end stays open in the processes of `bwrap`; make it useless.
    shutdown(bootstrap, Shutdown::Both).ok()?;
    let mut control = UnixStream::from(control);
    let text = serde_json::to_vec(job)
        .ok()
        .filter(|text| text.len() <= ORDER_MAX)?;
    write_frame(&mut control, order::JOB, &[], &text).ok()?;
    let inputs: Vec<_> = inputs.iter().map(AsFd::as_fd).collect();
    send_fds(&control, &inputs).ok()?;
    let ours = control.try_clone().ok()?;
    let listeners = Listeners {
        gateway: gateway.into(),
        egress: egress.into(),
    };
    hello.send(Hello { control, listeners }).ok()?;
    Some(ours)
}

impl Receiving {
    fn receive_all(&mut self, control: &mut UnixStream) {
        let mut payload = Vec::with_capacity(REPORT_MAX);
        loop {
            let parsed = match read_frame(control, &mut payload, REPORT_MAX) {
                Ok(Incoming::Frame(kind)) => Report::parse(kind, &payload),
                Ok(Incoming::End) | Err(_) => return,
                // A tree that is killed can be cut off in the middle of a message.
                Ok(Incoming::Broken(_)) if self.received.fatal.is_some() => return,
                Ok(Incoming::Broken(rule)) => Err(BadReport(rule)),
            };
            match parsed.and_then(|report| self.take(&report)) {
                Ok(()) => {}
                Err(BadReport(detail)) => {
                    self.fatal(EndReason::Protocol { detail });
                    return;
                }
            }
        }
    }

    fn take(&mut self, report: &Report<'_>) -> Result<(), BadReport> {
        if self.received.fatal.is_some() {
            // Killed already; only drain, so that nobody inside waits for us.
            return Ok(());
        }
        if self.received.done.is_some() {
            return Err(BadReport("a message after the last"));
        }
        match *report {
            Report::Ready { landlock } => self.received.landlock = landlock,
            Report::StepStarted { step } => self.step_started(step)?,
            Report::Log {
                step,
                stderr,
                bytes,
            } => self.log(step, stderr, bytes)?,
            Report::StepEnded { step, exit } => self.step_ended(step, exit)?,
            Report::Paused { step } => {
                let step = Arc::clone(&self.step(step)?.name);
                self.tell(Event::Paused { step });
            }
            Report::ArtifactChunk { artifact, bytes } => self.chunk(artifact, bytes)?,
            Report::ArtifactEnd { artifact } => self.artifact_ended(artifact)?,
            Report::ArtifactMissing { artifact } => {
                let name = self.artifact_name(artifact)?;
                self.received.verdict = Some(EndReason::ArtifactMissing { name });
            }
            Report::ArtifactTooLarge { artifact } => {
                let name = self.artifact_name(artifact)?;
                self.fatal(EndReason::ArtifactTooLarge { name });
            }
            Report::InputMismatch { input, found } => {
                let name = self.input_name(input)?;
                self.received.verdict = Some(EndReason::InputMismatch { name, found });
            }
            Report::InputRefused { input, reason } => {
                let (name, reason) = (self.input_name(input)?, reason.to_owned());
                self.received.verdict = Some(EndReason::InputRefused { name, reason });
            }
            Report::Done(how) => self.received.done = Some(how),
        }
        Ok(())
    }

    fn step_started(&mut self, step: u16) -> Result<(), BadReport> {
        if self.running.is_some() || step != self.next_step {
            return Err(BadReport("a step out of order"));
        }
        let name = Arc::clone(&self.step(step)?.name);
        self.running = Some((step, Instant::now()));
        self.next_step += 1;
        self.note(Note::StepStarted(step));
        self.tell(Event::StepStarted { step: name });
        Ok(())
    }

    fn step_ended(&mut self, step: u16, exit: StepExit) -> Result<(), BadReport> {
        let started = match self.running.take() {
            Some((running, started)) if running == step => started,
            _ => return Err(BadReport("the end of a step that does not run")),
        };
        let name = Arc::clone(&self.step(step)?.name);
        let report = StepReport {
            step: name,
            exit,
            duration: started.elapsed(),
        };
        self.received.steps.push(report.clone());
        self.note(Note::StepEnded);
        self.tell(Event::StepEnded(report));
        Ok(())
    }

    fn log(&mut self, step: u16, stderr: bool, bytes: &[u8]) -> Result<(), BadReport> {
        self.check_running(step)?;
        let name = Arc::clone(&self.step(step)?.name);
        let before = self.received.log_bytes;
        self.received.log_bytes += bytes.len() as u64;
        let flood = self
            .limits
            .log_bytes
            .saturating_mul(Limits::LOG_FLOOD_FACTOR);
        if self.received.log_bytes > flood {
            self.fatal(EndReason::LogFlood);
            return Ok(());
        }
        let left = self.limits.log_bytes.saturating_sub(before);
        let keep = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if keep > 0 {
            let stream = if stderr {
                LogStream::Stderr
            } else {
                LogStream::Stdout
            };
            let bytes = Bytes::copy_from_slice(&bytes[..keep]);
            self.tell(Event::Log {
                step: name,
                stream,
                bytes,
            });
        }
        if keep < bytes.len() && !self.truncated {
            self.truncated = true;
            self.tell(Event::LogTruncated);
        }
        Ok(())
    }

    fn chunk(&mut self, artifact: u16, bytes: &[u8]) -> Result<(), BadReport> {
        let facts = self.names.artifacts.get(usize::from(artifact));
        let facts = facts.ok_or(BadReport("an artifact that does not exist"))?;
        self.check_running(facts.after)?;
        match self.files.append(artifact, bytes) {
            Ok(()) => Ok(()),
            Err(files::Refused::TooLarge) => {
                let name = Arc::clone(&facts.name);
                self.fatal(EndReason::ArtifactTooLarge { name });
                Ok(())
            }
            Err(files::Refused::Twice) => Err(BadReport("an artifact that already came out")),
            Err(files::Refused::Host(error)) => {
                self.host_failed(&error);
                Ok(())
            }
        }
    }

    fn artifact_ended(&mut self, artifact: u16) -> Result<(), BadReport> {
        // An empty file has no chunk; the empty one makes its file.
        self.chunk(artifact, &[])?;
        if self.received.fatal.is_some() {
            return Ok(());
        }
        match self.files.finish(artifact) {
            Ok(received) => {
                self.received.artifacts.push(received.clone());
                self.tell(Event::Artifact(received));
            }
            Err(error) => self.host_failed(&error),
        }
        Ok(())
    }

    fn host_failed(&mut self, error: &std::io::Error) {
        let detail = format!("writing an artifact: {error}");
        self.fatal(EndReason::HostFailure { detail });
    }

    fn check_running(&self, step: u16) -> Result<(), BadReport> {
        match self.running {
            Some((running, _)) if running == step => Ok(()),
            _ => Err(BadReport("output of a step that does not run")),
        }
    }

    fn step(&self, step: u16) -> Result<&crate::wire::StepFacts, BadReport> {
        self.names
            .steps
            .get(usize::from(step))
            .ok_or(BadReport("a step that does not exist"))
    }

    fn artifact_name(&self, artifact: u16) -> Result<Arc<str>, BadReport> {
        let facts = self.names.artifacts.get(usize::from(artifact));
        facts
            .map(|facts| Arc::clone(&facts.name))
            .ok_or(BadReport("an artifact that does not exist"))
    }

    fn input_name(&self, input: u16) -> Result<Arc<str>, BadReport> {
        let name = self.names.inputs.get(usize::from(input));
        name.map(Arc::clone)
            .ok_or(BadReport("an input that does not exist"))
    }

    fn fatal(&mut self, reason: EndReason) {
        self.received.fatal = Some(reason.clone());
        self.note(Note::Fatal(reason));
    }

    /// Waits for the caller to read. A caller that waits for the end only has closed the channel.
    fn tell(&self, event: Event) {
        drop(self.events.blocking_send(event));
    }

    /// The conductor always reads; it is gone only when nobody needs notes any more.
    fn note(&self, note: Note) {
        drop(self.notes.blocking_send(note));
    }
}
