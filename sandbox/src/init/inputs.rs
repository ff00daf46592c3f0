//! Verifying and placing the inputs before the first step.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::supervisor::{Next, Shared};
use crate::Digest;
use crate::digest::Hasher;
use crate::unpack::{self, SlugLimits};
use crate::wire::{Job, JobInput, JobPlacement, Report};

/// Bytes read at a time.
const CHUNK: usize = 64 * 1024;

/// Places all inputs in order; stops at the first that is not what it should be.
pub(super) fn place_all(shared: &Shared, job: &Job, fds: Vec<OwnedFd>) -> io::Result<Next> {
    for ((index, input), fd) in (0_u16..).zip(&job.inputs).zip(fds) {
        let mut file = File::from(fd);
        if let Some(expected) = input.expected {
            let found = digest_of(&mut file)?;
            if found != expected {
                shared.report(&Report::InputMismatch {
                    input: index,
                    found,
                })?;
                return Ok(Next::Stop);
            }
        }
        if let Err(reason) = place(input, file) {
            shared.report(&Report::InputRefused {
                input: index,
                reason: &reason,
            })?;
            return Ok(Next::Stop);
        }
    }
    Ok(Next::Continue)
}

fn digest_of(file: &mut File) -> io::Result<Digest> {
    file.rewind()?;
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; CHUNK];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            read => hasher.update(&buffer[..read]),
        }
    }
}

fn place(input: &JobInput, mut file: File) -> Result<(), String> {
    file.rewind().map_err(|error| error.to_string())?;
    match &input.placement {
        JobPlacement::File { path, mode } => {
            copy(&mut file, Path::new(path), *mode).map_err(|error| format!("{path}: {error}"))
        }
        JobPlacement::Unpack { directory } => {
            make_directory(Path::new(directory))
                .map_err(|error| format!("{directory}: {error}"))?;
            let unpacked = unpack::unpack(file, Path::new(directory), SlugLimits::default());
            unpacked.map(|_| ()).map_err(|refusal| refusal.to_string())
        }
    }
}

fn copy(from: &mut File, path: &Path, mode: u32) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        make_directory(parent)?;
    }
    let mut to = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    io::copy(from, &mut to)?;
    to.set_permissions(std::fs::Permissions::from_mode(mode))
}

fn make_directory(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)
}
