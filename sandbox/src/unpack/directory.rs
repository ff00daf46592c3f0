//! Writing below one open directory, never through a link.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::walk::Target;
use super::{Rule, SlugRefusal};

/// A directory that an archive is unpacked into.
pub(super) struct Directory {
    root: OwnedFd,
    current: Option<File>,
    links: Vec<(String, String)>,
}

impl Directory {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, path, flags, Mode::empty())?;
        Ok(Self {
            root,
            current: None,
            links: Vec::new(),
        })
    }

    /// Makes the links, after everything else was written.
    pub(super) fn make_links(&mut self) -> Result<(), SlugRefusal> {
        for (path, target) in std::mem::take(&mut self.links) {
            let made = symlinkat(target.as_str(), &self.root, path.as_str());
            made.map_err(|error| SlugRefusal::Write {
                path: path.clone(),
                error: error.into(),
            })?;
            // The rules on targets already keep links inside; ask the kernel as well.
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            if openat2(&self.root, path.as_str(), flags, Mode::empty(), resolve)
                .is_err_and(|error| error == Errno::XDEV)
            {
                return Err(SlugRefusal::Entry {
                    entry: path,
                    rule: Rule::LinkClimbs,
                });
            }
        }
        Ok(())
    }

    fn open_below(&self, path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        openat2(&self.root, path, flags | OFlags::CLOEXEC, mode, resolve)
    }
}

impl Target for Directory {
    fn directory(&mut self, path: &str) -> io::Result<()> {
        match mkdirat(&self.root, path, Mode::from_raw_mode(0o755)) {
            Ok(()) => Ok(()),
            // Another input can have made it; it must really be a directory.
            Err(Errno::EXIST) => {
                self.open_below(path, OFlags::DIRECTORY | OFlags::PATH, Mode::empty())?;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn file(&mut self, path: &str, executable: bool) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mode = Mode::from_raw_mode(if executable { 0o755 } else { 0o644 });
        self.current = Some(File::from(self.open_below(path, flags, mode)?));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.current {
            Some(file) => file.write_all(bytes),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn discard(&mut self, path: &str) -> io::Result<()> {
        self.current = None;
        Ok(unlinkat(&self.root, path, AtFlags::empty())?)
    }

    fn symlink(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.links.push((path.to_owned(), target.to_owned()));
        Ok(())
    }
}
