//! Reading and writing the small files of a control group.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Removals of a group whose last process is just being released.
const REMOVE_TRIES_MAX: u32 = 200;
/// Pause between two of them.
const REMOVE_PAUSE: Duration = Duration::from_millis(5);

pub(super) fn make(directory: &Path) -> Result<(), String> {
    fs::create_dir(directory).map_err(|error| told(directory, &error))
}

pub(super) fn set(path: &Path, value: &str) -> Result<(), String> {
    fs::write(path, value).map_err(|error| told(path, &error))
}

pub(super) fn told(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

pub(super) fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The number after `name` in a file of `name number` lines.
pub(super) fn field(path: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}

/// Names of the directories in a directory; none when it is absent.
pub(super) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Removes an empty group. A process that has ended can hold it for a moment longer.
pub(super) fn remove(directory: &Path) -> Result<(), (PathBuf, io::Error)> {
    for _ in 0..REMOVE_TRIES_MAX {
        match fs::remove_dir(directory) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(REMOVE_PAUSE);
            }
            Err(error) => return Err((directory.to_owned(), error)),
        }
    }
    Err((directory.to_owned(), io::ErrorKind::ResourceBusy.into()))
}
