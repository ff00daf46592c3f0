//! The key file: one key a line, the current one first, readable by its owner alone.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rand::Rng as _;
use zeroize::Zeroizing;

use super::KeyError;

/// The largest key file that is read: room for some hundred rotations.
const KEY_FILE_BYTES_MAX: u64 = 16 * 1024;

/// The keys of a file.
pub(super) struct Keys {
    pub current: Zeroizing<[u8; 32]>,
    pub older: Vec<Zeroizing<[u8; 32]>>,
}

/// The secret bytes of a key file that is used for something else than objects: those of its first
/// line. A file that is not there is made.
pub fn secret_load_or_create(path: &Path) -> Result<Zeroizing<[u8; 32]>, KeyError> {
    load_or_create(path).map(|keys| keys.current)
}

pub(super) fn load_or_create(path: &Path) -> Result<Keys, KeyError> {
    let failed = |source| KeyError::File {
        path: path.to_owned(),
        source,
    };
    match File::open(path) {
        Ok(file) => load(path, file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(path).map_err(failed)?;
            // Another process may have been faster: what is in the file counts.
            load(path, File::open(path).map_err(failed)?)
        }
        Err(error) => Err(failed(error)),
    }
}

fn load(path: &Path, file: File) -> Result<Keys, KeyError> {
    let failed = |source| KeyError::File {
        path: path.to_owned(),
        source,
    };
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyError::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    let mut text = Zeroizing::new(String::new());
    file.take(KEY_FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(failed)?;
    parse(&text).ok_or_else(|| KeyError::Malformed {
        path: path.to_owned(),
    })
}

fn parse(text: &str) -> Option<Keys> {
    let mut keys = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut key = Zeroizing::new([0; 32]);
            hex::decode_to_slice(line, key.as_mut_slice())
                .ok()
                .map(|()| key)
        });
    let current = keys.next()??;
    let older = keys.collect::<Option<Vec<_>>>()?;
    Some(Keys { current, older })
}

/// Makes a file with one fresh key, whole or not at all, and never over another one.
fn create(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)?;
    let mut key = Zeroizing::new([0_u8; 32]);
    rand::rng().fill(key.as_mut_slice());
    let text = Zeroizing::new(hex::encode(key.as_slice()));
    let mut file = tempfile::Builder::new()
        .prefix(".key-")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(&directory)?;
    writeln!(file, "{}", *text)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => fs::File::open(&directory)?.sync_all(),
        Err(failure) if failure.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(failure) => Err(failure.error),
    }
}
