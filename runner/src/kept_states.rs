//! The last resort for a state that the control plane does not take any more: a copy on this machine.
//!
//! Only a person uses it. Nothing here is ever sent, published or reported.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use stackship_domain::ids::{AttemptId, RunId};

/// Below the runner's work directory. A start of the runner sweeps other names than this one.
const DIRECTORY: &str = "kept-states";
/// How many are kept; the oldest makes room.
const KEPT_STATES_MAX: usize = 64;
/// A state holds secrets in clear.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Keeps a state that would be lost with the sandbox's files, and says where.
pub(crate) fn keep(work_directory: &Path, run: RunId, attempt: AttemptId, state: &Path) {
    match copy(work_directory, run, attempt, state) {
        Ok(path) => {
            tracing::error!(alarm = "state_kept_at_runner", run.id = %run, attempt.id = %attempt, path = %path.display(),
                "The state that the apply of run `{run}` left is on this machine only: {}", path.display());
        }
        Err(error) => {
            tracing::error!(alarm = "state_lost", error = %error, run.id = %run, attempt.id = %attempt,
                "The state that the apply of run `{run}` left could not be kept");
        }
    }
}

/// Copies it to where the runner's own cleaning does not reach, and answers with its path.
fn copy(
    work_directory: &Path,
    run: RunId,
    attempt: AttemptId,
    state: &Path,
) -> io::Result<PathBuf> {
    let directory = work_directory.join(DIRECTORY);
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(&directory)?;
    let path = directory.join(format!("{run}.{attempt}.tfstate"));
    write(state, &path)?;
    // The new one is safe before another is touched, and stays so if nothing can be removed.
    if let Err(error) = make_room(&directory, KEPT_STATES_MAX) {
        tracing::warn!(%error, "The oldest kept states could not be removed");
    }
    Ok(path)
}

fn write(state: &Path, path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path)?;
    io::copy(&mut File::open(state)?, &mut file)?;
    file.sync_all()?;
    path.parent()
        .map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

fn make_room(directory: &Path, states_max: usize) -> io::Result<()> {
    let mut kept: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        kept.push((entry.metadata()?.modified()?, entry.path()));
    }
    kept.sort_unstable();
    let surplus = kept.len().saturating_sub(states_max);
    for (_, path) in kept.into_iter().take(surplus) {
        tracing::warn!(path = %path.display(), "The oldest kept state was removed to make room");
        std::fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let directory = tempfile::tempdir().unwrap();
        for age in 0..4 {
            let file = File::create(directory.path().join(age.to_string())).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(100 - age))
                .unwrap();
        }
        make_room(directory.path(), 2).unwrap();
        let mut left: Vec<_> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort_unstable();
        assert_eq!(left, ["0", "1"]);
    }

    #[test]
    fn what_is_kept_is_never_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let (state, path) = (directory.path().join("new"), directory.path().join("kept"));
        std::fs::write(&state, "new").unwrap();
        std::fs::write(&path, "old").unwrap();
        let error = write(&state, &path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    }
}
