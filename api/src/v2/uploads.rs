//! Bodies that stream in.

use axum::body::Body;
use futures::TryStreamExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::io::StreamReader;

/// How much of a refused upload is still taken in, in bytes: a client that is cut off while it sends
/// sees a broken connection instead of the refusal, and tries again for minutes.
const DRAINED_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// A body as it arrives.
pub fn reader(body: Body) -> impl AsyncRead + Send + Unpin {
    let stream = body.into_data_stream().map_err(std::io::Error::other);
    StreamReader::new(stream)
}

/// Takes in what is left of a refused upload.
pub async fn drain(body: impl AsyncRead + Unpin) {
    // Whatever goes wrong here goes wrong for the client as well.
    drop(tokio::io::copy(&mut body.take(DRAINED_BYTES_MAX), &mut tokio::io::sink()).await);
}
