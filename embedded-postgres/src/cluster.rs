//! The public face: a cluster that runs for as long as the value lives.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use crate::binaries::Binaries;
use crate::identity::Identity;
use crate::initialize::{Tools, initialize};
use crate::layout::Layout;
use crate::lock::Lock;
use crate::log::Log;
use crate::occupants::wait_until_vacant;
use crate::server::{Exit, Server};
use crate::socket::{SocketDir, url};
use crate::{Error, ROLE, Settings};

/// A running private PostgreSQL.
///
/// Dropping it stops the server, which can take [`Settings::stop_limit`] and some seconds: in async
/// code call [`Cluster::stop`] on a thread that may block, after the pools are closed.
// The order of the fields is the order of the end: server, socket directory, lock.
pub struct Cluster {
    server: Server,
    socket: SocketDir,
    major: u32,
    _lock: Lock,
}

impl Cluster {
    /// Makes the cluster if there is none, and starts its server.
    ///
    /// Blocks until the server accepts connections, at most [`Settings::start_limit`]. A database
    /// named [`DATABASE`](crate::DATABASE), owned by the superuser [`ROLE`], exists afterwards.
    pub fn start(settings: &Settings) -> Result<Self, Error> {
        let started = Instant::now();
        let layout = Layout::of(&settings.data_dir)?;
        let lock = Lock::acquire(&layout.lock)?;
        tracing::info!(directory = %layout.data_dir.display(), "Starting the private PostgreSQL");
        layout.remove_half_made()?;
        let recorded = layout.recorded_major()?;
        let binaries = Binaries::find(settings, recorded.as_deref())?;
        let log = Log::at(&layout.log);
        log.trim()?;
        let tools = Tools {
            settings,
            binaries: &binaries,
            identity: Identity::of_this_process(),
            log: &log,
            started,
        };
        if recorded.is_none() {
            initialize(&tools, &layout)?;
        }
        layout.make_private()?;
        wait_until_vacant(&layout.data_dir, started, settings.start_limit)?;
        let socket = SocketDir::prepare(settings, &layout)?;
        let server = Server::start(&tools, &layout.data_dir, socket.path())?;
        tracing::info!(
            postgres.pid = server.pid(),
            postgres.major = binaries.major,
            data_dir = %layout.data_dir.display(),
            duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            "PostgreSQL {} is ready", binaries.major
        );
        Ok(Self {
            server,
            socket,
            major: binaries.major,
            _lock: lock,
        })
    }

    /// A URL for sqlx and libpq. It holds no secret: who can reach the socket needs none.
    pub fn url(&self, database: &str) -> String {
        url(ROLE, database, self.socket.path())
    }

    /// The directory of the server's socket. It must never be visible inside a run's sandbox.
    pub fn socket_dir(&self) -> &Path {
        self.socket.path()
    }

    /// The server's major version.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// The pid of the server's first process.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// How the server ended, or nothing while it runs.
    pub fn try_wait(&self) -> Option<Exit> {
        self.server.try_wait()
    }

    /// Calls `watcher` once the server has ended, asked or not; at once if it already has.
    ///
    /// It is called on the thread that owns the server, so it should only pass the news on. One
    /// watcher is kept: a second call replaces the first.
    pub fn on_exit(&self, watcher: impl FnOnce(Exit) + Send + 'static) {
        self.server.on_exit(watcher);
    }

    /// Stops the server: open transactions are rolled back, what was committed is written out.
    ///
    /// A server that takes longer than [`Settings::stop_limit`] is cut off and reported as
    /// [`Error::UncleanStop`]; the next start recovers what was committed.
    pub fn stop(self) -> Result<(), Error> {
        match self.server.stop() {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(Error::UncleanStop {
                status,
                log: self.server.log_path(),
            }),
            None => Err(Error::StopTooSlow {
                pid: self.server.pid(),
            }),
        }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("pid", &self.pid())
            .field("major", &self.major)
            .field("socket_dir", &self.socket_dir())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_can_be_watched_from_one_thread_and_stopped_on_another() {
        fn is_send_and_sync<T: Send + Sync>() {}
        is_send_and_sync::<Cluster>();
    }
}
