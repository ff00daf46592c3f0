//! Bodies that stream in.

use axum::body::Body;
use futures::TryStreamExt as _;
use tokio::io::AsyncRead;
use tokio_util::io::StreamReader;

/// A body as it arrives.
pub fn reader(body: Body) -> impl AsyncRead + Send + Unpin {
    let stream = body.into_data_stream().map_err(std::io::Error::other);
    StreamReader::new(stream)
}
