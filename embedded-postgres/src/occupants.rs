//! Who still runs on a data directory, whatever its `postmaster.pid` says.
//!
//! That file outlives a killed server, and its number may by then belong to a zombie (PostgreSQL
//! refuses to start until somebody reaps it) or to an unrelated process (PostgreSQL refuses for
//! ever). The kernel knows better: every server process has the data directory as its working
//! directory. So we look at the processes, wait for those that are leaving, and remove the file once
//! nobody is left.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;

/// How often we look whether a leaving server is gone.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Waits until no server runs on `data_dir`, then removes a `postmaster.pid` left behind.
///
/// Only the lock's holder may call this: the lock is what keeps a new server from starting between
/// the look and the removal.
pub(crate) fn wait_until_vacant(
    data_dir: &Path,
    started: Instant,
    limit: Duration,
) -> Result<(), Error> {
    while let Some(pid) = server_on(data_dir)? {
        if started.elapsed() >= limit {
            return Err(Error::StillRunning {
                data_dir: data_dir.to_owned(),
                pid,
                waited: limit,
            });
        }
        thread::sleep(LOOK_EVERY);
    }
    let pid_file = data_dir.join("postmaster.pid");
    match fs::remove_file(&pid_file) {
        Ok(()) => {
            tracing::warn!(path = %pid_file.display(), "Removed the pid file of a server that is gone");
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("remove", &pid_file)(error)),
    }
}

/// A living server process on this directory: postmaster or one of its children.
fn server_on(data_dir: &Path) -> Result<Option<u32>, Error> {
    let home = fs::metadata(data_dir).map_err(Error::io("look at", data_dir))?;
    let proc = Path::new("/proc");
    for entry in fs::read_dir(proc).map_err(Error::io("read", proc))? {
        let entry = entry.map_err(Error::io("read", proc))?;
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if is_server_in(&entry.path(), (home.dev(), home.ino())) {
            return Ok(Some(pid));
        }
    }
    Ok(None)
}

/// A zombie has neither an executable nor a working directory, and a stranger's cannot be read:
/// both count as "not a server of ours". Directories are compared by identity, because a path can
/// be renamed or mounted elsewhere.
fn is_server_in(process: &Path, home: (u64, u64)) -> bool {
    let is_postgres = fs::read_link(process.join("exe")).is_ok_and(|exe| {
        exe.file_name()
            .is_some_and(|name| name.to_string_lossy().contains("postgres"))
    });
    is_postgres && fs::metadata(process.join("cwd")).is_ok_and(|cwd| (cwd.dev(), cwd.ino()) == home)
}
