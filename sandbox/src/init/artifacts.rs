//! Sending files out after a step.

use std::fs::File;
use std::io;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

use super::step::pump_artifact;
use super::supervisor::{Next, Shared};
use crate::wire::{Job, Report};

/// Sends the artifacts that belong to this step, in the order of the job.
pub(super) fn collect(shared: &Shared, job: &Job, step: u16, continues: bool) -> io::Result<Next> {
    for (index, artifact) in (0_u16..).zip(&job.artifacts) {
        let (Some(path), true) = (&artifact.path, artifact.after == step) else {
            continue;
        };
        match open_regular(path) {
            Some(file) if pump_artifact(shared, index, artifact.bytes_max, &file)? => {
                return Ok(Next::Stop);
            }
            None if artifact.required && continues => {
                shared.report(&Report::ArtifactMissing { artifact: index })?;
                return Ok(Next::Stop);
            }
            Some(_) | None => {}
        }
    }
    Ok(Next::Continue)
}

/// A step chose what lies at the path: no link is followed and nothing that could block is read.
fn open_regular(path: &str) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(CWD, path, flags, Mode::empty(), resolve).ok()?;
    let kind = FileType::from_raw_mode(fstat(&file).ok()?.st_mode);
    (kind == FileType::RegularFile).then(|| File::from(file))
}
