//! The unpacker of uploaded tar.gz archives, and the same rules without writing.
//!
//! An archive is written by a stranger. Only directories, regular files and relative symbolic
//! links that stay inside are taken; everything else refuses the whole archive and names the
//! entry. Some entries are dropped because a run must not bring them: the version control
//! directory, state files, saved plans, `.terraform` except its modules, and the `._` files of macOS.
//!
//! Inflated bytes are counted below the tar reader, so that headers and padding count. Memory is
//! bounded by the number of entries and the longest path. Symbolic links are made last, so no
//! entry can be written through one. A `..` in a link's target may only lead it: then each `..`
//! starts from a real directory, and no chain of links can climb out.

mod directory;
mod plan_file;
mod rules;
mod walk;

use std::io::Read;
use std::path::Path;

use thiserror::Error;

use walk::{Nothing, walk};

/// Bounds of one archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlugLimits {
    /// Bytes of the archive itself.
    pub packed_bytes: u64,
    /// Bytes after decompression, headers and padding included.
    pub unpacked_bytes: u64,
    /// Entries, directories that only occur inside a path included.
    pub entries: u32,
    /// Parts of a path.
    pub depth: usize,
    /// Bytes of one part of a path.
    pub name_bytes: usize,
    /// Bytes of a path or of a link's target.
    pub path_bytes: usize,
}

impl Default for SlugLimits {
    fn default() -> Self {
        Self {
            packed_bytes: 100 << 20,
            unpacked_bytes: 256 << 20,
            entries: 20_000,
            depth: 64,
            name_bytes: 255,
            path_bytes: 1024,
        }
    }
}

/// What an archive holds after the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlugSummary {
    /// Regular files taken.
    pub files: u32,
    /// Directories taken, those that only occur inside a path included.
    pub directories: u32,
    /// Symbolic links taken.
    pub symlinks: u32,
    /// Entries left out.
    pub dropped: u32,
    /// Bytes of the archive.
    pub packed_bytes: u64,
    /// Bytes after decompression.
    pub unpacked_bytes: u64,
}

/// The archive is refused.
#[derive(Debug, Error)]
pub enum SlugRefusal {
    /// One entry breaks a rule.
    #[error("entry `{entry}`: {rule}")]
    Entry {
        /// Its name, made safe to print and cut to a readable length.
        entry: String,
        /// The rule.
        rule: Rule,
    },
    /// The archive as a whole breaks a rule.
    #[error("{0}")]
    Archive(Rule),
    /// The archive is damaged or is not a gzip-compressed tar.
    #[error("not a readable tar.gz archive: {0}")]
    Unreadable(String),
    /// A file could not be written; not the archive's fault.
    #[error("cannot write `{path}`: {error}")]
    Write {
        /// Path below the directory.
        path: String,
        /// Why.
        error: std::io::Error,
    },
}

/// A rule that an archive can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "each message says it")]
pub enum Rule {
    #[error("the archive is larger than allowed")]
    PackedSize,
    #[error("the archive inflates to more than allowed")]
    UnpackedSize,
    #[error("the archive has too many entries")]
    TooMany,
    #[error("the path is absolute")]
    Absolute,
    #[error("the path leads out of the archive")]
    Climbs,
    #[error("the path has too many parts")]
    TooDeep,
    #[error("the name is too long")]
    NameTooLong,
    #[error("the name is not UTF-8")]
    NotUtf8,
    #[error("the name contains control characters")]
    ControlCharacter,
    #[error("the name is empty")]
    EmptyName,
    #[error("the name occurs twice")]
    Duplicate,
    #[error("the path goes through a file or a link")]
    ThroughFile,
    #[error("only directories, regular files and symbolic links are allowed")]
    Kind,
    #[error("hard links are not allowed")]
    HardLink,
    #[error("the link's target is absolute")]
    LinkAbsolute,
    #[error("the link's target leads out of the archive")]
    LinkClimbs,
    #[error("the link's target may have `..` only at its start")]
    LinkClimbsLate,
    #[error("sparse files are not allowed")]
    Sparse,
    #[error("an extended header is damaged or too long")]
    ExtendedHeader,
}

/// Checks an archive without writing anything. Reads it once, to its end.
pub fn inspect(archive: impl Read, limits: SlugLimits) -> Result<SlugSummary, SlugRefusal> {
    walk(archive, limits, &mut Nothing)
}

/// Unpacks an archive into an existing directory.
///
/// On a refusal what was written so far stays; the caller discards the directory.
pub fn unpack(
    archive: impl Read,
    directory: &Path,
    limits: SlugLimits,
) -> Result<SlugSummary, SlugRefusal> {
    let mut target = directory::Directory::open(directory).map_err(|error| SlugRefusal::Write {
        path: String::from("."),
        error,
    })?;
    let summary = walk(archive, limits, &mut target)?;
    target.make_links()?;
    Ok(summary)
}
