//! The paths of one cluster, and what is done to the directory itself.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::Error;

/// Nobody else may enter: the only mode besides 0750 that the server accepts.
pub(crate) const PRIVATE_DIR: u32 = 0o700;

/// The paths of a cluster; all of them absolute, all beside the data directory.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) parent: PathBuf,
    pub(crate) data_dir: PathBuf,
    pub(crate) lock: PathBuf,
    pub(crate) socket_dir: PathBuf,
    pub(crate) log: PathBuf,
    name: OsString,
}

impl Layout {
    /// Fixes the paths and makes the parent directory.
    pub(crate) fn of(data_dir: &Path) -> Result<Self, Error> {
        let data_dir =
            std::path::absolute(data_dir).map_err(Error::io("find the directory of", data_dir))?;
        let (Some(parent), Some(name)) = (data_dir.parent(), data_dir.file_name()) else {
            return Err(Error::NotACluster(data_dir));
        };
        DirBuilder::new()
            .recursive(true)
            .mode(PRIVATE_DIR)
            .create(parent)
            .map_err(Error::io("make", parent))?;
        let beside = |suffix: &str| {
            let mut name = name.to_owned();
            name.push(suffix);
            parent.join(name)
        };
        Ok(Self {
            lock: beside(".lock"),
            socket_dir: beside(".socket"),
            log: parent.join("postgres.log"),
            parent: parent.to_owned(),
            name: name.to_owned(),
            data_dir,
        })
    }

    /// The start of the names under which clusters are made before they get their real one.
    pub(crate) fn half_made_prefix(&self) -> OsString {
        let mut prefix = self.name.clone();
        prefix.push(".tmp-");
        prefix
    }

    /// The major version that the cluster records, or nothing if there is no cluster yet.
    pub(crate) fn recorded_major(&self) -> Result<Option<String>, Error> {
        let file = self.data_dir.join("PG_VERSION");
        match fs::read_to_string(&file) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.refuse_other_content().map(|()| None)
            }
            Err(error) => Err(Error::io("read", &file)(error)),
        }
    }

    fn refuse_other_content(&self) -> Result<(), Error> {
        match fs::read_dir(&self.data_dir).map(|mut entries| entries.next().is_none()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::NotACluster(self.data_dir.clone())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::io("read", &self.data_dir)(error)),
        }
    }

    /// Removes clusters that a killed predecessor did not finish. Only the lock's holder may call.
    pub(crate) fn remove_half_made(&self) -> Result<(), Error> {
        let prefix = self.half_made_prefix();
        let entries = fs::read_dir(&self.parent).map_err(Error::io("read", &self.parent))?;
        for entry in entries {
            let entry = entry.map_err(Error::io("read", &self.parent))?;
            let name = entry.file_name();
            if name
                .as_encoded_bytes()
                .starts_with(prefix.as_encoded_bytes())
            {
                let path = entry.path();
                tracing::warn!(path = %path.display(), "Removing a half-made cluster");
                fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
            }
        }
        Ok(())
    }

    /// A copy or a checkout can leave the directory open to others, which the server refuses.
    pub(crate) fn make_private(&self) -> Result<(), Error> {
        fs::set_permissions(&self.data_dir, Permissions::from_mode(PRIVATE_DIR))
            .map_err(Error::io("set the mode of", &self.data_dir))
    }
}
