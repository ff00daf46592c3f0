//! One supervisor per cluster.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::Error;

/// A pid has at most seven digits; more is not ours.
const PID_BYTES_MAX: u64 = 16;

/// The right to touch a cluster, for as long as the value lives.
///
/// The kernel releases the lock when the owner dies, so no stale one can exist. The file is never
/// removed: a second opener could otherwise lock a file that no longer has the name.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    pub(crate) fn acquire(path: &Path) -> Result<Self, Error> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(Error::io("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked {
                    lock: path.to_owned(),
                    owner: recorded_pid(&file),
                });
            }
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", path)(error)),
        }
        file.set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(Error::io("write", path))?;
        Ok(Self(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone is not enough: a process that another thread is just starting may hold
        // a copy of the descriptor for a moment, and the lock with it.
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "Cannot release the cluster's lock early");
        }
    }
}

fn recorded_pid(file: &File) -> Option<u32> {
    let mut text = String::new();
    file.take(PID_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_names_its_owner_and_a_released_one_can_be_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pg.lock");
        let held = Lock::acquire(&path).unwrap();
        match Lock::acquire(&path) {
            Err(Error::Locked { owner, .. }) => assert_eq!(owner, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(held);
        Lock::acquire(&path).unwrap();
    }
}
