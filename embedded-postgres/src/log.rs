//! `postgres.log`: what the server and `initdb` print, within a limit.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Error;

/// A log that has reached this size makes room for a new one; one old log is kept.
const LOG_BYTES_MAX: u64 = 10 * 1024 * 1024;

/// How often a running server's log is measured. The log can grow past its limit only by what
/// the server prints in this time.
pub(crate) const LOG_CHECK_EVERY: Duration = Duration::from_mins(1);

/// How much of the log's end an error quotes.
const TAIL_BYTES_MAX: u64 = 2048;

/// The log file of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    path: PathBuf,
    bytes_max: u64,
}

impl Log {
    pub(crate) fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            bytes_max: LOG_BYTES_MAX,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A handle for a child's output. Appending makes a later [`Log::trim`] safe: a writer goes on
    /// at the new end instead of leaving a hole.
    pub(crate) fn open(&self) -> Result<File, Error> {
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path)
            .map_err(Error::io("open", &self.path))
    }

    /// Moves the content to `postgres.log.1` if there is too much of it.
    ///
    /// The server keeps its descriptor, so the content is copied and the file emptied; a line
    /// printed between the two is lost, which a log can bear.
    pub(crate) fn trim(&self) -> Result<(), Error> {
        match fs::metadata(&self.path) {
            Ok(found) if found.len() > self.bytes_max => {}
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Error::io("measure", &self.path)(error)),
        }
        let mut old = self.path.clone().into_os_string();
        old.push(".1");
        fs::copy(&self.path, &old)
            .and_then(|_| self.truncate())
            .map_err(Error::io("rotate", &self.path))
    }

    fn truncate(&self) -> io::Result<()> {
        OpenOptions::new().write(true).open(&self.path)?.set_len(0)
    }

    /// Where the next line will stand; for [`Log::tail_since`].
    pub(crate) fn end(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |found| found.len())
    }

    /// The end of what was printed since `start`. It only decorates an error, so it cannot fail.
    pub(crate) fn tail_since(&self, start: u64) -> String {
        self.read_tail(start).unwrap_or_default()
    }

    fn read_tail(&self, start: u64) -> io::Result<String> {
        let mut file = File::open(&self.path)?;
        let from = start.max(file.metadata()?.len().saturating_sub(TAIL_BYTES_MAX));
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn log_of_ten_bytes(dir: &Path) -> Log {
        Log {
            path: dir.join("postgres.log"),
            bytes_max: 10,
        }
    }

    #[test]
    fn a_full_log_moves_aside_while_its_writer_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let log = log_of_ten_bytes(dir.path());
        let mut writer = log.open().unwrap();
        writer.write_all(b"more than ten bytes\n").unwrap();
        log.trim().unwrap();
        writer.write_all(b"new\n").unwrap();

        let old = fs::read(dir.path().join("postgres.log.1")).unwrap();
        assert_eq!(old, b"more than ten bytes\n");
        assert_eq!(fs::read(log.path()).unwrap(), b"new\n");
    }

    #[test]
    fn a_small_log_stays_and_a_missing_one_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let log = log_of_ten_bytes(dir.path());
        log.trim().unwrap();
        log.open().unwrap().write_all(b"short").unwrap();
        log.trim().unwrap();
        assert_eq!(fs::read(log.path()).unwrap(), b"short");
    }

    #[test]
    fn the_tail_starts_at_the_mark_and_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let log = log_of_ten_bytes(dir.path());
        let mut writer = log.open().unwrap();
        writer.write_all(b"an older start\n").unwrap();
        let mark = log.end();
        writer.write_all(b"this start\n").unwrap();
        assert_eq!(log.tail_since(mark), "this start\n");
        writer.write_all(&[b'x'; 5000]).unwrap();
        assert_eq!(log.tail_since(mark).len(), 2048);
    }
}
