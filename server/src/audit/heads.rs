//! The file of signed heads: appended to, synced, and never written again.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use stackship_domain::Timestamp;
use stackship_projections::audit::{ChainHead, HeadKey, HeadLog, SignedHead, VerifyError};

/// Why heads cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum HeadsError {
    /// Another server of this data directory keeps them.
    #[error("another process writes to {}", .0.display())]
    Taken(PathBuf),
    /// What is in the file was not written by this installation.
    #[error("{} does not hold the heads that this installation signed", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: VerifyError,
    },
    /// The file cannot be read or written.
    #[error("{} cannot be read or written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// The open file, and what was signed last.
pub struct HeadsFile {
    path: PathBuf,
    file: File,
    key: HeadKey,
    /// The last head of the file, which the next one covers.
    last: Option<SignedHead>,
    /// The last head of each organization.
    newest: BTreeMap<String, SignedHead>,
}

impl HeadsFile {
    /// Opens or makes the file, checks what is in it and keeps others from writing.
    pub fn open(path: &Path, key: HeadKey) -> Result<Self, HeadsError> {
        let failed = |source| HeadsError::File {
            path: path.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(HeadsError::Taken(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut heads = Self {
            path: path.to_owned(),
            file,
            key,
            last: None,
            newest: BTreeMap::new(),
        };
        heads.read().map_err(|source| HeadsError::Foreign {
            path: path.to_owned(),
            source,
        })?;
        heads.end_torn_line().map_err(failed)?;
        sync_directory(path).map_err(failed)?;
        Ok(heads)
    }

    /// The last head that was signed for this organization.
    pub fn newest(&self, organization: &str) -> Option<&SignedHead> {
        self.newest.get(organization)
    }

    /// Signs these heads and has them on the disk when it returns.
    pub fn append(&mut self, heads: Vec<ChainHead>, now: Timestamp) -> Result<(), HeadsError> {
        let written = self.write(heads, now);
        written.map_err(|source| HeadsError::File {
            path: self.path.clone(),
            source,
        })
    }

    fn write(&mut self, heads: Vec<ChainHead>, now: Timestamp) -> io::Result<()> {
        let (mut lines, mut signed) = (String::new(), Vec::with_capacity(heads.len()));
        let mut last = self.last.clone();
        for head in heads {
            let head = (head.organization, head.number, head.hash);
            let head = self.key.sign(head, now, last.as_ref());
            lines.push_str(&head.line()?);
            last = Some(head.clone());
            signed.push(head);
        }
        // Whatever an earlier failure left must not run together with what follows.
        self.end_torn_line()?;
        self.file.write_all(lines.as_bytes())?;
        self.file.sync_data()?;
        self.last = last;
        for head in signed {
            self.newest.insert(head.organization.clone(), head);
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), VerifyError> {
        let mut log = HeadLog::new(BufReader::new(&self.file), self.key.public());
        while let Some(head) = log.next_head()? {
            self.newest.insert(head.organization.clone(), head.clone());
            self.last = Some(head);
        }
        Ok(())
    }

    /// Ends a line that a crash cut off. The file is only ever appended to, so the line stays; readers
    /// know it by its being no head.
    fn end_torn_line(&mut self) -> io::Result<()> {
        if self.file.seek(SeekFrom::End(0))? == 0 {
            return Ok(());
        }
        self.file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        self.file.read_exact(&mut last)?;
        if last != *b"\n" {
            self.file.write_all(b"\n")?;
        }
        Ok(())
    }
}

/// Makes the file itself survive a crash, not only what is in it.
fn sync_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) if directory != Path::new("") => File::open(directory)?.sync_all(),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use stackship_domain::Sha256Digest;

    use super::*;

    fn head(organization: &str, number: i64) -> ChainHead {
        ChainHead {
            organization: organization.to_owned(),
            number,
            hash: Sha256Digest::of(format!("{organization} {number}").as_bytes()),
        }
    }

    fn open(path: &Path) -> Result<HeadsFile, HeadsError> {
        HeadsFile::open(path, HeadKey::from_seed(&[7; 32]))
    }

    fn positions(path: &Path) -> Vec<(String, i64)> {
        let file = BufReader::new(File::open(path).unwrap());
        let mut log = HeadLog::new(file, HeadKey::from_seed(&[7; 32]).public());
        let mut found = Vec::new();
        while let Some(head) = log.next_head().unwrap() {
            found.push((head.organization, head.position));
        }
        found
    }

    #[test]
    fn heads_follow_each_other_over_restarts_and_torn_lines() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("heads");
        let mut file = open(&path).unwrap();
        file.append(
            vec![head("org-a", 1), head("org-b", 4)],
            Timestamp::UNIX_EPOCH,
        )
        .unwrap();
        drop(file);
        let whole = fs::read(&path).unwrap();
        let line = whole.iter().position(|byte| *byte == b'\n').unwrap();
        // A crash anywhere while the next head was written: this many bytes of it are there.
        for torn in [0, 1, line / 2, line] {
            let mut bytes = whole.clone();
            bytes.extend(&whole[..torn]);
            // A whole line without its end is a head that was moved, unless it is unreadable.
            if torn == line {
                bytes.pop();
            }
            fs::write(&path, &bytes).unwrap();
            let mut file = open(&path).unwrap();
            assert_eq!(file.newest("org-b").map(|head| head.position), Some(4));
            file.append(vec![head("org-a", 9)], Timestamp::UNIX_EPOCH)
                .unwrap();
            drop(file);
            let expected = [("org-a", 1), ("org-b", 4), ("org-a", 9)];
            let expected = expected.map(|(name, number)| (name.to_owned(), number));
            assert_eq!(positions(&path), expected, "{torn} bytes");
            assert!(
                fs::read(&path).unwrap().starts_with(&bytes),
                "only appended"
            );
        }
    }

    #[test]
    fn two_servers_never_write_to_one_file_and_nobody_else_may_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("heads");
        let first = open(&path).unwrap();
        assert!(matches!(open(&path), Err(HeadsError::Taken(_))));
        drop(first);
        assert!(open(&path).is_ok());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
    }

    #[test]
    fn a_file_of_another_key_is_not_continued() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("heads");
        let mut file = open(&path).unwrap();
        file.append(vec![head("org-a", 1)], Timestamp::UNIX_EPOCH)
            .unwrap();
        drop(file);
        let other = HeadsFile::open(&path, HeadKey::from_seed(&[8; 32]));
        assert!(matches!(other, Err(HeadsError::Foreign { .. })));
    }
}
