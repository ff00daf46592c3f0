//! Reading an archive entry by entry, with every rule, into a target.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::{self, Read};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::plan_file::PlanScan;
use super::rules::{SlugPath, link_target};
use super::{Rule, SlugLimits, SlugRefusal, SlugSummary};

/// Longest extended header or long name.
const EXTENDED_MAX: u64 = 64 * 1024;
/// Bytes of a file read at a time.
const CHUNK: usize = 64 * 1024;
/// Longest entry name repeated in a refusal.
const SHOWN_MAX: usize = 200;

/// Where entries go. Every path was checked and its parents were made before.
pub(super) trait Target {
    fn directory(&mut self, path: &str) -> io::Result<()>;
    fn file(&mut self, path: &str, executable: bool) -> io::Result<()>;
    /// Adds to the file made last.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Takes the file made last away again.
    fn discard(&mut self, path: &str) -> io::Result<()>;
    fn symlink(&mut self, path: &str, target: &str) -> io::Result<()>;
}

/// The target of an inspection.
pub(super) struct Nothing;

impl Target for Nothing {
    fn directory(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
    fn file(&mut self, _: &str, _: bool) -> io::Result<()> {
        Ok(())
    }
    fn write(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
    fn discard(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
    fn symlink(&mut self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the whole archive.
pub(super) fn walk(
    archive: impl Read,
    limits: SlugLimits,
    target: &mut impl Target,
) -> Result<SlugSummary, SlugRefusal> {
    let packed = Meter::new(limits.packed_bytes);
    let unpacked = Meter::new(limits.unpacked_bytes);
    let meters = [
        (packed.clone(), Rule::PackedSize),
        (unpacked.clone(), Rule::UnpackedSize),
    ];
    // Limits are seen below the readers in between, which report them as their own errors.
    let refuse = |refusal: SlugRefusal| {
        let over = meters.iter().find(|(meter, _)| meter.0.over.get());
        over.map_or(refusal, |(_, rule)| SlugRefusal::Archive(*rule))
    };
    let inflated = MultiGzDecoder::new(Metered {
        inner: archive,
        meter: packed.clone(),
    });
    let mut reader = Metered {
        inner: inflated,
        meter: unpacked.clone(),
    };
    let mut walk = Walk {
        limits,
        target,
        nodes: HashMap::new(),
        entries: 0,
        name: None,
        link: None,
        summary: SlugSummary::default(),
        buffer: vec![0; CHUNK],
    };
    walk.all(&mut reader).map_err(refuse)?;
    // What follows the end mark must still be sound and within the limits.
    io::copy(&mut reader, &mut io::sink())
        .map_err(|error| unreadable(&error))
        .map_err(refuse)?;
    let mut summary = walk.summary;
    summary.packed_bytes = packed.used();
    summary.unpacked_bytes = unpacked.used();
    Ok(summary)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Directory,
    Leaf,
}

struct Walk<'a, T> {
    limits: SlugLimits,
    target: &'a mut T,
    nodes: HashMap<String, Node>,
    entries: u32,
    /// Name and link target for the next entry, from headers of their own.
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    summary: SlugSummary,
    buffer: Vec<u8>,
}

impl<T: Target> Walk<'_, T> {
    fn all(&mut self, reader: &mut impl Read) -> Result<(), SlugRefusal> {
        let mut archive = Archive::new(reader);
        // Raw, because the library would hold extended headers of any length in memory.
        for entry in archive
            .entries()
            .map_err(|error| unreadable(&error))?
            .raw(true)
        {
            let mut entry = entry.map_err(|error| unreadable(&error))?;
            let shown = shown(self.name.as_deref().unwrap_or(&entry.path_bytes()));
            self.entry(&mut entry).map_err(|stop| match stop {
                Stop::Rule(Rule::TooMany) => SlugRefusal::Archive(Rule::TooMany),
                Stop::Rule(rule) => SlugRefusal::Entry { entry: shown, rule },
                Stop::Read(error) => unreadable(&error),
                Stop::Write(error) => SlugRefusal::Write { path: shown, error },
            })?;
        }
        Ok(())
    }

    fn entry<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> Result<(), Stop> {
        self.count()?;
        match entry.header().entry_type() {
            EntryType::XHeader => return self.extended(entry),
            EntryType::XGlobalHeader => return extended_bytes(entry).map(drop),
            EntryType::GNULongName => {
                self.name = Some(without_nul(extended_bytes(entry)?));
                return Ok(());
            }
            EntryType::GNULongLink => {
                self.link = Some(without_nul(extended_bytes(entry)?));
                return Ok(());
            }
            _ => {}
        }
        let name = self
            .name
            .take()
            .unwrap_or_else(|| entry.path_bytes().into_owned());
        let link = self.link.take();
        let Some(path) = SlugPath::parse(&name, &self.limits)? else {
            return Ok(());
        };
        if path.is_dropped() {
            self.summary.dropped += 1;
            return Ok(());
        }
        match entry.header().entry_type() {
            EntryType::Directory => self.directory(&path),
            EntryType::Regular => self.file(&path, entry),
            EntryType::Symlink => {
                let own = entry
                    .header()
                    .link_name_bytes()
                    .unwrap_or_default()
                    .into_owned();
                self.symlink(&path, &link.unwrap_or(own))
            }
            EntryType::Link => Err(Rule::HardLink.into()),
            EntryType::GNUSparse => Err(Rule::Sparse.into()),
            _ => Err(Rule::Kind.into()),
        }
    }

    fn extended<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> Result<(), Stop> {
        let bytes = extended_bytes(entry)?;
        for pair in PaxExtensions::new(&bytes) {
            let pair = pair.map_err(|_| Rule::ExtendedHeader)?;
            match pair.key_bytes() {
                b"path" => self.name = Some(pair.value_bytes().to_vec()),
                b"linkpath" => self.link = Some(pair.value_bytes().to_vec()),
                // Only files larger than any limit here need it, and it would hide the real size.
                b"size" => return Err(Rule::ExtendedHeader.into()),
                key if key.starts_with(b"GNU.sparse") => return Err(Rule::Sparse.into()),
                _ => {}
            }
        }
        Ok(())
    }

    fn directory(&mut self, path: &SlugPath) -> Result<(), Stop> {
        self.parents(path)?;
        match self.nodes.get(path.as_str()) {
            Some(Node::Directory) => Ok(()),
            Some(Node::Leaf) => Err(Rule::Duplicate.into()),
            None => self.make_directory(path.as_str()),
        }
    }

    fn file<R: Read>(&mut self, path: &SlugPath, entry: &mut Entry<'_, R>) -> Result<(), Stop> {
        self.leaf(path)?;
        let executable = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
        self.target
            .file(path.as_str(), executable)
            .map_err(Stop::Write)?;
        let mut scan = PlanScan::default();
        let mut left = entry.size();
        while left > 0 {
            let read = entry.read(&mut self.buffer).map_err(Stop::Read)?;
            if read == 0 {
                return Err(Stop::Read(io::ErrorKind::UnexpectedEof.into()));
            }
            left = left.saturating_sub(read as u64);
            scan.add(&self.buffer[..read]);
            self.target
                .write(&self.buffer[..read])
                .map_err(Stop::Write)?;
        }
        if scan.found() {
            self.summary.dropped += 1;
            return self.target.discard(path.as_str()).map_err(Stop::Write);
        }
        self.summary.files += 1;
        Ok(())
    }

    fn symlink(&mut self, path: &SlugPath, target: &[u8]) -> Result<(), Stop> {
        let target = link_target(path, target, &self.limits)?;
        self.leaf(path)?;
        self.summary.symlinks += 1;
        self.target
            .symlink(path.as_str(), &target)
            .map_err(Stop::Write)
    }

    fn leaf(&mut self, path: &SlugPath) -> Result<(), Stop> {
        self.parents(path)?;
        match self.nodes.insert(path.as_str().to_owned(), Node::Leaf) {
            None => Ok(()),
            Some(_) => Err(Rule::Duplicate.into()),
        }
    }

    fn parents(&mut self, path: &SlugPath) -> Result<(), Stop> {
        for parent in path.parents() {
            match self.nodes.get(parent) {
                Some(Node::Directory) => {}
                Some(Node::Leaf) => return Err(Rule::ThroughFile.into()),
                None => {
                    self.count()?;
                    self.make_directory(parent)?;
                }
            }
        }
        Ok(())
    }

    fn make_directory(&mut self, path: &str) -> Result<(), Stop> {
        self.nodes.insert(path.to_owned(), Node::Directory);
        self.summary.directories += 1;
        self.target.directory(path).map_err(Stop::Write)
    }

    fn count(&mut self) -> Result<(), Stop> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            Err(Rule::TooMany.into())
        } else {
            Ok(())
        }
    }
}

/// Why the walk ends early.
enum Stop {
    Rule(Rule),
    Read(io::Error),
    Write(io::Error),
}

impl From<Rule> for Stop {
    fn from(rule: Rule) -> Self {
        Self::Rule(rule)
    }
}

fn extended_bytes<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, Stop> {
    if entry.size() > EXTENDED_MAX {
        return Err(Rule::ExtendedHeader.into());
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(Stop::Read)?;
    Ok(bytes)
}

fn without_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}

fn unreadable(error: &io::Error) -> SlugRefusal {
    SlugRefusal::Unreadable(error.to_string())
}

fn shown(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    text.chars()
        .flat_map(char::escape_debug)
        .take(SHOWN_MAX)
        .collect()
}

/// Counts bytes, and remembers that there were too many.
#[derive(Clone)]
struct Meter(Rc<Count>);

struct Count {
    max: u64,
    used: Cell<u64>,
    over: Cell<bool>,
}

impl Meter {
    fn new(max: u64) -> Self {
        Self(Rc::new(Count {
            max,
            used: Cell::new(0),
            over: Cell::new(false),
        }))
    }

    fn used(&self) -> u64 {
        self.0.used.get()
    }
}

struct Metered<R> {
    inner: R,
    meter: Meter,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let count = &self.meter.0;
        count.used.set(count.used.get() + read as u64);
        if count.used.get() > count.max {
            count.over.set(true);
            return Err(io::Error::other("too many bytes"));
        }
        Ok(read)
    }
}
