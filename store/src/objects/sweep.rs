//! Removing bytes that are nobody's: a crash between an object's bytes and its row leaves them.

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
            self.files
                .delete(&object_store::path::Path::from(key.as_str()))
                .await
                .map_err(ObjectError::from)?;
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

fn remove_unfinished(directory: &Path, before: Timestamp) -> std::io::Result<usize> {
    let mut removed = 0;
    let mut directories: Vec<PathBuf> = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let about = entry.metadata()?;
            if about.is_dir() {
                directories.push(entry.path());
                continue;
            }
            // `object_store` names a file that is still being written `name#number`.
            let unfinished = entry.file_name().to_string_lossy().contains('#');
            let modified = about
                .modified()?
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs();
            if unfinished && i64::try_from(modified).unwrap_or(i64::MAX) < before.as_second() {
                std::fs::remove_file(entry.path())?;
                removed += 1;
            }
        }
    }
    Ok(removed)
}
