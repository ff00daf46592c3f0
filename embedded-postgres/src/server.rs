//! A running `postgres`: its start until "ready", its end, and how it ended.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::Error;
use crate::initialize::Tools;
use crate::log::{LOG_CHECK_EVERY, Log};
use crate::process::{KILL_LIMIT, Life, Process};
use crate::socket::as_list_setting;

/// How often we look whether the server is ready. A start takes 30 to 90 ms on a quiet machine.
const READY_EVERY: Duration = Duration::from_millis(5);

/// What a server told to drop everything may take. It kills its own children after five seconds.
const QUIT_LIMIT: Duration = Duration::from_secs(10);

/// How the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// What the system reports.
    pub status: ExitStatus,
    /// Whether we had asked it to stop. If not, the process that depends on it should end loudly.
    pub asked: bool,
}

pub(crate) struct Server {
    process: Process,
    asked: Arc<AtomicBool>,
    log: Log,
    log_keeper: Option<JoinHandle<()>>,
    stop_limit: Duration,
}

impl Server {
    /// Starts `postgres` and waits until it accepts connections.
    pub(crate) fn start(tools: &Tools<'_>, data_dir: &Path, socket: &Path) -> Result<Self, Error> {
        let mut command = tools.command(&tools.binaries.postgres)?;
        command.arg("-D").arg(data_dir);
        for (name, value) in tools.settings.server_settings() {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        // Last, so that nothing above can open the server to others.
        command
            .args(["-c", "listen_addresses=", "-c", "port=5432"])
            .args(["-c", "unix_socket_permissions=0700", "-c"])
            .arg(format!(
                "unix_socket_directories={}",
                as_list_setting(socket)
            ));
        // A Ctrl-C at the terminal goes to the foreground group. It must reach us only: we stop
        // the server after its clients.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);

        let mark = tools.log.end();
        let process = tools.spawn(command, Signal::SIGINT)?;
        let log_keeper = keep_log(tools.log.clone(), process.life())?;
        let server = Self {
            process,
            asked: Arc::new(AtomicBool::new(false)),
            log: tools.log.clone(),
            log_keeper: Some(log_keeper),
            stop_limit: tools.settings.stop_limit,
        };
        server.wait_until_ready(tools, &data_dir.join("postmaster.pid"), mark)?;
        Ok(server)
    }

    fn wait_until_ready(&self, tools: &Tools<'_>, pid_file: &Path, mark: u64) -> Result<(), Error> {
        let life = self.process.life();
        while !fs::read_to_string(pid_file).is_ok_and(|text| says_ready(&text, self.pid())) {
            if let Some(status) = life.wait(READY_EVERY) {
                return Err(Error::DiedStarting {
                    status,
                    log: self.log.path().to_owned(),
                    log_tail: self.log.tail_since(mark),
                });
            }
            if tools.time_left().is_zero() {
                return Err(Error::StartTooSlow {
                    waiting_for: "postgres",
                    limit: tools.settings.start_limit,
                    log_tail: self.log.tail_since(mark),
                });
            }
        }
        Ok(())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(crate) fn try_wait(&self) -> Option<Exit> {
        let status = self.process.life().status()?;
        Some(exit(status, &self.asked))
    }

    pub(crate) fn on_exit(&self, watcher: impl FnOnce(Exit) + Send + 'static) {
        let asked = Arc::clone(&self.asked);
        self.process
            .life()
            .watch(Box::new(move |status| watcher(exit(status, &asked))));
    }

    /// Ends the server: politely, then firmly, then by force. Returns how it ended.
    pub(crate) fn stop(&self) -> Option<ExitStatus> {
        let life = self.process.life();
        if let Some(status) = life.status() {
            return Some(status);
        }
        self.asked.store(true, Ordering::SeqCst);
        let steps = [
            (Signal::SIGINT, self.stop_limit),
            (Signal::SIGQUIT, QUIT_LIMIT),
            (Signal::SIGKILL, KILL_LIMIT),
        ];
        for (signal, limit) in steps {
            self.process.signal(signal);
            if let Some(status) = life.wait(limit) {
                return Some(status);
            }
            tracing::warn!(pid = self.pid(), %signal, ?limit, "PostgreSQL did not stop in time");
        }
        None
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.log.path().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.stop().is_none() {
            // The log's keeper lives as long as the server; joining would hang us as well.
            return;
        }
        if let Some(keeper) = self.log_keeper.take()
            && keeper.join().is_err()
        {
            tracing::error!("The thread that bounded the server's log panicked");
        }
    }
}

fn exit(status: ExitStatus, asked: &AtomicBool) -> Exit {
    Exit {
        status,
        asked: asked.load(Ordering::SeqCst),
    }
}

/// Bounds the log for as long as the server lives.
fn keep_log(log: Log, life: Arc<Life>) -> Result<JoinHandle<()>, Error> {
    let path = log.path().to_owned();
    thread::Builder::new()
        .name("postgres-log".to_owned())
        .spawn(move || {
            while life.wait(LOG_CHECK_EVERY).is_none() {
                if let Err(error) = log.trim() {
                    tracing::warn!(%error, "Cannot bound the server's log");
                }
            }
        })
        .map_err(Error::io("watch", &path))
}

/// `postmaster.pid`: the first line is the pid, the eighth the status. The pid makes sure that it
/// is not a file left from an earlier server.
fn says_ready(pid_file: &str, pid: u32) -> bool {
    let mut lines = pid_file.lines();
    let is_ours = lines.next().and_then(|line| line.trim().parse().ok()) == Some(pid);
    is_ours && lines.nth(6).is_some_and(|status| status.trim() == "ready")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_means_our_child_and_the_eighth_line() {
        let file = "42\n/data/pg\n1764\n5432\n/data/s\n\n  1234  5\nready   \n";
        assert!(says_ready(file, 42));
        assert!(!says_ready(file, 43), "another server's file");
        assert!(!says_ready(&file.replace("ready", "starting"), 42));
        assert!(!says_ready("42\n/data/pg\nready\n", 42), "half written");
    }
}
