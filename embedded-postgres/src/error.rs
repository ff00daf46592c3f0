//! Everything that can go wrong, one variant per remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

/// One place that was examined for PostgreSQL binaries, and why it did not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// A directory, or the command that names one.
    pub place: PathBuf,
    /// Why it did not do.
    pub found: String,
}

impl fmt::Display for Looked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place.display(), self.found)
    }
}

/// Why a cluster did not start or stop as it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No usable `postgres` and `initdb` anywhere.
    #[error(
        "no PostgreSQL {min} or newer found; looked at{}\nInstall PostgreSQL (Debian, Ubuntu: \
         apt-get install postgresql), or name the directory that holds `postgres` and `initdb` (setting \
         `postgres_bin_dir`; of tests STACKSHIP_PG_BIN), or a server that is already there (setting `database_url`; of \
         tests DATABASE_URL)", list(.looked)
    )]
    NoBinaries {
        /// The oldest major version that will do.
        min: u32,
        /// The places examined, in order.
        looked: Vec<Looked>,
    },

    /// The data directory was written by another major version than any found here.
    #[error(
        "{} was made by PostgreSQL {recorded}, which is not among the versions found{}\nInstall \
         PostgreSQL {recorded}, or name its directory (setting `postgres_bin_dir`; of tests STACKSHIP_PG_BIN), or move \
         the data with pg_upgrade or pg_dump", .data_dir.display(), list(.looked)
    )]
    OtherMajor {
        /// The cluster.
        data_dir: PathBuf,
        /// What its `PG_VERSION` says.
        recorded: String,
        /// The places examined, in order.
        looked: Vec<Looked>,
    },

    /// Another process supervises this cluster.
    #[error(
        "another process ({}) already runs the cluster: it holds the lock {}",
        .owner.map_or_else(|| "pid not recorded yet".to_owned(), |pid| format!("pid {pid}")),
        .lock.display()
    )]
    Locked {
        /// The lock file.
        lock: PathBuf,
        /// The holder, as it wrote itself down.
        owner: Option<u32>,
    },

    /// A server that is not ours still runs on the data directory.
    #[error(
        "a PostgreSQL server (pid {pid}) still runs on {} after {waited:?}; stop it with \
         `kill -INT {pid}` if nothing else needs it", .data_dir.display()
    )]
    StillRunning {
        /// The data directory.
        data_dir: PathBuf,
        /// One process of that server.
        pid: u32,
        /// How long we waited for it to leave.
        waited: Duration,
    },

    /// The data directory holds something that is no cluster.
    #[error("{} is neither empty nor a PostgreSQL cluster; choose another directory", .0.display())]
    NotACluster(PathBuf),

    /// The socket directory could be entered by somebody else.
    #[error("the socket directory {} {why}; it must be a directory of our own with mode 0700", .dir.display())]
    SocketDirNotPrivate {
        /// The directory.
        dir: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },

    /// Not even the short socket directory will do.
    #[error("the socket directory {} must be UTF-8 of at most {max} bytes without a comma", .dir.display())]
    SocketDirUnfit {
        /// The directory.
        dir: PathBuf,
        /// The most bytes it may have.
        max: usize,
    },

    /// PostgreSQL refuses this user, and the kernel refuses the user namespace that would help.
    #[error(
        "PostgreSQL does not run as {who}, and this system refuses the user namespace that would \
         help. Run StackShip as an ordinary user listed in /etc/passwd, or allow user namespaces \
         (sysctl user.max_user_namespaces, or the container's seccomp profile), or name a server that is already \
         there (setting `database_url`; of tests DATABASE_URL)"
    )]
    UserNamespaceRefused {
        /// "root" or "a user without a name".
        who: &'static str,
        /// What the kernel said.
        source: io::Error,
    },

    /// `initdb`, or the step after it that makes our database, failed.
    #[error("{program} failed ({status}){}", tail(.log_tail))]
    Initialize {
        /// The program.
        program: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The end of its output.
        log_tail: String,
    },

    /// The server ended before it was ready.
    #[error("postgres ended while starting ({status}); its log is {}{}", .log.display(), tail(.log_tail))]
    DiedStarting {
        /// How it ended.
        status: ExitStatus,
        /// The whole log.
        log: PathBuf,
        /// The end of the log.
        log_tail: String,
    },

    /// The start took longer than [`Settings::start_limit`](crate::Settings::start_limit).
    #[error("{waiting_for} took longer than the start limit of {limit:?}{}", tail(.log_tail))]
    StartTooSlow {
        /// What did not come.
        waiting_for: &'static str,
        /// The limit.
        limit: Duration,
        /// The end of the log.
        log_tail: String,
    },

    /// The server did not shut down cleanly. The next start recovers what was committed.
    #[error("postgres did not shut down cleanly ({status}); its log is {}", .log.display())]
    UncleanStop {
        /// How it ended.
        status: ExitStatus,
        /// The whole log.
        log: PathBuf,
    },

    /// The server did not even end when killed: the kernel holds it, for example in a dead disk.
    #[error("postgres (pid {pid}) does not end, not even when killed")]
    StopTooSlow {
        /// The server.
        pid: u32,
    },

    /// A program could not be started.
    #[error("cannot start {}", .program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// A file could not be read or written.
    #[error("cannot {doing} {}", .path.display())]
    Io {
        /// A verb.
        doing: &'static str,
        /// Its object.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: what was being done to which path.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            doing,
            path: path.to_owned(),
            source,
        }
    }
}

fn list(looked: &[Looked]) -> String {
    let lines: Vec<String> = looked.iter().map(|place| format!("\n  {place}")).collect();
    lines.concat()
}

fn tail(log_tail: &str) -> String {
    match log_tail.trim_end() {
        "" => String::new(),
        text => format!(":\n{text}"),
    }
}
