//! Artifacts on their way to private files of the host.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use crate::digest::Hasher;
use crate::outcome::ReceivedArtifact;
use crate::wire::ArtifactFacts;

/// Why bytes were not taken.
pub(super) enum Refused {
    TooLarge,
    Twice,
    Host(io::Error),
}

enum Progress {
    Open(Partial),
    Finished,
}

struct Partial {
    file: File,
    path: PathBuf,
    bytes: u64,
    hasher: Hasher,
}

/// The artifacts of one sandbox, by index.
pub(super) struct Files {
    directory: Arc<TempDir>,
    limits: Vec<(Arc<str>, u64)>,
    progress: HashMap<u16, Progress>,
}

impl Files {
    pub(super) fn new(directory: Arc<TempDir>, artifacts: &[ArtifactFacts]) -> Self {
        let limits = artifacts
            .iter()
            .map(|facts| (Arc::clone(&facts.name), facts.bytes_max));
        Self {
            directory,
            limits: limits.collect(),
            progress: HashMap::new(),
        }
    }

    /// Adds bytes to an artifact whose index the caller has checked.
    pub(super) fn append(&mut self, artifact: u16, bytes: &[u8]) -> Result<(), Refused> {
        if !self.progress.contains_key(&artifact) {
            let partial = self.open(artifact).map_err(Refused::Host)?;
            self.progress.insert(artifact, Progress::Open(partial));
        }
        let bytes_max = self.limits[usize::from(artifact)].1;
        let Some(Progress::Open(partial)) = self.progress.get_mut(&artifact) else {
            return Err(Refused::Twice);
        };
        partial.bytes += bytes.len() as u64;
        if partial.bytes > bytes_max {
            return Err(Refused::TooLarge);
        }
        partial.hasher.update(bytes);
        partial.file.write_all(bytes).map_err(Refused::Host)
    }

    pub(super) fn finish(&mut self, artifact: u16) -> io::Result<ReceivedArtifact> {
        match self.progress.insert(artifact, Progress::Finished) {
            Some(Progress::Open(partial)) => Ok(ReceivedArtifact {
                name: Arc::clone(&self.limits[usize::from(artifact)].0),
                path: partial.path,
                bytes: partial.bytes,
                digest: partial.hasher.finish(),
                directory: Arc::clone(&self.directory),
            }),
            Some(Progress::Finished) | None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// The file's name is the index: a name from the spec need not be a good file name.
    fn open(&self, artifact: u16) -> io::Result<Partial> {
        let path = self.directory.path().join(artifact.to_string());
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Partial {
            file,
            path,
            bytes: 0,
            hasher: Hasher::new(),
        })
    }
}
