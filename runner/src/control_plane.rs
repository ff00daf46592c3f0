//! The control plane, as a runner sees it.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use sha2::{Digest as _, Sha256};
use stackship_domain::Sha256Digest;
use stackship_domain::ids::{AttemptId, StateVersionId};
use stackship_runner_protocol::{
    ArtifactKind, Heartbeat, HeartbeatAnswer, InputName, InputRef, Lease, LeaseRequest,
    PhaseResult, SHA256_HEADER, Secret, StoredArtifact,
};
use tokio::io::AsyncWriteExt as _;
use tokio_util::io::ReaderStream;

/// For one small request and its answer.
const CALL_TIME_MAX: Duration = Duration::from_secs(15);
/// For one request that carries a file.
const TRANSFER_TIME_MAX: Duration = Duration::from_mins(10);
/// How much longer a lease request may take than it asked to wait.
const LEASE_TIME_MARGIN: Duration = Duration::from_secs(10);
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How often a request that may be repeated is made.
const TRIES_MAX: u32 = 5;
/// How long to wait after the first failed try; doubled after each.
const RETRY_AFTER: Duration = Duration::from_millis(50);
/// How much of an answer is read that should be a small document.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Why a call did not do what it was for.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The lease is over.
    #[error("the lease is over")]
    Lost,
    /// The control plane said no.
    #[error("the control plane refused with status {status}: {message}")]
    Refused {
        /// The status.
        status: StatusCode,
        /// What it said, cut to a length that is safe to show.
        message: String,
    },
    /// The control plane could not be reached, or broke off.
    #[error("the control plane cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// The control plane answered what cannot be understood.
    #[error("the control plane's answer cannot be understood")]
    Answer(#[source] serde_json::Error),
    /// The answer is longer than it may be.
    #[error("the control plane's answer is too long")]
    TooLong,
    /// A file of the runner could not be read or written.
    #[error("a file of the runner could not be read or written")]
    File(#[source] std::io::Error),
}

impl CallError {
    /// Whether the same call may succeed later.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { status, .. } => {
                let passing = [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT];
                status.is_server_error() || passing.contains(status)
            }
            Self::Lost | Self::Answer(_) | Self::TooLong | Self::File(_) => false,
        }
    }
}

/// The right to speak for one attempt.
#[derive(Debug, Clone)]
pub(crate) struct Hold {
    pub(crate) attempt: AttemptId,
    lease_token: Secret,
}

impl Hold {
    pub(crate) fn of(lease: &Lease) -> Self {
        Self {
            attempt: lease.attempt,
            lease_token: lease.lease_token.clone(),
        }
    }
}

/// The published state of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CurrentState {
    pub(crate) id: StateVersionId,
    pub(crate) serial: i64,
}

/// A client of the control plane. Follows no redirect and asks no proxy: the address is configured,
/// and the tokens are for it alone.
pub(crate) struct ControlPlane {
    client: reqwest::Client,
    base: String,
    runner_token: Secret,
}

impl ControlPlane {
    pub(crate) fn new(base: &str, runner_token: Secret) -> Result<Self, reqwest::Error> {
        let client = http_client()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()?;
        Ok(Self {
            client,
            base: base.trim_end_matches('/').to_owned(),
            runner_token,
        })
    }

    pub(crate) async fn lease(&self, request: &LeaseRequest) -> Result<Option<Lease>, CallError> {
        let limit = Duration::from_millis(request.wait_ms) + LEASE_TIME_MARGIN;
        let url = format!("{}/runner/v1/leases", self.base);
        let call = self
            .client
            .post(url)
            .bearer_auth(self.runner_token.expose())
            .json(request)
            .timeout(limit);
        let response = send(call).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        document(response).await.map(Some)
    }

    pub(crate) async fn heartbeat(
        &self,
        hold: &Hold,
        beat: &Heartbeat,
    ) -> Result<HeartbeatAnswer, CallError> {
        let call = self
            .attempt(Method::POST, hold, "heartbeat")
            .json(beat)
            .timeout(Duration::from_millis(beat.wait_ms) + CALL_TIME_MAX);
        document(send(call).await?).await
    }

    /// Writes the bytes of an input to a new file and says what they are.
    pub(crate) async fn fetch(
        &self,
        hold: &Hold,
        name: InputName,
        to: &Path,
        bytes_max: u64,
    ) -> Result<InputRef, CallError> {
        retry(move || async move {
            let path = format!("inputs/{}", name.as_str());
            let call = self
                .attempt(Method::GET, hold, &path)
                .timeout(TRANSFER_TIME_MAX);
            let mut response = send(call).await?;
            // Inputs hold secrets: they are this user's alone from their first byte.
            let mut options = tokio::fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(to).await.map_err(CallError::File)?;
            let (mut digest, mut bytes) = (Sha256::new(), 0);
            while let Some(chunk) = response.chunk().await.map_err(CallError::Unreachable)? {
                bytes += chunk.len() as u64;
                if bytes > bytes_max {
                    return Err(CallError::TooLong);
                }
                digest.update(&chunk);
                file.write_all(&chunk).await.map_err(CallError::File)?;
            }
            file.flush().await.map_err(CallError::File)?;
            Ok(InputRef {
                sha256: Sha256Digest::from_bytes(digest.finalize().into()),
                bytes,
            })
        })
        .await
    }

    /// Stores a file whose digest is known.
    pub(crate) async fn store(
        &self,
        hold: &Hold,
        kind: ArtifactKind,
        from: &Path,
        what: &InputRef,
    ) -> Result<StoredArtifact, CallError> {
        retry(move || async move {
            let file = tokio::fs::File::open(from).await.map_err(CallError::File)?;
            let call = self
                .attempt(Method::PUT, hold, &format!("artifacts/{}", kind.as_str()))
                .header(SHA256_HEADER, what.sha256.to_string())
                .header(reqwest::header::CONTENT_LENGTH, what.bytes)
                .body(reqwest::Body::wrap_stream(ReaderStream::new(file)))
                .timeout(TRANSFER_TIME_MAX);
            document(send(call).await?).await
        })
        .await
    }

    pub(crate) async fn append_log(
        &self,
        hold: &Hold,
        sequence: u64,
        bytes: Bytes,
    ) -> Result<(), CallError> {
        let path = format!("logs?sequence={sequence}");
        send(
            self.attempt(Method::POST, hold, &path)
                .body(bytes)
                .timeout(CALL_TIME_MAX),
        )
        .await
        .map(drop)
    }

    pub(crate) async fn report(&self, hold: &Hold, result: &PhaseResult) -> Result<(), CallError> {
        send(
            self.attempt(Method::POST, hold, "result")
                .json(result)
                .timeout(CALL_TIME_MAX),
        )
        .await
        .map(drop)
    }

    pub(crate) async fn hand_back(&self, hold: &Hold) -> Result<(), CallError> {
        retry(move || async move {
            send(
                self.attempt(Method::POST, hold, "hand-back")
                    .timeout(CALL_TIME_MAX),
            )
            .await
            .map(drop)
        })
        .await
    }

    /// The state that the lease's workspace has now, as its run reads it.
    pub(crate) async fn current_state(
        &self,
        lease: &Lease,
    ) -> Result<Option<CurrentState>, CallError> {
        retry(move || async move {
            let url = format!(
                "{}/api/v2/workspaces/{}/current-state-version",
                self.base, lease.workspace
            );
            let call = self
                .client
                .get(url)
                .bearer_auth(lease.run_token.expose())
                .timeout(CALL_TIME_MAX);
            match send(call).await {
                Ok(response) => {
                    let answer: StateDocument = document(response).await?;
                    Ok(Some(CurrentState {
                        id: answer.data.id,
                        serial: answer.data.attributes.serial,
                    }))
                }
                Err(CallError::Refused {
                    status: StatusCode::NOT_FOUND,
                    ..
                }) => Ok(None),
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// Begins a request to the control plane with a run's own token, for the gateway.
    pub(crate) fn as_run(
        &self,
        method: Method,
        path_and_query: &str,
        run_token: &Secret,
    ) -> RequestBuilder {
        self.client
            .request(method, format!("{}{path_and_query}", self.base))
            .bearer_auth(run_token.expose())
    }

    fn attempt(&self, method: Method, hold: &Hold, path: &str) -> RequestBuilder {
        let url = format!("{}/runner/v1/attempts/{}/{path}", self.base, hold.attempt);
        self.client
            .request(method, url)
            .bearer_auth(hold.lease_token.expose())
    }
}

/// The part of the `/api/v2` document that is compared.
#[derive(serde::Deserialize)]
struct StateDocument {
    data: StateData,
}

#[derive(serde::Deserialize)]
struct StateData {
    id: StateVersionId,
    attributes: StateAttributes,
}

#[derive(serde::Deserialize)]
struct StateAttributes {
    serial: i64,
}

/// A client with our TLS provider; the process may have installed it already.
pub(crate) fn http_client() -> reqwest::ClientBuilder {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Two threads may get here at once; the second finds the same provider installed.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    reqwest::Client::builder().connect_timeout(CONNECT_TIME_MAX)
}

async fn send(call: RequestBuilder) -> Result<Response, CallError> {
    let response = call.send().await.map_err(CallError::Unreachable)?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    if status == StatusCode::GONE {
        return Err(CallError::Lost);
    }
    let body = body(response).await.unwrap_or_default();
    let message = String::from_utf8_lossy(&body)
        .chars()
        .filter(|letter| !letter.is_control())
        .take(300)
        .collect();
    Err(CallError::Refused { status, message })
}

async fn document<T: serde::de::DeserializeOwned>(response: Response) -> Result<T, CallError> {
    serde_json::from_slice(&body(response).await?).map_err(CallError::Answer)
}

async fn body(response: Response) -> Result<Vec<u8>, CallError> {
    let mut bytes = Vec::new();
    let mut stream = response.bytes_stream();
    while let Some(chunk) = stream.try_next().await.map_err(CallError::Unreachable)? {
        if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(CallError::TooLong);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Makes a call that is harmless to repeat until it is answered, a few times.
pub(crate) async fn retry<T, F>(mut call: impl FnMut() -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let mut pause = RETRY_AFTER;
    for _ in 1..TRIES_MAX {
        match call().await {
            Err(error) if error.may_pass() => {
                tracing::debug!(error = %error, "A call failed; making it again");
            }
            other => return other,
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    call().await
}
