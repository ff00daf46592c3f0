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
use crate::runner::PLATFORM;

/// The largest release archive.
const ARCHIVE_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// The largest program in one.
const PROGRAM_BYTES_MAX: u64 = 512 * 1024 * 1024;
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
    #[error("OpenTofu {version} could not be downloaded from {url}")]
    Download {
        /// The release.
        version: TofuVersion,
        /// What was asked for; where it was redirected to may be a secret of the release host's.
        url: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// The pinned archive unpacks to more than a program may have.
    #[error("the archive of OpenTofu {version} unpacks to more than is taken; it is not used")]
    TooLarge {
        /// The release.
        version: TofuVersion,
    },
    /// A file could not be read or written.
    #[error("a file of OpenTofu could not be read or written")]
    File(#[from] io::Error),
    /// The archive cannot be read.
    #[error("the archive of OpenTofu {version} cannot be read")]
    Zip {
        /// The release.
        version: TofuVersion,
        /// Why.
        #[source]
        source: zip::result::ZipError,
    },
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
        if let Some(mirror) = &self.settings.mirror {
            let directory = mirror.join(version.to_string());
            if directory.join(PROGRAM).try_exists()? {
                return verify(directory, version, "mirror").await;
            }
        }
        let Some(pinned) = self.settings.pinned.get(&version).copied() else {
            return Err(ToolError::Absent { version });
        };
        // By the pinned sum, so that what an earlier one allowed is not used any longer.
        let cached = self.cache.join(format!("{version}-{pinned}"));
        if cached.try_exists()? {
            match verify(cached.clone(), version, "cache").await {
                Ok(directory) => return Ok(directory),
                Err(error) => {
                    tracing::warn!(error = %error, "A cached OpenTofu is removed and downloaded again");
                    fs::remove_dir_all(&cached)?;
                }
            }
        }
        self.download(version, pinned, &cached).await?;
        verify(cached, version, "cache").await
    }

    /// Puts the release into `to`, which appears only when all of it is there and checked.
    async fn download(
        &self,
        version: TofuVersion,
        pinned: Sha256Digest,
        to: &Path,
    ) -> Result<(), ToolError> {
        fs::create_dir_all(&self.cache)?;
        let archive = tempfile::NamedTempFile::new_in(&self.cache)?;
        if self.receive(version, archive.as_file()).await? != Some(pinned) {
            return Err(ToolError::Archive { version });
        }
        let (to, cache) = (to.to_owned(), self.cache.clone());
        blocking(move || extract(version, archive.reopen()?, &cache, &to)).await
    }

    /// Writes the archive and says its digest; `None` if it is longer than is taken.
    async fn receive(
        &self,
        version: TofuVersion,
        mut to: &File,
    ) -> Result<Option<Sha256Digest>, ToolError> {
        let base = self.settings.release_base_url.trim_end_matches('/');
        let url = format!("{base}/v{version}/tofu_{version}_{PLATFORM}.zip");
        let failed = |error: reqwest::Error| ToolError::Download {
            version,
            url: url.clone(),
            source: error.without_url(),
        };
        let client = http_client().timeout(DOWNLOAD_TIME_MAX).build();
        let answer = client.map_err(failed)?.get(&url).send().await;
        let mut answer = answer
            .and_then(reqwest::Response::error_for_status)
            .map_err(failed)?;
        let (mut digest, mut bytes) = (Sha256::new(), 0);
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            bytes += chunk.len() as u64;
            if bytes > ARCHIVE_BYTES_MAX {
                return Ok(None);
            }
            digest.update(&chunk);
            to.write_all(&chunk)?;
        }
        Ok(Some(Sha256Digest::from_bytes(digest.finalize().into())))
    }
}

/// Puts the program and its sum into `to`.
fn extract(version: TofuVersion, archive: File, cache: &Path, to: &Path) -> Result<(), ToolError> {
    let unreadable = |source| ToolError::Zip { version, source };
    let mut archive = zip::ZipArchive::new(archive).map_err(unreadable)?;
    let program = archive.by_name(PROGRAM).map_err(unreadable)?;
    let fresh = tempfile::tempdir_in(cache)?;
    let path = fresh.path().join(PROGRAM);
    let mut file = File::create(&path)?;
    if io::copy(&mut program.take(PROGRAM_BYTES_MAX + 1), &mut file)? > PROGRAM_BYTES_MAX {
        return Err(ToolError::TooLarge { version });
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    fs::set_permissions(fresh.path(), fs::Permissions::from_mode(0o755))?;
    fs::write(
        fresh.path().join(SUMS),
        format!("{}  {PROGRAM}\n", digest_of(&path)?),
    )?;
    fs::rename(fresh.path(), to)?;
    // It has its final name; under the old one there is nothing to remove.
    let _renamed = fresh.keep();
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
