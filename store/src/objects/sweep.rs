//! Removing bytes that are nobody's: a crash between an object's bytes and its row leaves them.

use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use futures::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectStoreExt as _;
use stackship_domain::Timestamp;

use super::{ObjectError, Objects};
use crate::StoreError;

/// How old bytes without a row must be: far older than any upload still on its way.
pub const ORPHAN_AGE: Duration = Duration::from_hours(24);
/// How many files are asked about at once.
const BATCH: usize = 500;

impl Objects {
    /// Removes files that have no row and are older than [`ORPHAN_AGE`] at `now`. Returns how many.
    pub async fn sweep(&self, now: Timestamp) -> Result<usize, StoreError> {
        let Ok(before) = now.checked_sub(ORPHAN_AGE) else {
            return Ok(0);
        };
        let mut removed = self.sweep_unfinished(before).await?;
        let mut batches = self.files.list(None).try_chunks(BATCH).boxed();
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(|failure| ObjectError::Storage(failure.1))?;
            let old: Vec<String> = batch
                .into_iter()
                .filter(|file| file.last_modified.timestamp() < before.as_second())
                .map(|file| file.location.to_string())
                .collect();
            removed += self.remove_without_row(&old).await?;
        }
        Ok(removed)
    }

    async fn remove_without_row(&self, keys: &[String]) -> Result<usize, StoreError> {
        let without_row: Vec<String> = sqlx::query_scalar(
            "select key from unnest($1::text[]) as key \
             where not exists (select from record.objects where storage_key = key)",
        )
        .bind(keys)
        .fetch_all(&self.pool)
        .await?;
        for key in &without_row {
            let key = object_store::path::Path::from(key.as_str());
            match self.files.delete(&key).await {
                // Another process sweeps too.
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(ObjectError::Storage(error).into()),
            }
        }
        Ok(without_row.len())
    }

    /// Uploads that never ended are kept beside their final name and are not listed as objects.
    async fn sweep_unfinished(&self, before: Timestamp) -> Result<usize, ObjectError> {
        let root = self.root.clone();
        let sweep = move || remove_unfinished(&root, before);
        tokio::task::spawn_blocking(sweep)
            .await
            .map_err(|failure| ObjectError::File(failure.into()))?
            .map_err(ObjectError::File)
    }
}

/// Removes old unfinished files. Files come and go while this looks: one that is gone needs nothing.
fn remove_unfinished(root: &Path, before: Timestamp) -> io::Result<usize> {
    let mut removed = 0;
    let mut directories: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                directories.push(entry.path());
                continue;
            }
            // `object_store` names a file that is still being written `name#number`.
            let is_unfinished = entry.file_name().to_string_lossy().contains('#');
            if is_unfinished {
                match remove_if_older(&entry, before) {
                    Ok(was_older) => removed += usize::from(was_older),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(removed)
}

fn remove_if_older(entry: &DirEntry, before: Timestamp) -> io::Result<bool> {
    let modified = entry.metadata()?.modified()?;
    let since_1970 = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    let is_older =
        i64::try_from(since_1970.as_secs()).is_ok_and(|modified| modified < before.as_second());
    if is_older {
        std::fs::remove_file(entry.path())?;
    }
    Ok(is_older)
}
