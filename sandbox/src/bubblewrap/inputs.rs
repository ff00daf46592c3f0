//! Opening a spec's files and directories before anything is launched.
//!
//! Inputs go inside as open descriptors, so they may be private to the runner on the host.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::driver::LaunchError;
use crate::spec::{InputSource, SandboxSpec};

pub(super) fn open_all(spec: &SandboxSpec) -> Result<Vec<OwnedFd>, LaunchError> {
    for directory in &spec.directories {
        let refused = |source| LaunchError::Input {
            name: directory.inside.clone(),
            source,
        };
        if !directory.host.metadata().map_err(refused)?.is_dir() {
            return Err(refused(io::ErrorKind::NotADirectory.into()));
        }
    }
    let open = |input: &crate::Input| {
        let opened = match &input.source {
            InputSource::File(path) => open_regular(path),
            InputSource::Bytes(bytes) => in_memory("input", bytes),
        };
        opened.map_err(|source| LaunchError::Input {
            name: input.name.clone(),
            source,
        })
    };
    spec.inputs.iter().map(open).collect()
}

fn open_regular(path: &Path) -> io::Result<OwnedFd> {
    let file = File::open(path)?;
    if file.metadata()?.is_file() {
        Ok(file.into())
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ))
    }
}

/// A file without a name, positioned at its start.
pub(super) fn in_memory(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    io::Seek::rewind(&mut file)?;
    Ok(file.into())
}
