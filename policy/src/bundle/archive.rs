//! Reads an uploaded `tar.gz` into texts by path, within bounds. Nothing touches a file system.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use tar::{Archive, Entry, EntryType};

use super::{BundleError, CONTENT_BYTES_MAX, FILES_MAX, PATH_CHARS_MAX};

/// The largest upload, compressed.
pub const ARCHIVE_BYTES_MAX: usize = 1024 * 1024;
/// The largest tar inside it: the contents, and for each file its headers and padding.
const TAR_BYTES_MAX: usize = 2 * CONTENT_BYTES_MAX;

const ONLY_FILES: &str = "Put only regular files and directories into the archive";
const NAMES: &str = "Use letters, digits, `_`, `-` and `.` in names, no name that begins with a dot, \
                     `/` between them, and at most 100 characters";

pub(super) type Files = BTreeMap<String, String>;

pub(super) fn read(upload: &[u8]) -> Result<Files, BundleError> {
    if upload.len() > ARCHIVE_BYTES_MAX {
        return Err(too_large("the upload", ARCHIVE_BYTES_MAX));
    }
    let mut archive = Archive::new(Cursor::new(inflate(upload)?));
    let mut files = Files::new();
    let mut bytes = 0;
    for entry in archive.entries().map_err(|error| invalid(&error))? {
        let mut entry = entry.map_err(|error| invalid(&error))?;
        let Some(path) = file_path(&entry)? else {
            continue;
        };
        if files.len() == FILES_MAX {
            return Err(BundleError::TooManyFiles { limit: FILES_MAX });
        }
        let text = content(&mut entry, &path)?;
        bytes += text.len();
        if bytes > CONTENT_BYTES_MAX {
            return Err(too_large("the unpacked bundle", CONTENT_BYTES_MAX));
        }
        if files.insert(path.clone(), text).is_some() {
            let problem = "it stands in the archive twice";
            return Err(BundleError::file(&path, problem, "Leave one of them out"));
        }
    }
    Ok(files)
}

fn inflate(upload: &[u8]) -> Result<Vec<u8>, BundleError> {
    let limit = u64::try_from(TAR_BYTES_MAX).unwrap_or(u64::MAX);
    let mut tar = Vec::new();
    flate2::read::GzDecoder::new(upload)
        .take(limit.saturating_add(1))
        .read_to_end(&mut tar)
        .map_err(|error| invalid(&error))?;
    if tar.len() > TAR_BYTES_MAX {
        return Err(too_large("the unpacked archive", TAR_BYTES_MAX));
    }
    Ok(tar)
}

/// The path of a regular file; nothing for what carries no content.
fn file_path<R: Read>(entry: &Entry<'_, R>) -> Result<Option<String>, BundleError> {
    let raw = entry.path_bytes();
    let shown = String::from_utf8_lossy(&raw);
    match entry.header().entry_type() {
        EntryType::Directory | EntryType::XGlobalHeader => return Ok(None),
        EntryType::Regular => {}
        EntryType::Symlink | EntryType::Link => {
            return Err(BundleError::file(&shown, "it is a link", ONLY_FILES));
        }
        _ => {
            return Err(BundleError::file(
                &shown,
                "it is not a regular file",
                ONLY_FILES,
            ));
        }
    }
    let path = shown.strip_prefix("./").unwrap_or(&shown);
    if !is_path(path) {
        return Err(BundleError::file(&shown, "its name is not allowed", NAMES));
    }
    Ok(Some(path.to_owned()))
}

/// Whether a path is one that every system and every reader of a record understands alike.
pub(super) fn is_path(path: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let name = |name: &str| !name.is_empty() && !name.starts_with('.') && name.bytes().all(allowed);
    path.len() <= PATH_CHARS_MAX && path.split('/').all(name)
}

fn content<R: Read>(entry: &mut Entry<'_, R>, path: &str) -> Result<String, BundleError> {
    let mut bytes = Vec::new();
    // The tar is in memory already, so an entry cannot be longer than its bound.
    entry
        .read_to_end(&mut bytes)
        .map_err(|error| invalid(&error))?;
    if u64::try_from(bytes.len()) != Ok(entry.size()) {
        return Err(BundleError::file(
            path,
            "it is cut off",
            "Make the archive again",
        ));
    }
    String::from_utf8(bytes)
        .map_err(|_| BundleError::file(path, "it is not UTF-8 text", "Save it as UTF-8"))
}

fn invalid(error: &std::io::Error) -> BundleError {
    BundleError::Archive {
        detail: crate::text::plain(&error.to_string(), 200),
    }
}

fn too_large(what: &str, limit: usize) -> BundleError {
    BundleError::TooLarge {
        what: what.to_owned(),
        limit,
    }
}
