//! Making a cluster, completely or not at all.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::binaries::Binaries;
use crate::identity::Identity;
use crate::layout::Layout;
use crate::log::Log;
use crate::process::Process;
use crate::spawn;
use crate::{DATABASE, Durability, Error, ROLE, Settings};

/// The programs and surroundings that every child of a start shares.
pub(crate) struct Tools<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) binaries: &'a Binaries,
    pub(crate) identity: Identity,
    pub(crate) log: &'a Log,
    /// When the start began; [`Settings::start_limit`] counts from here.
    pub(crate) started: Instant,
}

impl Tools<'_> {
    /// A command with an empty environment, so that no `PG*`, locale or time zone variable of the
    /// caller reaches the server; its output goes to the log.
    pub(crate) fn command(&self, program: &Path) -> Result<Command, Error> {
        let log = self.log.open()?;
        let error_log = log
            .try_clone()
            .map_err(Error::io("open", self.log.path()))?;
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(error_log);
        Ok(command)
    }

    pub(crate) fn spawn(
        &self,
        command: Command,
        on_parent_death: Signal,
    ) -> Result<Process, Error> {
        let program = command.get_program().into();
        Process::spawn(command, on_parent_death, self.identity).map_err(|source| {
            match self.identity {
                Identity::Mapped { who } if spawn::is_namespace_refusal(&source) => {
                    Error::UserNamespaceRefused { who, source }
                }
                Identity::Mapped { .. } | Identity::Own => Error::Spawn { program, source },
            }
        })
    }

    pub(crate) fn time_left(&self) -> Duration {
        self.settings
            .start_limit
            .saturating_sub(self.started.elapsed())
    }

    /// Runs a program to its end; anything but success is an error.
    fn run(&self, program: &'static str, command: Command) -> Result<(), Error> {
        let mark = self.log.end();
        let process = self.spawn(command, Signal::SIGTERM)?;
        match process.life().wait(self.time_left()) {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(Error::Initialize {
                program,
                status,
                log_tail: self.log.tail_since(mark),
            }),
            None => Err(Error::StartTooSlow {
                waiting_for: program,
                limit: self.settings.start_limit,
                log_tail: self.log.tail_since(mark),
            }),
        }
    }
}

/// Makes the cluster under a temporary name and moves it to its own when nothing is missing: a
/// directory that a killed `initdb` leaves looks like a cluster, but is none.
pub(crate) fn initialize(tools: &Tools<'_>, layout: &Layout) -> Result<(), Error> {
    let half_made = tempfile::Builder::new()
        .prefix(&layout.half_made_prefix())
        .tempdir_in(&layout.parent)
        .map_err(Error::io("make a directory in", &layout.parent))?;
    run_initdb(tools, half_made.path())?;
    create_database(tools, half_made.path())?;
    // From here on a failure leaves the directory to the next start's clean-up.
    let complete = half_made.keep();
    fs::rename(&complete, &layout.data_dir)
        .map_err(Error::io("move the new cluster to", &layout.data_dir))?;
    if tools.settings.durability == Durability::Durable {
        File::open(&layout.parent)
            .and_then(|parent| parent.sync_all())
            .map_err(Error::io("flush", &layout.parent))?;
    }
    Ok(())
}

fn run_initdb(tools: &Tools<'_>, dir: &Path) -> Result<(), Error> {
    let mut command = tools.command(&tools.binaries.initdb)?;
    command
        .arg("-D")
        .arg(dir)
        .args(["-U", ROLE, "-E", "UTF8", "--locale=C"])
        // The role is not the operating system's user, so `peer` cannot work; the socket
        // directory's mode is the protection. TCP is off, and refused if somebody turns it on.
        .args(["--auth-local=trust", "--auth-host=reject"]);
    if tools.settings.durability == Durability::Throwaway {
        // Small segments, because writing the first one of 16 MB is half the work of a new cluster.
        command.args(["--no-sync", "--wal-segsize=1"]);
    }
    tools.run("initdb", command)
}

/// The single-user mode needs no server, no socket and no SQL client.
fn create_database(tools: &Tools<'_>, dir: &Path) -> Result<(), Error> {
    let mut sql =
        tempfile::tempfile().map_err(Error::io("make a file in", &std::env::temp_dir()))?;
    writeln!(sql, "CREATE DATABASE {DATABASE} OWNER {ROLE};")
        .and_then(|()| sql.rewind())
        .map_err(Error::io("write a file in", &std::env::temp_dir()))?;
    let mut command = tools.command(&tools.binaries.postgres)?;
    command.arg("--single").arg("-D").arg(dir);
    // Without this a failed statement is only printed, and the program still succeeds.
    command.args(["-c", "exit_on_error=on"]);
    if tools.settings.durability == Durability::Throwaway {
        command.args(["-c", "fsync=off"]);
    }
    command.arg("postgres").stdin(sql);
    tools.run("postgres --single", command)
}
