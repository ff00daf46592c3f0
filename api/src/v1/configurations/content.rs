//! The bytes of an archive on their way in: looked at while they stream, never held.

use std::io;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody as _};
use axum::http::HeaderMap;
use futures::{Stream, StreamExt as _, TryStreamExt as _, future};
use sha2::{Digest as _, Sha256};
use stackship_domain::Sha256Digest;
use stackship_store::StoreError;
use stackship_store::objects::{NewObject, ObjectError, ObjectKind};
use stackship_store::records::configuration_versions;
use tokio_util::io::StreamReader;

use crate::auth::{InConfiguration, RunCreate};
use crate::{ApiError, App};

/// The most bytes of an archive.
pub(super) const CONFIGURATION_BYTES_MAX: u64 = 100 * 1024 * 1024;
/// Request header with the SHA-256 that the sender computed.
pub(super) const SHA256_HEADER: &str = "x-stackship-sha256";
/// What every gzip file begins with.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Why bytes are not an archive that is taken.
#[derive(Debug, Clone, Copy, thiserror::Error)]
enum Unfit {
    #[error("the body is no tar.gz archive: it does not begin like a gzip file")]
    NotGzip,
    #[error("the body does not have the digest in `x-stackship-sha256`; send it again")]
    Digest,
}

impl Unfit {
    fn refusal(self) -> ApiError {
        let code = match self {
            Self::NotGzip => "CONFIGURATION_NOT_GZIP",
            Self::Digest => "CONFIGURATION_DIGEST_MISMATCH",
        };
        ApiError::refused(code, "", self.to_string())
    }
}

/// An archive that is being received.
pub(super) struct Content {
    body: Body,
    announced: Option<Sha256Digest>,
}

/// The digest that the sender announces.
pub(super) fn announced(
    headers: &HeaderMap,
    name: &'static str,
) -> Result<Option<Sha256Digest>, ApiError> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let digest = value.to_str().ok().and_then(|text| text.parse().ok());
    digest.map(Some).ok_or_else(|| {
        let message = format!("`{name}` is a SHA-256 digest: 64 lower-case hexadecimal digits");
        ApiError::unreadable("HEADER_INVALID", name, message)
    })
}

impl Content {
    pub(super) const fn new(body: Body, announced: Option<Sha256Digest>) -> Self {
        Self { body, announced }
    }

    /// Stores the archive as the configuration's content.
    pub(super) async fn store(
        self,
        app: &App,
        may: &InConfiguration<RunCreate>,
    ) -> Result<(), ApiError> {
        let new = NewObject {
            organization: may.configuration.organization,
            workspace: Some(may.workspace.id),
            kind: ObjectKind::Configuration,
            bytes_max: CONFIGURATION_BYTES_MAX,
        };
        let chunks = chunks_of(self.body)?;
        let reader = StreamReader::new(checked(chunks, self.announced).boxed());
        let stored = app.store.objects.put(new, reader).await.map_err(refusal)?;
        let (context, id) = (may.caller.command()?, may.configuration.id);
        configuration_versions::uploaded(&app.store, &context, id, stored).await?;
        Ok(())
    }

    /// Takes the bytes only if they are the ones that were stored before.
    pub(super) async fn compare(self, stored: Sha256Digest) -> Result<(), ApiError> {
        let chunks = chunks_of(self.body)?;
        let found = digest(checked(chunks, self.announced).boxed()).await;
        if found.map_err(refusal)? == stored {
            Ok(())
        } else {
            Err(immutable())
        }
    }
}

/// The digest of an archive that is not too large.
async fn digest(
    mut chunks: impl Stream<Item = io::Result<Bytes>> + Unpin,
) -> Result<Sha256Digest, StoreError> {
    let (mut digest, mut bytes) = (Sha256::new(), 0_u64);
    while let Some(chunk) = chunks.try_next().await.map_err(ObjectError::Source)? {
        bytes += chunk.len() as u64;
        if bytes > CONFIGURATION_BYTES_MAX {
            return Err(too_large());
        }
        digest.update(&chunk);
    }
    Ok(Sha256Digest::from_bytes(digest.finalize().into()))
}

/// The chunks of a body, unless its announced length alone is too much.
fn chunks_of(body: Body) -> Result<BodyDataStream, ApiError> {
    if body.size_hint().lower() > CONFIGURATION_BYTES_MAX {
        return Err(too_large().into());
    }
    Ok(body.into_data_stream())
}

fn too_large() -> StoreError {
    let bytes_max = CONFIGURATION_BYTES_MAX;
    ObjectError::TooLarge { bytes_max }.into()
}

fn immutable() -> ApiError {
    ApiError::Invalid {
        status: axum::http::StatusCode::CONFLICT,
        code: "CONFIGURATION_IMMUTABLE",
        field: String::new(),
        message: "this configuration version has other content already; create a new one"
            .to_owned(),
    }
}

/// The chunks, ending in an error where they turn out not to be what they should.
fn checked(
    chunks: BodyDataStream,
    announced: Option<Sha256Digest>,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let end = futures::stream::once(future::ready(Ok(Bytes::new())));
    let mut inspection = Inspection::new(announced);
    chunks
        .map_err(io::Error::other)
        .try_filter(|chunk| future::ready(!chunk.is_empty()))
        .chain(end)
        .map(move |chunk| inspection.pass(chunk?))
        .try_filter(|chunk| future::ready(!chunk.is_empty()))
}

/// What has been seen of the bytes so far.
struct Inspection {
    announced: Option<Sha256Digest>,
    digest: Sha256,
    head: Vec<u8>,
}

impl Inspection {
    fn new(announced: Option<Sha256Digest>) -> Self {
        let head = Vec::with_capacity(GZIP_MAGIC.len());
        Self {
            announced,
            digest: Sha256::new(),
            head,
        }
    }

    /// Lets a chunk through; an empty one stands for the end.
    fn pass(&mut self, chunk: Bytes) -> io::Result<Bytes> {
        let missing = GZIP_MAGIC.len() - self.head.len();
        self.head.extend(chunk.iter().take(missing));
        let is_end = chunk.is_empty();
        if !GZIP_MAGIC.starts_with(&self.head) || (is_end && self.head.len() < GZIP_MAGIC.len()) {
            return Err(io::Error::other(Unfit::NotGzip));
        }
        self.digest.update(&chunk);
        if is_end
            && self
                .announced
                .is_some_and(|announced| announced != self.seen())
        {
            return Err(io::Error::other(Unfit::Digest));
        }
        Ok(chunk)
    }

    fn seen(&self) -> Sha256Digest {
        Sha256Digest::from_bytes(self.digest.clone().finalize().into())
    }
}

/// Bytes that do not fit are the sender's to mend; everything else is told as it is.
fn refusal(error: StoreError) -> ApiError {
    if let StoreError::Object(ObjectError::Source(source)) = &error {
        let unfit = source
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<Unfit>());
        if let Some(unfit) = unfit {
            return unfit.refusal();
        }
    }
    error.into()
}
