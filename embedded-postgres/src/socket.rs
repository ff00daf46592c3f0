//! The directory of the server's socket. Who can enter it is the database's superuser, so it must be
//! ours alone.

use std::fs::{self, DirBuilder, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::layout::{Layout, PRIVATE_DIR};
use crate::{Error, Settings};

/// A socket path has 107 bytes, of which `/.s.PGSQL.5432` takes 14.
const SOCKET_DIR_BYTES_MAX: usize = 93;

/// What the server keeps beside its socket.
const SOCKET_LOCK: &str = ".s.PGSQL.5432.lock";

/// A directory that only we can enter, short enough for a socket and plain enough for a URL.
#[derive(Debug)]
pub(crate) struct SocketDir {
    path: PathBuf,
    origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The operator's: it may be in other use too.
    Given,
    /// Ours, beside the data directory.
    Beside,
    /// Ours, in a directory for the whole machine; not to be left behind.
    Short,
}

impl SocketDir {
    /// Makes the directory ready for a server. Only the lock's holder may call this, once no server
    /// runs any more.
    pub(crate) fn prepare(settings: &Settings, layout: &Layout) -> Result<Self, Error> {
        let (wanted, origin) = match &settings.socket_dir {
            Some(dir) => {
                let dir = std::path::absolute(dir).map_err(Error::io("find", dir))?;
                (dir, Origin::Given)
            }
            None => (layout.socket_dir.clone(), Origin::Beside),
        };
        let socket = if fits(&wanted) {
            Self {
                path: wanted,
                origin,
            }
        } else {
            Self {
                path: short_dir(settings, layout)?,
                origin: Origin::Short,
            }
        };
        make_private(&socket.path, socket.origin != Origin::Given)?;
        socket.remove_stale_lock(&layout.data_dir)?;
        Ok(socket)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The socket has a lock file with a pid, which hinders a start as `postmaster.pid` does when
    /// that pid is alive for another reason. In a directory of the operator's it may belong to
    /// another server; its second line says to which.
    fn remove_stale_lock(&self, data_dir: &Path) -> Result<(), Error> {
        let lock = self.path.join(SOCKET_LOCK);
        let text = match fs::read_to_string(&lock) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Error::io("read", &lock)(error)),
        };
        let is_this_servers = text.lines().nth(1).map(Path::new) == Some(data_dir);
        if self.origin == Origin::Given && !is_this_servers {
            return Ok(());
        }
        fs::remove_file(&lock).map_err(Error::io("remove", &lock))
    }
}

impl Drop for SocketDir {
    fn drop(&mut self) {
        if self.origin == Origin::Short
            && let Err(error) = fs::remove_dir(&self.path)
        {
            tracing::debug!(%error, path = %self.path.display(), "Left the socket directory behind");
        }
    }
}

/// Length apart, a URL is text, and libpq takes a comma in it for the end of one host of several.
fn fits(dir: &Path) -> bool {
    dir.as_os_str().len() <= SOCKET_DIR_BYTES_MAX
        && dir.to_str().is_some_and(|text| !text.contains(','))
}

/// A short name that is the same at every start, so that a killed supervisor leaves one at most.
fn short_dir(settings: &Settings, layout: &Layout) -> Result<PathBuf, Error> {
    let mut hasher = DefaultHasher::new();
    nix::unistd::geteuid().as_raw().hash(&mut hasher);
    layout.data_dir.as_os_str().as_bytes().hash(&mut hasher);
    let base = settings.runtime_dir.as_deref().unwrap_or(Path::new("/tmp"));
    let dir = base.join(format!("stackship-pg-{:016x}", hasher.finish()));
    if fits(&dir) {
        Ok(dir)
    } else {
        Err(Error::SocketDirUnfit {
            dir,
            max: SOCKET_DIR_BYTES_MAX,
        })
    }
}

/// Makes the directory, or makes sure that the one found is really ours: in `/tmp` anybody could
/// have put something under that name first.
fn make_private(dir: &Path, repair: bool) -> Result<(), Error> {
    match DirBuilder::new().mode(PRIVATE_DIR).create(dir) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(Error::io("make", dir)(error)),
    }
    let found = fs::symlink_metadata(dir).map_err(Error::io("look at", dir))?;
    let refuse = |why| {
        Err(Error::SocketDirNotPrivate {
            dir: dir.to_owned(),
            why,
        })
    };
    if !found.is_dir() {
        return refuse("is not a directory");
    }
    if found.uid() != nix::unistd::geteuid().as_raw() {
        return refuse("belongs to another user");
    }
    if found.mode() & 0o777 == PRIVATE_DIR {
        return Ok(());
    }
    if !repair {
        return refuse("is open to other users");
    }
    fs::set_permissions(dir, Permissions::from_mode(PRIVATE_DIR))
        .map_err(Error::io("set the mode of", dir))
}

/// The value of `unix_socket_directories`, which is a list: quoted, so that a space at the end or
/// a quote stays part of the path.
pub(crate) fn as_list_setting(dir: &Path) -> String {
    format!("\"{}\"", dir.display().to_string().replace('"', "\"\""))
}

/// A URL that both sqlx and libpq understand. Port and `sslmode` are spelled out because both would
/// otherwise take them from `PGPORT` and `PGSSLMODE` of the environment.
pub(crate) fn url(role: &str, database: &str, socket_dir: &Path) -> String {
    format!(
        "postgres://{}@localhost:5432/{}?host={}&sslmode=disable",
        percent_encode(role.as_bytes(), b""),
        percent_encode(database.as_bytes(), b""),
        percent_encode(socket_dir.as_os_str().as_bytes(), b"/"),
    )
}

fn percent_encode(bytes: &[u8], also_plain: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also_plain.contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            for digit in [byte >> 4, byte & 0xf] {
                text.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_encodes_what_a_url_cannot_carry() {
        assert_eq!(
            url("stackship", "a b/c", Path::new("/data/ü & co")),
            "postgres://stackship@localhost:5432/a%20b%2Fc?host=/data/%C3%BC%20%26%20co&sslmode=disable"
        );
    }

    #[test]
    fn ninety_three_bytes_fit_and_ninety_four_do_not() {
        let path = |bytes: usize| PathBuf::from(format!("/{}", "x".repeat(bytes - 1)));
        assert!(fits(&path(93)));
        assert!(!fits(&path(94)));
        assert!(!fits(Path::new("/a,b")), "libpq splits hosts there");
    }

    #[test]
    fn a_directory_named_by_us_is_closed_and_a_named_one_refused() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("socket");
        DirBuilder::new().mode(0o755).create(&dir).unwrap();
        assert!(matches!(
            make_private(&dir, false),
            Err(Error::SocketDirNotPrivate { .. })
        ));
        make_private(&dir, true).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_link_in_the_place_of_the_directory_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let link = parent.path().join("link");
        std::os::unix::fs::symlink(parent.path(), &link).unwrap();
        assert!(matches!(
            make_private(&link, true),
            Err(Error::SocketDirNotPrivate { .. })
        ));
    }
}
