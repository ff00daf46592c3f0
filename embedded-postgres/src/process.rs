//! A child that dies with us, owned by one thread for its whole life.
//!
//! The parent-death signal fires when the **thread** that started the child ends. So one thread does
//! nothing but start the child, wait for it and report: a pool's thread could end any time.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use crate::identity::Identity;
use crate::spawn;

/// What is recorded if the kernel does not tell how the child ended, which happens only to a
/// process that ignores SIGCHLD: exit code 255.
const STATUS_UNKNOWN: i32 = 0xff << 8;

/// What the kernel may take to end a killed process.
pub(crate) const KILL_LIMIT: Duration = Duration::from_secs(10);

/// What happens when the child has ended.
pub(crate) type Watcher = Box<dyn FnOnce(ExitStatus) + Send>;

/// A running or ended child.
pub(crate) struct Process {
    pid: Pid,
    life: Arc<Life>,
    owner: Option<JoinHandle<()>>,
}

/// Shared by the owner thread and everybody who waits.
pub(crate) struct Life {
    now: Mutex<Now>,
    ended: Condvar,
}

enum Now {
    Running { watcher: Option<Watcher> },
    Ended(ExitStatus),
}

impl Process {
    /// Starts `command`. It receives `on_parent_death` if we die before it.
    pub(crate) fn spawn(
        mut command: Command,
        on_parent_death: Signal,
        identity: Identity,
    ) -> io::Result<Self> {
        spawn::prepare(&mut command, on_parent_death, identity);
        let life = Arc::new(Life {
            now: Mutex::new(Now::Running { watcher: None }),
            ended: Condvar::new(),
        });
        let (started, start) = sync_channel(1);
        let theirs = Arc::clone(&life);
        let owner = thread::Builder::new()
            .name("postgres-owner".to_owned())
            .spawn(move || own(command, &started, &theirs))?;
        let pid = start
            .recv()
            .expect("the owner thread reports before it ends")?;
        Ok(Self {
            pid,
            life,
            owner: Some(owner),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    pub(crate) fn life(&self) -> Arc<Life> {
        Arc::clone(&self.life)
    }

    /// Sends a signal, unless the child has ended: its pid may be somebody else's by then.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Now::Running { .. } = *self.life.lock()
            && let Err(error) = kill(self.pid, signal)
        {
            tracing::warn!(%error, pid = self.pid(), %signal, "Cannot signal a child");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        if self.life.wait(KILL_LIMIT).is_none() {
            // Joining would hang us as well.
            tracing::error!(pid = self.pid(), "A killed child does not end");
            return;
        }
        if let Some(owner) = self.owner.take()
            && owner.join().is_err()
        {
            tracing::error!("The thread that owned a child panicked");
        }
    }
}

impl Life {
    /// How the child ended, if it has.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        match *self.lock() {
            Now::Running { .. } => None,
            Now::Ended(status) => Some(status),
        }
    }

    /// Waits for the end, but no longer than `limit`.
    pub(crate) fn wait(&self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        let mut now = self.lock();
        loop {
            if let Now::Ended(status) = *now {
                return Some(status);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            now = self
                .ended
                .wait_timeout(now, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Calls `watcher` once the child has ended; at once if it already has. The last one counts.
    pub(crate) fn watch(&self, new: Watcher) {
        let status = match *self.lock() {
            Now::Running { ref mut watcher } => {
                *watcher = Some(new);
                return;
            }
            Now::Ended(status) => status,
        };
        new(status);
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reaps under the lock, so that nobody can signal a pid that was just given away.
    fn end(&self, child: &mut Child) {
        let mut now = self.lock();
        let status = child.wait().unwrap_or_else(|error| {
            tracing::error!(%error, "Cannot learn how a child ended");
            ExitStatus::from_raw(STATUS_UNKNOWN)
        });
        let before = std::mem::replace(&mut *now, Now::Ended(status));
        drop(now);
        self.ended.notify_all();
        if let Now::Running {
            watcher: Some(watcher),
        } = before
        {
            watcher(status);
        }
    }
}

fn own(mut command: Command, started: &SyncSender<io::Result<Pid>>, life: &Life) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            // The receiver is still waiting: it leaves only after this message.
            drop(started.send(Err(error)));
            return;
        }
    };
    let pid = Pid::from_raw(child.id().cast_signed());
    drop(started.send(Ok(pid)));
    wait_without_reaping(pid);
    life.end(&mut child);
}

fn wait_without_reaping(pid: Pid) {
    let ended = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    while waitid(Id::Pid(pid), ended) == Err(Errno::EINTR) {}
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn sh(script: &str) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Process::spawn(command, Signal::SIGTERM, Identity::Own).unwrap()
    }

    /// Names of our threads that have the process as their child.
    fn owners(process: &Process) -> Vec<String> {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let read = |task: &std::path::Path, file: &str| {
            std::fs::read_to_string(task.join(file)).unwrap_or_default()
        };
        tasks
            .map(|task| task.unwrap().path())
            .filter(|task| {
                let pid = process.pid().to_string();
                read(task, "children")
                    .split_whitespace()
                    .any(|child| child == pid)
            })
            .map(|task| read(&task, "comm").trim().to_owned())
            .collect()
    }

    #[test]
    fn the_child_belongs_to_its_own_thread_and_not_to_the_one_that_asked() {
        let process = thread::spawn(|| sh("exec sleep 600")).join().unwrap();
        assert_eq!(owners(&process), ["postgres-owner"]);
    }

    #[test]
    fn the_watcher_hears_of_the_end_whenever_it_comes() {
        let process = sh("exit 3");
        let status = process.life().wait(LIMIT).unwrap();
        assert_eq!(status.code(), Some(3));
        let (sender, receiver) = channel();
        process
            .life()
            .watch(Box::new(move |status| sender.send(status).unwrap()));
        assert_eq!(receiver.recv_timeout(LIMIT), Ok(status));
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let process = sh("exec sleep 600");
        let pid = process.pid;
        drop(process);
        assert_eq!(kill(pid, None), Err(Errno::ESRCH));
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error() {
        let command = Command::new("/nonexistent/program");
        let error = Process::spawn(command, Signal::SIGTERM, Identity::Own)
            .err()
            .unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_signal_that_we_block_reaches_the_child() {
        let mut blocked = nix::sys::signal::SigSet::empty();
        blocked.add(Signal::SIGTERM);
        let process = thread::spawn(move || {
            blocked.thread_block().unwrap();
            sh("exec sleep 600")
        })
        .join()
        .unwrap();
        process.signal(Signal::SIGTERM);
        let status = process.life().wait(LIMIT).unwrap();
        assert_eq!(status.signal(), Some(Signal::SIGTERM as i32));
    }
}
