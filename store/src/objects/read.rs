//! Reading an object: frame by frame, and nothing that has not been authenticated in its place.

use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use object_store::{GetResult, GetResultPayload, ObjectStoreExt as _};
use sha2::{Digest as _, Sha256};
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use stackship_domain::Sha256Digest;
use stackship_domain::ids::{ObjectId, OrganizationId, WorkspaceId};
use tokio::io::AsyncWriteExt as _;
use tokio_util::io::ReaderStream;

use super::frames::{self, FRAME_BYTES, FrameOpener, HEADER_BYTES, Place, TAG_BYTES};
use super::{Corruption, Descriptor, ObjectError, ObjectKind, Objects};
use crate::{DbTime, StoreError};

const TABLE: &str = "record.objects";
/// How much of a file is read at a time; the most that is held of an object beside one frame.
const PIECE_BYTES: usize = 4 * FRAME_BYTES;

/// The content of one object, frame by frame. Every frame has been authenticated; the last one comes
/// only after the whole content's digest was found right, so a stream that ends without an error has
/// told exactly what was written.
pub struct ObjectReader {
    frames: BoxStream<'static, Result<Bytes, ObjectError>>,
    bytes: u64,
    sha256: Sha256Digest,
}

impl ObjectReader {
    /// How many bytes the object has.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// SHA-256 of its exact bytes.
    pub const fn sha256(&self) -> Sha256Digest {
        self.sha256
    }

    /// The same, after its first frame was authenticated: what is wrong at the beginning is found
    /// before anything was promised to whoever asked. A content of one frame is then verified as a whole.
    pub async fn begun(self) -> Result<Self, ObjectError> {
        let Self {
            mut frames,
            bytes,
            sha256,
        } = self;
        let first = frames.try_next().await?;
        let frames = stream::iter(first.map(Ok)).chain(frames).boxed();
        Ok(Self {
            frames,
            bytes,
            sha256,
        })
    }
}

impl std::fmt::Debug for ObjectReader {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ObjectReader")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Stream for ObjectReader {
    type Item = Result<Bytes, ObjectError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.frames.poll_next_unpin(context)
    }
}

impl Objects {
    /// What is known about an object without opening it.
    pub async fn describe(
        &self,
        organization: OrganizationId,
        id: ObjectId,
    ) -> Result<Option<Descriptor>, StoreError> {
        let row = sqlx::query(
            "select workspace_id, kind, bytes, sha256, created_at from record.objects \
             where organization_id = $1 and object_id = $2",
        )
        .bind(organization.to_string())
        .bind(id.to_string())
        .fetch_optional(&self.pool)
        .await?;
        row.map(|row| descriptor(id, &row)).transpose()
    }

    /// What is known about each of these; one that is not there, or is another organization's, is left
    /// out.
    pub async fn describe_all(
        &self,
        organization: OrganizationId,
        ids: &[ObjectId],
    ) -> Result<Vec<Descriptor>, StoreError> {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let rows = sqlx::query(
            "select object_id, workspace_id, kind, bytes, sha256, created_at from record.objects \
             where organization_id = $1 and object_id = any($2)",
        )
        .bind(organization.to_string())
        .bind(ids)
        .fetch_all(&self.pool)
        .await?;
        rows.iter()
            .map(|row| {
                let id: String = row.try_get("object_id")?;
                let id = id
                    .parse()
                    .map_err(|_| StoreError::inconsistent(TABLE, "object_id", &id))?;
                descriptor(id, row)
            })
            .collect()
    }

    /// The content of an object of this kind.
    pub async fn reader(
        &self,
        organization: OrganizationId,
        id: ObjectId,
        kind: ObjectKind,
    ) -> Result<ObjectReader, StoreError> {
        let row = sqlx::query(
            "select storage_key, bytes, sha256, wrapped_key, key_id from record.objects \
             where organization_id = $1 and object_id = $2 and kind = $3",
        )
        .bind(organization.to_string())
        .bind(id.to_string())
        .bind(kind.as_str())
        .fetch_optional(&self.pool)
        .await?
        .ok_or(ObjectError::NotFound)?;
        let storage_key: String = row.try_get("storage_key")?;
        let key_id: String = row.try_get("key_id")?;
        let data_key = self
            .keys
            .unwrap(id, &key_id, &row.try_get::<Vec<u8>, _>("wrapped_key")?)?;
        let (bytes, sha256) = (stored_length(id, &row)?, digest(id, &row)?);
        let place = Place {
            organization,
            kind,
            storage_key: &storage_key,
        };
        let mut stored = self.stored(&storage_key, bytes).await?;
        let header = stored.take(HEADER_BYTES).await?;
        let opener = FrameOpener::new(&data_key, &header, &place)?;
        let opening = Opening {
            stored,
            opener: Some(opener),
            digest: Sha256::new(),
            left: bytes,
            sha256,
        };
        let frames = stream::try_unfold(opening, Opening::next_frame).boxed();
        Ok(ObjectReader {
            frames,
            bytes,
            sha256,
        })
    }

    /// The whole content, when it has at most `bytes_max` bytes.
    pub async fn read_to_vec(
        &self,
        organization: OrganizationId,
        id: ObjectId,
        kind: ObjectKind,
        bytes_max: u64,
    ) -> Result<Vec<u8>, StoreError> {
        let mut reader = self.reader(organization, id, kind).await?;
        if reader.bytes > bytes_max {
            return Err(ObjectError::TooLarge { bytes_max }.into());
        }
        let mut content = Vec::new();
        while let Some(frame) = reader.try_next().await? {
            content.extend_from_slice(&frame);
        }
        Ok(content)
    }

    /// Writes the content to a file that only this user can read. The file appears under its name
    /// only after everything in it was verified.
    pub async fn copy_to_file(
        &self,
        organization: OrganizationId,
        id: ObjectId,
        kind: ObjectKind,
        path: &Path,
    ) -> Result<(), StoreError> {
        let mut reader = self.reader(organization, id, kind).await?;
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            Some(_) | None => Path::new("."),
        };
        let temporary = tempfile::NamedTempFile::new_in(directory).map_err(ObjectError::File)?;
        let mut file = tokio::fs::File::from_std(temporary.reopen().map_err(ObjectError::File)?);
        while let Some(frame) = reader.try_next().await? {
            file.write_all(&frame).await.map_err(ObjectError::File)?;
        }
        file.flush().await.map_err(ObjectError::File)?;
        temporary
            .persist(path)
            .map_err(|failure| ObjectError::File(failure.error))?;
        Ok(())
    }

    async fn stored(&self, storage_key: &str, bytes: u64) -> Result<StoredBytes, ObjectError> {
        let found = self
            .files
            .get(&object_store::path::Path::from(storage_key))
            .await?;
        if frames::stored_bytes(bytes) != Some(found.meta.size) {
            return Err(ObjectError::Corrupt(Corruption::Length));
        }
        Ok(StoredBytes {
            body: pieces(found),
            pending: BytesMut::new(),
        })
    }
}

/// The stored bytes as they are read. The library would take 8 KiB of a file at a time, each on another
/// thread.
fn pieces(found: GetResult) -> BoxStream<'static, object_store::Result<Bytes>> {
    match found.payload {
        GetResultPayload::File(file, path) => {
            let file = tokio::fs::File::from_std(file);
            let unread = move |source| object_store::Error::Generic {
                store: "file",
                source: format!("{}: {source}", path.display()).into(),
            };
            ReaderStream::with_capacity(file, PIECE_BYTES)
                .map_err(unread)
                .boxed()
        }
        GetResultPayload::Stream(pieces) => pieces,
    }
}

/// The stored bytes, to be taken in known amounts.
struct StoredBytes {
    body: BoxStream<'static, object_store::Result<Bytes>>,
    pending: BytesMut,
}

impl StoredBytes {
    async fn take(&mut self, amount: usize) -> Result<Vec<u8>, ObjectError> {
        while self.pending.len() < amount {
            let more = self.body.try_next().await?;
            let more = more
                // What was cut while it is read may give nothing, again and again.
                .filter(|more| !more.is_empty())
                .ok_or(ObjectError::Corrupt(Corruption::Length))?;
            self.pending.extend_from_slice(&more);
        }
        Ok(self.pending.split_to(amount).to_vec())
    }

    async fn end(&mut self) -> Result<(), ObjectError> {
        if self.pending.is_empty() && self.body.try_next().await?.is_none() {
            Ok(())
        } else {
            Err(ObjectError::Corrupt(Corruption::Length))
        }
    }
}

/// A content half way: what is left, and what was seen.
struct Opening {
    stored: StoredBytes,
    /// Gone after the last frame.
    opener: Option<FrameOpener>,
    digest: Sha256,
    left: u64,
    sha256: Sha256Digest,
}

impl Opening {
    async fn next_frame(mut self) -> Result<Option<(Bytes, Self)>, ObjectError> {
        let Some(mut opener) = self.opener.take() else {
            return Ok(None);
        };
        let plain = usize::try_from(self.left)
            .unwrap_or(FRAME_BYTES)
            .min(FRAME_BYTES);
        let is_last = self.left <= FRAME_BYTES as u64;
        let mut frame = self.stored.take(plain + TAG_BYTES).await?;
        if is_last {
            opener.last(&mut frame)?;
            self.digest.update(&frame);
            self.verify_end().await?;
        } else {
            opener.next(&mut frame)?;
            self.digest.update(&frame);
            self.opener = Some(opener);
        }
        self.left -= plain as u64;
        Ok(Some((frame.into(), self)))
    }

    async fn verify_end(&mut self) -> Result<(), ObjectError> {
        self.stored.end().await?;
        let found = Sha256Digest::from_bytes(self.digest.clone().finalize().into());
        if found == self.sha256 {
            Ok(())
        } else {
            Err(ObjectError::Corrupt(Corruption::Digest))
        }
    }
}

fn descriptor(id: ObjectId, row: &PgRow) -> Result<Descriptor, StoreError> {
    let workspace: Option<String> = row.try_get("workspace_id")?;
    let workspace = workspace
        .map(|text| text.parse::<WorkspaceId>())
        .transpose()
        .map_err(|_| StoreError::inconsistent(TABLE, "workspace_id", id))?;
    let kind: String = row.try_get("kind")?;
    Ok(Descriptor {
        id,
        workspace,
        kind: ObjectKind::from_stored(&kind)
            .ok_or_else(|| StoreError::inconsistent(TABLE, "kind", id))?,
        bytes: stored_length(id, row)?,
        sha256: digest(id, row)?,
        created_at: row.try_get::<DbTime, _>("created_at")?.get(),
    })
}

fn stored_length(id: ObjectId, row: &PgRow) -> Result<u64, StoreError> {
    let bytes: i64 = row.try_get("bytes")?;
    u64::try_from(bytes).map_err(|_| StoreError::inconsistent(TABLE, "bytes", id))
}

fn digest(id: ObjectId, row: &PgRow) -> Result<Sha256Digest, StoreError> {
    let sha256: Vec<u8> = row.try_get("sha256")?;
    let sha256 =
        <[u8; 32]>::try_from(sha256).map_err(|_| StoreError::inconsistent(TABLE, "sha256", id))?;
    Ok(Sha256Digest::from_bytes(sha256))
}
