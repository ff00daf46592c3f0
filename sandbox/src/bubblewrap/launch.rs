//! From a spec to a running sandbox.

use std::io;
use std::net::TcpListener as StdListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use super::cgroup::Group;
use super::conductor::{Conductor, Finish};
use super::inputs::{in_memory, open_all};
use super::receiver::{Note, Receiver};
use super::slots::Slot;
use super::{BASE_PROFILE, DRIVER, Inner};
use crate::driver::{COMMANDS_QUEUED_MAX, Control, EVENTS_QUEUED_MAX, LaunchError, Sandbox};
use crate::outcome::{EndReason, Event, Isolation, Outcome};
use crate::spec::SandboxSpec;
use crate::wire::{Job, LAUNCH_ARGUMENT, LaunchPlan, order, send_fds, write_frame};

/// Most notes between the receiver and the conductor.
const NOTES_QUEUED_MAX: usize = 16;

/// A running sandbox of this driver.
#[derive(Debug)]
pub(super) struct BubblewrapSandbox {
    id: String,
    gateway: Option<TcpListener>,
    egress: Option<TcpListener>,
    control: Control,
    events: mpsc::Receiver<Event>,
    finish: Finish,
    processes: PathBuf,
    /// Closing it tells the conductor that nobody wants the sandbox any more.
    _wanted: oneshot::Sender<()>,
}

#[async_trait::async_trait]
impl Sandbox for BubblewrapSandbox {
    fn id(&self) -> &str {
        &self.id
    }

    fn take_gateway(&mut self) -> Option<TcpListener> {
        self.gateway.take()
    }

    fn take_egress(&mut self) -> Option<TcpListener> {
        self.egress.take()
    }

    fn control(&self) -> Control {
        self.control.clone()
    }

    async fn next_event(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    async fn wait(&mut self) -> Outcome {
        self.events.close();
        self.finish.wait().await
    }
}

impl BubblewrapSandbox {
    /// The processes that run now, as the host sees them.
    pub(super) fn host_processes(&self) -> Vec<HostProcess> {
        let list = std::fs::read_to_string(&self.processes).unwrap_or_default();
        list.lines().filter_map(HostProcess::look).collect()
    }
}

/// One process, held so that no later one with its number can be taken for it.
#[derive(Debug)]
pub(super) struct HostProcess {
    pub(super) number: i32,
    pub(super) uid: u32,
    handle: OwnedFd,
}

impl HostProcess {
    fn look(number: &str) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let number: i32 = number.parse().ok()?;
        let handle = pidfd_open(Pid::from_raw(number)?, PidfdFlags::empty()).ok()?;
        let uid = std::fs::metadata(format!("/proc/{number}")).ok()?.uid();
        Some(Self {
            number,
            uid,
            handle,
        })
    }

    /// Blocks until it has ended, or until the time is over and it has not.
    pub(super) fn ends_within(&self, time: Duration) -> bool {
        let Ok(time) = Timespec::try_from(time) else {
            return false;
        };
        // Nothing interrupts the thread; an error is as good as a survivor.
        poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&time)) == Ok(1)
    }
}

/// Everything made on the host before a process exists.
struct Prepared {
    slot: Slot,
    group: Group,
    inputs: Vec<OwnedFd>,
    directory: TempDir,
    bootstrap: UnixStream,
    command: Command,
    isolation: Isolation,
}

pub(super) async fn launch(
    inner: Arc<Inner>,
    spec: SandboxSpec,
) -> Result<BubblewrapSandbox, LaunchError> {
    spec.check()?;
    let slot = inner.slots.take().await;
    let number = inner.launched.fetch_add(1, Ordering::Relaxed);
    let id = format!("{}-{}-{number}", spec.name, slot.number());
    let preparing = Arc::clone(&inner);
    let prepared = tokio::task::spawn_blocking(move || {
        let prepared = prepare(&preparing, &spec, slot)?;
        Ok::<_, LaunchError>((prepared, spec))
    });
    let (prepared, spec) = prepared
        .await
        .map_err(|error| host("preparing", io::Error::other(error)))??;
    start(inner, id, prepared, spec).await
}

async fn start(
    inner: Arc<Inner>,
    id: String,
    prepared: Prepared,
    spec: SandboxSpec,
) -> Result<BubblewrapSandbox, LaunchError> {
    let (job, names) = Job::of(&spec);
    let names = Arc::new(names);
    let Prepared {
        slot,
        group,
        inputs,
        directory,
        bootstrap,
        command,
        isolation,
    } = prepared;
    let child = match inner.spawner.spawn(command).await {
        Ok(child) => child,
        Err(source) => {
            remove_unused(&group);
            return Err(host("starting the launch helper", source));
        }
    };
    let processes = group.process_list();
    let (events_in, events) = mpsc::channel(EVENTS_QUEUED_MAX);
    let (notes_in, notes) = mpsc::channel::<Note>(NOTES_QUEUED_MAX);
    let (commands_in, commands) = mpsc::channel(COMMANDS_QUEUED_MAX);
    let (wanted, unwanted) = oneshot::channel();
    let (hello_in, hello) = oneshot::channel();
    let (ready_in, ready) = oneshot::channel();
    let receiver = Receiver {
        bootstrap,
        job,
        inputs,
        names: Arc::clone(&names),
        limits: spec.limits,
        directory: Arc::new(directory),
        events: events_in,
        notes: notes_in,
    };
    let conductor = Conductor {
        id: id.clone(),
        child,
        group,
        slot,
        names,
        limits: spec.limits,
        isolation,
        commands,
        notes,
        unwanted,
        hello,
        inner,
    };
    let mut finish = conductor.start(receiver, hello_in, ready_in)?;
    let Ok(listeners) = ready.await else {
        return Err(not_ready(finish.wait().await));
    };
    let network = spec.network;
    let listener =
        |wanted: bool, listener: StdListener| wanted.then(|| adopt(listener)).transpose();
    Ok(BubblewrapSandbox {
        id,
        gateway: listener(network.gateway, listeners.gateway)?,
        egress: listener(network.egress, listeners.egress)?,
        control: Control::new(commands_in),
        events,
        finish,
        processes,
        _wanted: wanted,
    })
}

fn prepare(inner: &Inner, spec: &SandboxSpec, slot: Slot) -> Result<Prepared, LaunchError> {
    let inputs = open_all(spec)?;
    let directory = inner.settings.work_directory();
    let directory = directory.map_err(|source| host("making a working directory", source))?;
    let group = inner.hierarchy.create(slot.number(), &spec.limits)?;
    let uid = inner.settings.base_uid + u32::from(slot.number());
    let mut plan = LaunchPlan {
        bwrap: inner.bwrap.clone(),
        parent: rustix::process::getpid().as_raw_pid(),
        uid: inner.root.then_some(uid),
        cgroups: group.entrances(),
        directories: spec
            .directories
            .iter()
            .map(|d| (d.host.clone(), d.inside.clone()))
            .collect(),
        helper: inner.settings.helper.clone(),
        workspace_bytes: 0,
        tmp_bytes: 0,
        pids: 0,
    };
    plan.set_limits(&spec.limits);
    let (bootstrap, command) = match command(inner, &plan) {
        Ok(made) => made,
        Err(source) => {
            remove_unused(&group);
            return Err(host("preparing the launch helper", source));
        }
    };
    let isolation = Isolation {
        driver: DRIVER,
        base_profile: BASE_PROFILE,
        cgroup: inner.hierarchy.version(),
        landlock: false,
        host_uid: if inner.root {
            uid
        } else {
            rustix::process::geteuid().as_raw()
        },
    };
    Ok(Prepared {
        slot,
        group,
        inputs,
        directory,
        bootstrap,
        command,
        isolation,
    })
}

/// The helper's command, with the plan already waiting in its standard input.
fn command(inner: &Inner, plan: &LaunchPlan) -> io::Result<(UnixStream, Command)> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let text = serde_json::to_vec(plan)?;
    write_frame(&mut ours, order::LAUNCH, &[], &text)?;
    let filter = in_memory("filter", &inner.filter)?;
    send_fds(&ours, &[filter.as_fd()])?;
    let mut command = Command::new(&inner.settings.helper);
    command
        .arg(LAUNCH_ARGUMENT)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    Ok((ours, command))
}

fn adopt(listener: StdListener) -> Result<TcpListener, LaunchError> {
    let adopted = listener
        .set_nonblocking(true)
        .and_then(|()| TcpListener::from_std(listener));
    adopted.map_err(|source| host("taking over a listener", source))
}

fn not_ready(outcome: Outcome) -> LaunchError {
    let detail = match outcome.reason {
        EndReason::Lost { detail } if !detail.is_empty() => detail,
        EndReason::Oom => "the memory limit is too small for the supervisor".to_owned(),
        other => format!("it ended before it was ready: {other:?}"),
    };
    LaunchError::Setup { detail }
}

fn remove_unused(group: &Group) {
    if let Err((path, error)) = group.remove() {
        tracing::warn!(path = %path.display(), %error, "an unused control group stays");
    }
}

pub(super) fn host(action: &'static str, source: io::Error) -> LaunchError {
    LaunchError::Host { action, source }
}
