//! Removing what killed calls left.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The most left-over directories that one call removes: cleaning up must not delay the tests.
const SWEEP_MAX: usize = 20;

/// Removes the directories with this prefix whose owner was killed with SIGKILL.
///
/// Their supervisor must be dead and its lock free. A directory without a recorded pid is being
/// set up right now.
pub(crate) fn sweep(temp_dir: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(temp_dir) else {
        return;
    };
    let left_over = entries.flatten().filter(|entry| {
        entry.file_name().to_string_lossy().starts_with(prefix) && is_abandoned(&entry.path())
    });
    for entry in left_over.take(SWEEP_MAX) {
        if let Err(error) = fs::remove_dir_all(entry.path()) {
            eprintln!(
                "with-postgres: cannot remove {}: {error}",
                entry.path().display()
            );
        }
    }
}

fn is_abandoned(dir: &Path) -> bool {
    let lock = dir.join("pg.lock");
    let is_ours = fs::symlink_metadata(dir)
        .is_ok_and(|found| found.is_dir() && found.uid() == nix::unistd::geteuid().as_raw());
    let owner = fs::read_to_string(&lock).unwrap_or_default();
    let owner_is_dead = owner
        .trim()
        .parse::<u32>()
        .is_ok_and(|pid| !Path::new("/proc").join(pid.to_string()).exists());
    is_ours && owner_is_dead && File::open(&lock).is_ok_and(|lock| lock.try_lock().is_ok())
}
