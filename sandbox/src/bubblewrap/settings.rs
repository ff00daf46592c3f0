//! Where the driver works and how much it may run.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::FlockOperation;

use crate::Digest;
use crate::driver::{SweepError, Unavailable};

/// First release with `--disable-userns`.
const BWRAP_VERSION_MIN: (u32, u32) = (0, 8);
/// Where `bwrap` is looked for when no path is set.
const BWRAP_PLACES: [&str; 3] = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];
/// Most slots; each takes one user number.
const SLOTS_MAX: u16 = 256;
/// Digits of the runtime directory's digest in the name of a group.
const GROUP_DIGEST_LENGTH: usize = 12;
/// First part of the names of working directories, by which leftovers are known.
const WORK_PREFIX: &str = "sandbox-";

/// Settings of the [`Bubblewrap`](super::Bubblewrap) driver.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Names the cgroups of this runner: 1 to 40 of `a-z`, `0-9` and `-`. Leftovers are found by
    /// it and the runtime directory, so both stay the same over restarts.
    pub runner_name: String,
    /// A directory for artifacts in transit, private to the runner; only one driver at a time can
    /// have it.
    pub runtime_directory: PathBuf,
    /// `bwrap`, when it is not in a usual place.
    pub bwrap: Option<PathBuf>,
    /// The binary that calls [`run_helper_if_asked`](crate::run_helper_if_asked); normally the
    /// running one.
    pub helper: PathBuf,
    /// The first slot's host user; the others follow. Unused when the runner is not root. Runners
    /// on one machine should have ranges of their own: the limit on processes of a user counts
    /// over all of them.
    pub base_uid: u32,
    /// How many sandboxes may run at the same time.
    pub slots: u16,
}

impl Settings {
    /// Usual settings with the running binary as helper.
    pub fn new(runner_name: impl Into<String>, runtime_directory: PathBuf) -> io::Result<Self> {
        Ok(Self {
            runner_name: runner_name.into(),
            runtime_directory,
            bwrap: None,
            helper: std::env::current_exe()?,
            base_uid: 200_000,
            slots: 8,
        })
    }

    pub(super) fn check(&self) -> Result<(), Unavailable> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let name = &self.runner_name;
        if !(1..=40).contains(&name.len()) || !name.bytes().all(plain) {
            return Err(unavailable(
                "settings",
                "the runner name is 1 to 40 of a-z, 0-9 and `-`",
            ));
        }
        if self.slots == 0 || self.slots > SLOTS_MAX {
            return Err(unavailable("settings", "the number of slots is 1 to 256"));
        }
        // Below this, a slot could be a system or human account.
        if self.base_uid < 100_000 || self.base_uid.checked_add(SLOTS_MAX.into()).is_none() {
            return Err(unavailable(
                "settings",
                "the first slot user must be 100000 or above",
            ));
        }
        Ok(())
    }

    pub(super) fn find_bwrap(&self) -> Result<PathBuf, Unavailable> {
        let usual = BWRAP_PLACES.iter().map(Path::new);
        let found = match &self.bwrap {
            Some(path) => Some(path.as_path()).filter(|path| path.is_file()),
            None => usual.into_iter().find(|path| path.is_file()),
        };
        let path = found.ok_or_else(|| {
            unavailable(
                "bwrap",
                "not found; install the package `bubblewrap`, 0.8.0 or newer",
            )
        })?;
        bwrap_version(path)?;
        Ok(path.to_owned())
    }

    /// Takes the runtime directory for this process until the file is closed.
    pub(super) fn lock_runtime_directory(&self) -> Result<File, Unavailable> {
        let failed = |error: io::Error| {
            let path = self.runtime_directory.display();
            unavailable("runtime directory", &format!("{path}: {error}"))
        };
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&self.runtime_directory)
            .map_err(failed)?;
        let lock = File::create(self.runtime_directory.join("lock")).map_err(failed)?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            let path = self.runtime_directory.display();
            unavailable(
                "runtime directory",
                &format!("{path} is in use by another runner"),
            )
        })?;
        Ok(lock)
    }

    /// Name of this runner's control groups. The runtime directory is part of it, since that is
    /// what only one process can have: two runners of one name never touch each other's groups.
    pub(super) fn group_name(&self) -> Result<String, Unavailable> {
        let path = self.runtime_directory.canonicalize();
        let path = path.map_err(|error| unavailable("runtime directory", &error.to_string()))?;
        let digest = Digest::of(path.as_os_str().as_encoded_bytes()).to_string();
        Ok(format!(
            "{}-{}",
            self.runner_name,
            &digest[..GROUP_DIGEST_LENGTH]
        ))
    }

    /// A fresh private directory for what comes out of one sandbox.
    pub(super) fn work_directory(&self) -> io::Result<tempfile::TempDir> {
        tempfile::Builder::new()
            .prefix(WORK_PREFIX)
            .tempdir_in(&self.runtime_directory)
    }

    /// Removes what an earlier life left. Must run before the first launch of this life.
    pub(super) fn sweep_runtime_directory(&self) -> Result<u32, SweepError> {
        let directory = &self.runtime_directory;
        let at = |path: &Path| {
            let path = path.to_owned();
            |source| SweepError { path, source }
        };
        let mut swept = 0;
        for entry in fs::read_dir(directory).map_err(at(directory))? {
            let entry = entry.map_err(at(directory))?;
            if entry.file_name().to_string_lossy().starts_with(WORK_PREFIX) {
                fs::remove_dir_all(entry.path()).map_err(at(&entry.path()))?;
                swept += 1;
            }
        }
        Ok(swept)
    }
}

/// The version text, when it is new enough.
pub(super) fn bwrap_version(path: &Path) -> Result<String, Unavailable> {
    let output = Command::new(path).arg("--version").env_clear().output();
    let output = output.map_err(|error| {
        unavailable(
            "bwrap",
            &format!("{} cannot be run: {error}", path.display()),
        )
    })?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let numbers = text.rsplit(' ').next().unwrap_or_default();
    let mut numbers = numbers
        .split('.')
        .map_while(|number| number.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) >= BWRAP_VERSION_MIN => Ok(text),
        _ => Err(unavailable(
            "bwrap",
            &format!("`{text}` is too old; 0.8.0 is needed"),
        )),
    }
}

pub(super) fn unavailable(item: &str, detail: &str) -> Unavailable {
    Unavailable {
        item: item.to_owned(),
        detail: detail.to_owned(),
    }
}
