//! The task that decides about time, commands and the end of one sandbox.

mod verdict;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::Inner;
use super::cgroup::{Group, Usage};
use super::launch::host;
use super::receiver::{Hello, Listeners, Note, Received, Receiver};
use super::slots::Slot;
use crate::driver::{Command, LaunchError};
use crate::outcome::{EndReason, Isolation, Outcome};
use crate::spec::Limits;
use crate::wire::{JobNames, order, write_frame};

/// From the spawn to the supervisor's first message.
const LAUNCH_TIME_MAX: Duration = Duration::from_secs(30);
/// Interrupts passed on; the process inside has had enough by then.
const INTERRUPTS_MAX: u32 = 8;
/// Bytes kept of what the launcher said.
const DETAIL_MAX: usize = 4096;

/// The end of a sandbox, once.
#[derive(Debug)]
pub(super) struct Finish {
    outcome: Option<Outcome>,
    coming: oneshot::Receiver<Outcome>,
}

impl Finish {
    pub(super) async fn wait(&mut self) -> Outcome {
        if let Some(outcome) = &self.outcome {
            return outcome.clone();
        }
        let outcome = (&mut self.coming).await;
        let outcome = outcome.expect("the conductor's task is detached and sends before it ends");
        self.outcome = Some(outcome.clone());
        outcome
    }
}

/// What the task owns.
pub(super) struct Conductor {
    pub(super) id: String,
    pub(super) child: Child,
    pub(super) group: Group,
    pub(super) slot: Slot,
    pub(super) names: Arc<JobNames>,
    pub(super) limits: Limits,
    pub(super) isolation: Isolation,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) notes: mpsc::Receiver<Note>,
    pub(super) unwanted: oneshot::Receiver<()>,
    pub(super) hello: oneshot::Receiver<Hello>,
    /// Keeps the spawner thread alive, whose end would kill the tree.
    pub(super) inner: Arc<Inner>,
}

/// What is decided while the tree runs.
struct Watch {
    control: Option<UnixStream>,
    ready: Option<oneshot::Sender<Listeners>>,
    /// The first message was looked at, or there will be none.
    greeted: bool,
    end_of_launch: Option<Instant>,
    end_of_total: Instant,
    running: Option<(u16, Instant)>,
    end_of_grace: Option<Instant>,
    interrupts: u32,
    ending: Option<EndReason>,
    killed: bool,
    said: Vec<u8>,
}

impl Conductor {
    /// Starts the receiving thread and the deciding task.
    pub(super) fn start(
        mut self,
        receiver: Receiver,
        hello: oneshot::Sender<Hello>,
        ready: oneshot::Sender<Listeners>,
    ) -> Result<Finish, LaunchError> {
        let (outcome, coming) = oneshot::channel();
        let (all_in, all) = oneshot::channel();
        // Every process of the launcher holds this pipe, so its end is the end of the tree.
        let stderr = self
            .child
            .stderr
            .take()
            .ok_or(io::ErrorKind::NotFound.into());
        let tree = stderr.and_then(|stderr| pipe::Receiver::from_owned_fd(OwnedFd::from(stderr)));
        let thread = std::thread::Builder::new().name("sandbox-receiver".to_owned());
        let thread = thread.spawn(move || drop(all_in.send(receiver.run(hello))));
        // The task must run even if these failed, because it is what ends the tree.
        let failed = tree.as_ref().err().map(io::Error::kind);
        let failed = failed.or(thread.as_ref().err().map(io::Error::kind));
        tokio::spawn(async move {
            drop(outcome.send(self.conduct(tree.ok(), all, ready).await));
        });
        match failed {
            None => Ok(Finish {
                outcome: None,
                coming,
            }),
            Some(kind) => Err(host("watching the launch helper", kind.into())),
        }
    }

    async fn conduct(
        mut self,
        tree: Option<pipe::Receiver>,
        received: oneshot::Receiver<Received>,
        ready: oneshot::Sender<Listeners>,
    ) -> Outcome {
        let started = Instant::now();
        let mut watch = Watch {
            control: None,
            ready: Some(ready),
            greeted: false,
            end_of_launch: Some(started + LAUNCH_TIME_MAX),
            end_of_total: started + self.limits.total_time,
            running: None,
            end_of_grace: None,
            interrupts: 0,
            ending: None,
            killed: false,
            said: Vec::new(),
        };
        match tree {
            Some(mut tree) => self.watch_until_gone(&mut tree, &mut watch).await,
            None => self.group.kill(),
        }
        // A short tree can be gone before its first message was read. Whoever reads is at it until the
        // last one, and nobody writes any more.
        if !watch.greeted
            && let Ok(hello) = (&mut self.hello).await
        {
            watch.greet(hello);
        }
        drop(watch.ready.take());
        self.finish(watch, received).await
    }

    async fn watch_until_gone(&mut self, tree: &mut pipe::Receiver, watch: &mut Watch) {
        let mut said = [0; 1024];
        let (mut wanted, mut steered, mut noted) = (true, true, true);
        loop {
            tokio::select! {
                biased;
                said_now = tree.read(&mut said) => match said_now {
                    Ok(0) | Err(_) => return,
                    Ok(read) => watch.remember(&said[..read]),
                },
                note = self.notes.recv(), if noted => match note {
                    Some(note) => self.take_note(watch, note),
                    None => noted = false,
                },
                hello = &mut self.hello, if !watch.greeted => {
                    watch.greeted = true;
                    if let Ok(hello) = hello {
                        watch.greet(hello);
                    }
                }
                _ = &mut self.unwanted, if wanted => {
                    wanted = false;
                    self.kill(watch, EndReason::Killed);
                }
                command = self.commands.recv(), if steered => match command {
                    Some(Command::Interrupt) => self.interrupt(watch, EndReason::Canceled { forced: false }),
                    Some(Command::Kill) => self.kill(watch, EndReason::Killed),
                    Some(Command::Proceed) => watch.order(order::PROCEED),
                    None => steered = false,
                },
                () = sleep_until(watch.next_deadline()), if !watch.killed => self.deadline(watch),
            }
        }
    }

    fn take_note(&mut self, watch: &mut Watch, note: Note) {
        match note {
            Note::StepStarted(step) => {
                let limit = self.names.steps[usize::from(step)].time_limit;
                watch.running = Some((step, Instant::now() + limit));
            }
            Note::StepEnded => watch.running = None,
            Note::Fatal(reason) => self.kill(watch, reason),
        }
    }

    fn interrupt(&mut self, watch: &mut Watch, reason: EndReason) {
        watch.ending.get_or_insert(reason);
        watch
            .end_of_grace
            .get_or_insert_with(|| Instant::now() + self.limits.interrupt_grace);
        if watch.interrupts < INTERRUPTS_MAX {
            watch.interrupts += 1;
            watch.order(order::INTERRUPT);
        }
    }

    fn kill(&mut self, watch: &mut Watch, reason: EndReason) {
        // A kill on request says more than the interrupt before it; time and floods say more still.
        match &watch.ending {
            Some(EndReason::Canceled { .. }) | None => watch.ending = Some(reason),
            Some(_) => {}
        }
        watch.killed = true;
        self.group.kill();
    }

    fn deadline(&mut self, watch: &mut Watch) {
        let now = Instant::now();
        if watch.end_of_grace.is_some_and(|end| end <= now) {
            if let Some(EndReason::Canceled { forced }) = &mut watch.ending {
                *forced = true;
            }
            watch.killed = true;
            self.group.kill();
        } else if watch.end_of_launch.is_some_and(|end| end <= now) {
            self.kill(watch, EndReason::Timeout { step: None });
        } else {
            let step = watch
                .running
                .map(|(step, _)| Arc::clone(&self.names.steps[usize::from(step)].name));
            self.interrupt(watch, EndReason::Timeout { step });
        }
    }

    async fn finish(self, mut watch: Watch, received: oneshot::Receiver<Received>) -> Outcome {
        let Self {
            id,
            child,
            group,
            slot,
            names,
            mut isolation,
            mut notes,
            inner,
            ..
        } = self;
        notes.close();
        let (counted, usage) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            clean_up(child, &group, slot, counted);
            drop(inner);
        });
        let usage = usage.await.unwrap_or_default();
        let detail = String::from_utf8_lossy(&watch.said).trim().to_owned();
        let received = received.await.unwrap_or_default();
        isolation.landlock = received.landlock;
        let reason = verdict::reason(watch.ending.take(), &received, &names, &usage, detail);
        tracing::info!(sandbox.id = %id, ?reason, "Sandbox `{id}` ended");
        Outcome {
            id,
            reason,
            steps: received.steps,
            artifacts: received.artifacts,
            peak_memory_bytes: usage.peak_memory_bytes,
            cpu_time: usage.cpu_time,
            oom_kills: usage.oom_kills,
            pids_refusals: usage.pids_refusals,
            log_bytes: received.log_bytes,
            isolation,
        }
    }
}

impl Watch {
    fn remember(&mut self, said: &[u8]) {
        let left = DETAIL_MAX - self.said.len();
        self.said.extend_from_slice(&said[..said.len().min(left)]);
    }

    fn greet(&mut self, hello: Hello) {
        self.control = Some(hello.control);
        self.end_of_launch = None;
        if let Some(ready) = self.ready.take() {
            // The launch was abandoned; the closed handle ends the tree.
            drop(ready.send(hello.listeners));
        }
    }

    /// The socket is never full: orders are few bytes and limited in number.
    fn order(&mut self, kind: u8) {
        if let Some(control) = &mut self.control
            && let Err(error) = write_frame(control, kind, &[], &[])
        {
            tracing::debug!(%error, "the supervisor has already ended");
        }
    }

    fn next_deadline(&self) -> Instant {
        // During the grace period only its own end counts.
        if let Some(end) = self.end_of_grace {
            return end;
        }
        let running = self.running.map(|(_, end)| end);
        let ends = running.into_iter().chain(self.end_of_launch);
        ends.fold(self.end_of_total, Instant::min)
    }
}

/// Leaves no process, no group and no taken slot. The outcome does not wait for the removal of groups
/// that are empty: who wants the slot does.
fn clean_up(mut child: Child, group: &Group, slot: Slot, counted: oneshot::Sender<Usage>) {
    group.kill();
    if let Err(error) = child.wait() {
        tracing::error!(%error, "cannot wait for the launch helper");
    }
    let empty = group.wait_until_empty();
    // Whoever waited may be gone.
    drop(counted.send(group.usage()));
    match group.remove() {
        Ok(()) if empty => drop(slot),
        Ok(()) | Err(_) => {
            // Another tree with the same user could be reached by what is left of this one.
            tracing::error!(
                slot = slot.number(),
                "processes cannot be ended; the slot is given up"
            );
            std::mem::forget(slot);
        }
    }
}
