//! Exact OpenTofu releases: from the mirror directory, else from a pinned download. Each is verified
//! once in the life of a runner, before its first use. `PATH` is never looked at.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use stackship_domain::{Sha256Digest, TofuVersion};
use tokio::sync::Mutex;

use crate::ToolSettings;
use crate::control_plane::http_client;

/// The largest release archive, and the largest program in one.
const ARCHIVE_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// For one download.
const DOWNLOAD_TIME_MAX: Duration = Duration::from_mins(10);
/// The program's name in the mirror, in an archive and in a list of sums.
const PROGRAM: &str = "tofu";
const SUMS: &str = "SHA256SUMS";
/// The largest list of sums that is read.
const SUMS_BYTES_MAX: u64 = 64 * 1024;

/// Why a release cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It is nowhere to be had.
    #[error(
        "OpenTofu {version} is not in the runner's mirror and no SHA-256 of its release archive is configured; put \
         it into the mirror as `{version}/tofu` with `{version}/SHA256SUMS`, or configure the digest"
    )]
    Absent {
        /// The release.
        version: TofuVersion,
    },
    /// What is there is not what its list of sums says.
    #[error(
        "OpenTofu {version} in the runner's {place} is not what its SHA256SUMS says; it is not used"
    )]
    Mismatch {
        /// The release.
        version: TofuVersion,
        /// The mirror or the cache.
        place: &'static str,
    },
    /// The downloaded archive is not the pinned one.
    #[error(
        "the downloaded archive of OpenTofu {version} does not have the configured SHA-256; it is not used"
    )]
    Archive {
        /// The release.
        version: TofuVersion,
    },
    /// The download failed.
    #[error("OpenTofu could not be downloaded")]
    Download(#[source] reqwest::Error),
    /// A file could not be read or written.
    #[error("a file of OpenTofu could not be read or written")]
    File(#[from] io::Error),
    /// The archive cannot be read.
    #[error("the archive of OpenTofu cannot be read")]
    Zip(#[from] zip::result::ZipError),
}

/// The releases of one runner.
pub(crate) struct Tools {
    settings: ToolSettings,
    cache: PathBuf,
    /// Releases that were verified in this life, by the directory they are in.
    verified: Mutex<HashMap<TofuVersion, PathBuf>>,
}

impl Tools {
    pub(crate) fn new(settings: ToolSettings, work_directory: &Path) -> Self {
        Self {
            settings,
            cache: work_directory.join("tools"),
            verified: Mutex::default(),
        }
    }

    /// The directory that holds the verified program. Attempts that want the same release at once
    /// wait for one verification.
    pub(crate) async fn directory(&self, version: TofuVersion) -> Result<PathBuf, ToolError> {
        let mut verified = self.verified.lock().await;
        if let Some(directory) = verified.get(&version) {
            return Ok(directory.clone());
        }
        let directory = self.find(version).await?;
        verified.insert(version, directory.clone());
        Ok(directory)
    }

    async fn find(&self, version: TofuVersion) -> Result<PathBuf, ToolError> {
        let mirror = self
            .settings
            .mirror
            .as_ref()
            .map(|mirror| (mirror.join(version.to_string()), "mirror"));
        let cached = (self.cache.join(version.to_string()), "cache");
        for (directory, place) in mirror.into_iter().chain([cached.clone()]) {
            if directory.join(PROGRAM).try_exists()? {
                return verify(directory, version, place).await;
            }
        }
        let Some(pinned) = self.settings.pinned.get(&version).copied() else {
            return Err(ToolError::Absent { version });
        };
        self.download(version, pinned, &cached.0).await?;
        verify(cached.0, version, cached.1).await
    }

    async fn download(
        &self,
        version: TofuVersion,
        pinned: Sha256Digest,
        to: &Path,
    ) -> Result<(), ToolError> {
        let base = self.settings.release_base_url.trim_end_matches('/');
        let url = format!("{base}/v{version}/tofu_{version}_linux_amd64.zip");
        fs::create_dir_all(&self.cache)?;
        let archive = tempfile::NamedTempFile::new_in(&self.cache)?;
        let client = http_client()
            .timeout(DOWNLOAD_TIME_MAX)
            .build()
            .map_err(ToolError::Download)?;
        let response = client
            .get(url)
            .send()
            .await
            .and_then(reqwest::Response::error_for_status);
        let mut response = response.map_err(ToolError::Download)?;
        let (mut digest, mut bytes) = (Sha256::new(), 0);
        while let Some(chunk) = response.chunk().await.map_err(ToolError::Download)? {
            bytes += chunk.len() as u64;
            if bytes > ARCHIVE_BYTES_MAX {
                return Err(ToolError::Archive { version });
            }
            digest.update(&chunk);
            archive.as_file().write_all(&chunk)?;
        }
        if Sha256Digest::from_bytes(digest.finalize().into()) != pinned {
            return Err(ToolError::Archive { version });
        }
        let (to, cache) = (to.to_owned(), self.cache.clone());
        blocking(move || extract(archive.reopen()?, &cache, &to)).await
    }
}

/// Puts the program and its sum into `to`, which appears only when both are complete.
fn extract(archive: File, cache: &Path, to: &Path) -> Result<(), ToolError> {
    let mut archive = zip::ZipArchive::new(archive)?;
    let mut program = archive.by_name(PROGRAM)?.take(ARCHIVE_BYTES_MAX);
    let fresh = tempfile::tempdir_in(cache)?;
    let path = fresh.path().join(PROGRAM);
    io::copy(&mut program, &mut File::create(&path)?)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    fs::set_permissions(fresh.path(), fs::Permissions::from_mode(0o755))?;
    fs::write(
        fresh.path().join(SUMS),
        format!("{}  {PROGRAM}\n", digest_of(&path)?),
    )?;
    fs::rename(fresh.keep(), to)?;
    Ok(())
}

async fn verify(
    directory: PathBuf,
    version: TofuVersion,
    place: &'static str,
) -> Result<PathBuf, ToolError> {
    blocking(move || {
        let expected = expected_digest(&directory.join(SUMS))?;
        if expected == Some(digest_of(&directory.join(PROGRAM))?) {
            Ok(directory)
        } else {
            Err(ToolError::Mismatch { version, place })
        }
    })
    .await
}

fn expected_digest(sums: &Path) -> Result<Option<Sha256Digest>, ToolError> {
    let mut text = String::new();
    match File::open(sums) {
        Ok(file) => file.take(SUMS_BYTES_MAX).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(text.lines().find_map(|line| {
        let (digest, name) = line.split_once(char::is_whitespace)?;
        (name.trim_start_matches([' ', '*']) == PROGRAM).then(|| digest.parse().ok())?
    }))
}

fn digest_of(path: &Path) -> io::Result<Sha256Digest> {
    let (mut file, mut digest) = (File::open(path)?, Sha256::new());
    let mut buffer = vec![0; 1024 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Sha256Digest::from_bytes(digest.finalize().into())),
            read => digest.update(&buffer[..read]),
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error).into()))
}
