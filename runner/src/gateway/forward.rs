//! One request through the gateway.

use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use sha2::{Digest as _, Sha256};
use stackship_domain::Sha256Digest;
use stackship_domain::ids::StateVersionId;
use stackship_runner_protocol::SeenState;

use super::Gateway;
use super::rules::Allowed;

/// How long a client's body may stand still.
const BODY_SILENCE_MAX: Duration = Duration::from_secs(30);
/// For one request with its body and its answer.
const FORWARD_TIME_MAX: Duration = Duration::from_mins(10);
/// The largest answer that is read for the URLs in it.
const DOCUMENT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What a client may say about its request.
const REQUEST_HEADERS: [HeaderName; 4] = [ACCEPT, CONTENT_TYPE, CONTENT_LENGTH, USER_AGENT];
/// What a client is told about an answer. Everything else, hop-by-hop headers and cookies among it,
/// stays outside.
const ANSWER_HEADERS: [HeaderName; 6] = [
    CONTENT_TYPE,
    RETRY_AFTER,
    HeaderName::from_static("tfp-api-version"),
    HeaderName::from_static("tfp-appname"),
    HeaderName::from_static("x-terraform-snapshot-interval"),
    HeaderName::from_static("x-ratelimit-reset"),
];

type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

impl Gateway {
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Answer {
        let path = request
            .uri()
            .path_and_query()
            .map_or("/", http::uri::PathAndQuery::as_str)
            .to_owned();
        let is_relative = request.uri().authority().is_none();
        let allowed = self
            .rules()
            .allowed(request.method(), &path)
            .filter(|_| is_relative);
        let Some(allowed) = allowed else {
            tracing::info!(method = %request.method(), path = request.uri().path(), "A gateway refused a request");
            return refusal(
                StatusCode::FORBIDDEN,
                "this run may not ask this in this phase",
            );
        };
        if request.body().size_hint().lower() > allowed.body_bytes_max() {
            return refusal(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the body is larger than it may be",
            );
        }
        match self.forward(request, &path, allowed).await {
            Ok(answer) => answer,
            Err(ForwardError::Call(error)) if StoodStill::is_behind(&error) => refusal(
                StatusCode::REQUEST_TIMEOUT,
                "the body of the request stood still",
            ),
            Err(error) => {
                tracing::warn!(%error, "A request through a gateway failed");
                refusal(
                    StatusCode::BAD_GATEWAY,
                    "the control plane could not be reached",
                )
            }
        }
    }

    async fn forward(
        &self,
        request: Request<Incoming>,
        path: &str,
        allowed: Allowed,
    ) -> Result<Answer, ForwardError> {
        let call = self
            .control_plane
            .as_run(request.method().clone(), path, &self.run_token);
        let call = call
            .headers(chosen(request.headers(), &REQUEST_HEADERS))
            .timeout(FORWARD_TIME_MAX);
        let passed = Arc::new(Mutex::new(Sha256::new()));
        let call = if request.body().is_end_stream() {
            call
        } else {
            let is_state = matches!(allowed, Allowed::StateUpload { .. });
            let hasher = is_state.then(|| Arc::clone(&passed));
            let chunks = moving(request.into_body().into_data_stream(), BODY_SILENCE_MAX);
            call.body(reqwest::Body::wrap_stream(bounded(
                chunks,
                allowed.body_bytes_max(),
                hasher,
            )))
        };
        let response = call.send().await?;
        let (status, headers) = (
            response.status(),
            chosen(response.headers(), &ANSWER_HEADERS),
        );
        if status.is_redirection() {
            return Ok(refusal(
                StatusCode::BAD_GATEWAY,
                "the control plane answered with a redirect",
            ));
        }
        if let (Allowed::StateUpload { version }, true) = (allowed, status.is_success()) {
            self.has_passed(version, &passed);
        }
        let body = if allowed == Allowed::Document && status.is_success() {
            let document = read_document(response).await?;
            if let Ok(document) = serde_json::from_slice(&document) {
                self.rules().learn(&document);
            }
            full(document)
        } else {
            let stream = response
                .bytes_stream()
                .map_ok(Frame::data)
                .map_err(io::Error::other);
            StreamBody::new(stream).boxed_unsync()
        };
        let mut answer = Response::new(body);
        *answer.status_mut() = status;
        *answer.headers_mut() = headers;
        Ok(answer)
    }

    fn has_passed(&self, version: StateVersionId, passed: &Mutex<Sha256>) {
        let digest = passed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .finalize();
        let seen = SeenState {
            version,
            sha256: Sha256Digest::from_bytes(digest.into()),
        };
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
    }
}

/// Why a request could not be passed on.
#[derive(Debug, thiserror::Error)]
enum ForwardError {
    #[error("the control plane cannot be reached, or broke off")]
    Call(#[from] reqwest::Error),
    #[error("the control plane's answer is too long")]
    TooLong,
}

/// The client's body stood still.
#[derive(Debug, thiserror::Error)]
#[error("the body of the request stood still")]
struct StoodStill;

impl StoodStill {
    fn is_behind(error: &(dyn Error + 'static)) -> bool {
        let mut next = Some(error);
        while let Some(error) = next {
            if error.is::<Self>() {
                return true;
            }
            // An I/O error passes over what it was made of when it is asked for its source.
            next = match error.downcast_ref::<io::Error>() {
                Some(error) => error.get_ref().map(|inner| inner as &(dyn Error + 'static)),
                None => error.source(),
            };
        }
        false
    }
}

/// The chunks, ending in an error where none comes for too long.
fn moving<E>(
    chunks: impl Stream<Item = Result<Bytes, E>> + Send + Unpin + 'static,
    silence_max: Duration,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static
where
    E: Into<Box<dyn Error + Send + Sync>> + Send + 'static,
{
    stream::unfold(chunks, move |mut chunks| async move {
        let chunk = match tokio::time::timeout(silence_max, chunks.next()).await {
            Ok(chunk) => chunk?.map_err(io::Error::other),
            Err(_) => Err(io::Error::other(StoodStill)),
        };
        Some((chunk, chunks))
    })
}

/// The client's body as it arrives, up to a bound.
fn bounded(
    chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    bytes_max: u64,
    hasher: Option<Arc<Mutex<Sha256>>>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let mut left = bytes_max;
    chunks.map(move |chunk| {
        let chunk = chunk?;
        left = left
            .checked_sub(chunk.len() as u64)
            .ok_or_else(|| io::Error::other("the body is larger than it may be"))?;
        if let Some(hasher) = &hasher {
            hasher
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .update(&chunk);
        }
        Ok(chunk)
    })
}

async fn read_document(mut response: reqwest::Response) -> Result<Bytes, ForwardError> {
    let mut document = BytesMut::new();
    while let Some(chunk) = response.chunk().await? {
        if document.len() + chunk.len() > DOCUMENT_BYTES_MAX {
            return Err(ForwardError::TooLong);
        }
        document.extend_from_slice(&chunk);
    }
    Ok(document.freeze())
}

fn chosen(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    names
        .iter()
        .filter_map(|name| Some((name.clone(), headers.get(name)?.clone())))
        .collect()
}

fn full(bytes: Bytes) -> UnsyncBoxBody<Bytes, io::Error> {
    Full::new(bytes)
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// A refusal in the form that the CLI shows to a person.
fn refusal(status: StatusCode, detail: &str) -> Answer {
    let document = serde_json::json!({
        "errors": [{ "status": status.as_str(), "title": "refused by the runner's gateway", "detail": detail }],
    });
    let mut answer = Response::new(full(document.to_string().into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/vnd.api+json"),
    );
    answer
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_body_that_stands_still_is_given_up() {
        let first = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"a"))]);
        let stuck = first.chain(stream::pending()).boxed();
        let mut chunks = moving(stuck, Duration::from_millis(1)).boxed();
        assert_eq!(chunks.next().await.unwrap().unwrap(), "a");
        let error = chunks.next().await.unwrap().unwrap_err();
        assert!(StoodStill::is_behind(&error), "{error:?}");
        let other = io::Error::other("broken");
        assert!(!StoodStill::is_behind(&other));
    }

    #[tokio::test]
    async fn a_body_that_moves_is_passed_on_to_its_end_and_its_bound() {
        let parts = || {
            stream::iter([b"ab", b"cd"].map(|part| Ok::<_, Infallible>(Bytes::from_static(part))))
        };
        let whole = bounded(moving(parts(), BODY_SILENCE_MAX), 4, None);
        let whole: Vec<Bytes> = whole.try_collect().now_or_never().unwrap().unwrap();
        assert_eq!(whole, ["ab", "cd"]);
        let cut = bounded(moving(parts(), BODY_SILENCE_MAX), 3, None);
        let cut: io::Result<Vec<Bytes>> = cut.try_collect().now_or_never().unwrap();
        assert!(cut.is_err());
    }
}
