//! Writing an object: bytes first, then the row that makes them somebody's.

use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt as _};
use sha2::{Digest as _, Sha256};
use stackship_domain::Sha256Digest;
use stackship_domain::ids::ObjectId;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::frames::{self, DataKey, FRAME_BYTES, FrameSealer, Place, TAG_BYTES};
use super::{NewObject, ObjectError, Objects, StoredObject, storage_key};
use crate::{StoreError, clock};

/// How many sealed bytes are collected before they are handed to storage; S3 wants at least 5 MiB.
const PART_BYTES: usize = 8 * 1024 * 1024;

struct Written {
    bytes: u64,
    sha256: Sha256Digest,
}

impl Objects {
    /// Stores everything that `source` yields, in constant memory. Nothing is kept when `source`
    /// fails or yields more than `bytes_max`.
    pub async fn put(
        &self,
        new: NewObject,
        source: impl AsyncRead + Send,
    ) -> Result<StoredObject, StoreError> {
        let id: ObjectId = clock::fresh();
        let key = storage_key(new.organization, new.kind, id);
        let data_key = frames::fresh_data_key();
        let written = self.write_frames(new, &key, &data_key, source).await?;
        let wrapped = self.keys.wrap(id, &data_key)?;
        sqlx::query(
            "insert into record.objects \
             (object_id, organization_id, workspace_id, kind, storage_key, bytes, sha256, wrapped_key, key_id) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(id.to_string())
        .bind(new.organization.to_string())
        .bind(new.workspace.map(|workspace| workspace.to_string()))
        .bind(new.kind.as_str())
        .bind(&key)
        .bind(i64::try_from(written.bytes).map_err(|_| ObjectError::TooLarge { bytes_max: new.bytes_max })?)
        .bind(written.sha256.as_bytes().as_slice())
        .bind(&wrapped.bytes)
        .bind(&wrapped.key_id)
        .execute(&self.pool)
        .await?;
        Ok(StoredObject {
            id,
            bytes: written.bytes,
            sha256: written.sha256,
        })
    }

    /// Stores bytes that are in memory already.
    pub async fn put_bytes(
        &self,
        new: NewObject,
        bytes: &[u8],
    ) -> Result<StoredObject, StoreError> {
        self.put(new, bytes).await
    }

    async fn write_frames(
        &self,
        new: NewObject,
        key: &str,
        data_key: &DataKey,
        source: impl AsyncRead + Send,
    ) -> Result<Written, ObjectError> {
        let header = frames::fresh_header();
        let place = Place {
            organization: new.organization,
            kind: new.kind,
            storage_key: key,
        };
        let sealer = FrameSealer::new(data_key, &header, &place);
        let mut upload = self.files.put_multipart(&Path::from(key)).await?;
        let parts = Parts {
            upload: upload.as_mut(),
            pending: header.to_vec(),
        };
        let written = match seal_all(sealer, parts, new.bytes_max, source).await {
            Ok(written) => written,
            Err(error) => {
                // The caller needs to hear of the first failure; what this one leaves is swept.
                if let Err(abort) = upload.abort().await {
                    tracing::warn!(error = %abort, "An upload that failed was not cleaned up");
                }
                return Err(error);
            }
        };
        upload.complete().await?;
        Ok(written)
    }
}

/// Collects sealed bytes into parts; at most one part is held.
struct Parts<'a> {
    upload: &'a mut dyn MultipartUpload,
    pending: Vec<u8>,
}

impl Parts<'_> {
    async fn push(&mut self, sealed: &[u8]) -> Result<(), ObjectError> {
        self.pending.extend_from_slice(sealed);
        if self.pending.len() >= PART_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ObjectError> {
        let part = std::mem::take(&mut self.pending);
        self.upload.put_part(part.into()).await?;
        Ok(())
    }
}

async fn seal_all(
    mut sealer: FrameSealer,
    mut parts: Parts<'_>,
    bytes_max: u64,
    source: impl AsyncRead + Send,
) -> Result<Written, ObjectError> {
    tokio::pin!(source);
    let mut digest = Sha256::new();
    let mut bytes: u64 = 0;
    let mut frame = read_frame(&mut source).await?;
    loop {
        bytes += frame.len() as u64;
        if bytes > bytes_max {
            return Err(ObjectError::TooLarge { bytes_max });
        }
        digest.update(&frame);
        // Only what follows tells whether a full frame is the last one.
        let following = if frame.len() < FRAME_BYTES {
            Vec::new()
        } else {
            read_frame(&mut source).await?
        };
        if following.is_empty() {
            break;
        }
        sealer.next(&mut frame)?;
        parts.push(&frame).await?;
        frame = following;
    }
    sealer.last(&mut frame)?;
    parts.push(&frame).await?;
    if !parts.pending.is_empty() {
        parts.flush().await?;
    }
    Ok(Written {
        bytes,
        sha256: Sha256Digest::from_bytes(digest.finalize().into()),
    })
}

/// The next frame's plain bytes: full, or what is left.
async fn read_frame(source: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, ObjectError> {
    let mut frame = Vec::with_capacity(FRAME_BYTES + TAG_BYTES);
    source
        .take(FRAME_BYTES as u64)
        .read_to_end(&mut frame)
        .await
        .map_err(ObjectError::Source)?;
    Ok(frame)
}
