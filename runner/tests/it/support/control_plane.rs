//! A control plane that speaks `/runner/v1` and the few requests of `/api/v2` that a run makes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use stackship_domain::Sha256Digest;
use stackship_domain::ids::ObjectId;
use stackship_domain::run::Predecessor;
use stackship_runner_protocol::{
    ArtifactKind, Heartbeat, HeartbeatAnswer, InputName, Lease, PhaseResult, SHA256_HEADER,
    StoredArtifact,
};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::leases::fresh_object;
use super::state::States;
use super::{PATIENCE, RUNNER_TOKEN};

/// How long a lease request waits here.
const LEASE_WAIT: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Inner {
    inputs: HashMap<&'static str, Vec<u8>>,
    objects: HashMap<ObjectId, Vec<u8>>,
    log: Vec<u8>,
    next_sequence: u64,
    cancel: bool,
    lost: bool,
    tofu_started: bool,
    requests: Vec<String>,
    /// How many more requests are not answered.
    away_for: u32,
    /// How many more heartbeats are not answered.
    deaf_for: u32,
}

pub struct ControlPlane {
    pub url: String,
    inner: Mutex<Inner>,
    pub(super) states: Mutex<States>,
    lease: watch::Sender<Option<Lease>>,
    current: Mutex<Option<Lease>>,
    result: watch::Sender<Option<PhaseResult>>,
    handed_back: watch::Sender<bool>,
    log_length: watch::Sender<usize>,
    orders: watch::Sender<()>,
}

type Shared = Arc<ControlPlane>;

impl ControlPlane {
    pub async fn start() -> Shared {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Arc::new(Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            inner: Mutex::default(),
            states: Mutex::default(),
            lease: watch::channel(None).0,
            current: Mutex::default(),
            result: watch::channel(None).0,
            handed_back: watch::channel(false).0,
            log_length: watch::channel(0).0,
            orders: watch::channel(()).0,
        });
        let router = Router::new()
            .route("/runner/v1/leases", post(lease))
            .route("/runner/v1/attempts/{attempt}/heartbeat", post(heartbeat))
            .route("/runner/v1/attempts/{attempt}/inputs/{name}", get(input))
            .route(
                "/runner/v1/attempts/{attempt}/artifacts/{kind}",
                put(artifact),
            )
            .route("/runner/v1/attempts/{attempt}/logs", post(logs))
            .route("/runner/v1/attempts/{attempt}/result", post(result))
            .route("/runner/v1/attempts/{attempt}/hand-back", post(hand_back))
            .merge(super::state::router())
            .layer(middleware::from_fn_with_state(
                Arc::clone(&shared),
                authenticate,
            ))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        shared
    }

    pub fn offer(&self, lease: Lease) {
        let mut inner = self.inner.lock().unwrap();
        (inner.log, inner.next_sequence, inner.tofu_started) = (Vec::new(), 0, false);
        drop(inner);
        self.result.send_replace(None);
        *self.current.lock().unwrap() = Some(lease.clone());
        self.lease.send_replace(Some(lease));
    }

    pub async fn result(&self) -> PhaseResult {
        let mut receiver = self.result.subscribe();
        let found = tokio::time::timeout(PATIENCE, receiver.wait_for(Option::is_some)).await;
        found
            .unwrap_or_else(|_| panic!("no result in time; the log says:\n{}", self.log()))
            .unwrap()
            .clone()
            .unwrap()
    }

    /// Waits until the log holds a text.
    pub async fn logged(&self, text: &str) {
        let mut receiver = self.log_length.subscribe();
        let found = receiver.wait_for(|_| self.log().contains(text));
        assert!(
            tokio::time::timeout(PATIENCE, found).await.is_ok(),
            "the log lacks `{text}`:\n{}",
            self.log()
        );
    }

    pub fn has_result(&self) -> bool {
        self.result.borrow().is_some()
    }

    pub fn was_handed_back(&self) -> bool {
        *self.handed_back.borrow()
    }

    pub fn input(&self, name: InputName, bytes: Vec<u8>) {
        self.inner
            .lock()
            .unwrap()
            .inputs
            .insert(name.as_str(), bytes);
    }

    pub fn input_bytes(&self, name: InputName) -> Vec<u8> {
        self.inner.lock().unwrap().inputs[name.as_str()].clone()
    }

    pub fn object(&self, id: ObjectId) -> Vec<u8> {
        self.inner.lock().unwrap().objects[&id].clone()
    }

    pub fn log(&self) -> String {
        String::from_utf8(self.inner.lock().unwrap().log.clone()).unwrap()
    }

    /// Answers none of the next heartbeats.
    pub fn be_deaf_for(&self, heartbeats: u32) {
        self.inner.lock().unwrap().deaf_for = heartbeats;
    }

    /// How many heartbeats came.
    pub fn heartbeats(&self) -> usize {
        let inner = self.inner.lock().unwrap();
        let beats = inner.requests.iter();
        beats.filter(|it| it.ends_with("/heartbeat")).count()
    }

    /// Is not there for that many requests of an attempt.
    pub fn be_away_for(&self, requests: u32) {
        self.inner.lock().unwrap().away_for = requests;
    }

    pub fn cancel(&self) {
        self.inner.lock().unwrap().cancel = true;
        self.orders.send_replace(());
    }

    pub fn lose(&self) {
        self.inner.lock().unwrap().lost = true;
        self.orders.send_replace(());
    }

    pub fn tofu_was_started(&self) -> bool {
        self.inner.lock().unwrap().tofu_started
    }

    /// Every request so far, as `METHOD /path`.
    pub fn requests(&self) -> Vec<String> {
        self.inner.lock().unwrap().requests.clone()
    }

    /// The published state.
    pub fn published(&self) -> Predecessor {
        self.states.lock().unwrap().predecessor()
    }

    pub(super) fn current(&self) -> Lease {
        self.current.lock().unwrap().clone().unwrap()
    }
}

/// Every request carries exactly the token of its door.
async fn authenticate(
    State(shared): State<Shared>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    {
        let mut inner = shared.inner.lock().unwrap();
        inner.requests.push(format!("{} {path}", request.method()));
        if path != "/runner/v1/leases" && inner.away_for > 0 {
            inner.away_for -= 1;
            return StatusCode::BAD_GATEWAY.into_response();
        }
    }
    let presented = request
        .headers()
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    let expected = if path == "/runner/v1/leases" {
        RUNNER_TOKEN.to_owned()
    } else if path.starts_with("/runner/v1/") {
        shared.current().lease_token.expose().to_owned()
    } else {
        shared.current().run_token.expose().to_owned()
    };
    if presented != Some(format!("Bearer {expected}").as_str()) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    next.run(request).await
}

async fn lease(State(shared): State<Shared>) -> Response {
    let mut offers = shared.lease.subscribe();
    let offered = offers.wait_for(Option::is_some);
    // The borrowed value is a lock: it ends before the offer is taken.
    let is_offered = matches!(tokio::time::timeout(LEASE_WAIT, offered).await, Ok(Ok(_)));
    let lease = if is_offered {
        shared.lease.send_replace(None)
    } else {
        None
    };
    match lease {
        Some(lease) => Json(lease).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

async fn heartbeat(State(shared): State<Shared>, Json(beat): Json<Heartbeat>) -> Response {
    let mut orders = shared.orders.subscribe();
    {
        let mut inner = shared.inner.lock().unwrap();
        if inner.deaf_for > 0 {
            inner.deaf_for -= 1;
            return StatusCode::BAD_GATEWAY.into_response();
        }
    }
    let has_order = {
        let inner = shared.inner.lock().unwrap();
        inner.cancel || inner.lost
    };
    if !has_order {
        // Without an order the answer comes when the wait is over.
        drop(tokio::time::timeout(Duration::from_millis(beat.wait_ms), orders.changed()).await);
    }
    let mut inner = shared.inner.lock().unwrap();
    if inner.lost {
        return StatusCode::GONE.into_response();
    }
    inner.tofu_started |= beat.tofu_started && !inner.cancel;
    let answer = HeartbeatAnswer {
        lease_expires_at: jiff::Timestamp::UNIX_EPOCH,
        cancel: inner.cancel,
    };
    Json(answer).into_response()
}

async fn input(State(shared): State<Shared>, Path((_, name)): Path<(String, String)>) -> Response {
    match shared.inner.lock().unwrap().inputs.get(name.as_str()) {
        Some(bytes) => bytes.clone().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn artifact(
    State(shared): State<Shared>,
    Path((_, kind)): Path<(String, ArtifactKind)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    assert!(body.len() as u64 <= kind.bytes_max());
    if shared.inner.lock().unwrap().lost {
        return StatusCode::GONE.into_response();
    }
    let (object, sha256) = (fresh_object(), Sha256Digest::of(&body));
    assert_eq!(headers[SHA256_HEADER], sha256.to_string());
    shared
        .inner
        .lock()
        .unwrap()
        .objects
        .insert(object, body.to_vec());
    Json(StoredArtifact {
        object,
        sha256,
        bytes: body.len() as u64,
    })
    .into_response()
}

async fn logs(
    State(shared): State<Shared>,
    Query(query): Query<HashMap<String, u64>>,
    body: Bytes,
) -> StatusCode {
    let mut inner = shared.inner.lock().unwrap();
    if inner.lost {
        return StatusCode::GONE;
    }
    if query["sequence"] != inner.next_sequence {
        return StatusCode::CONFLICT;
    }
    inner.next_sequence += 1;
    inner.log.extend_from_slice(&body);
    let length = inner.log.len();
    drop(inner);
    shared.log_length.send_replace(length);
    StatusCode::NO_CONTENT
}

async fn result(State(shared): State<Shared>, Json(result): Json<PhaseResult>) -> StatusCode {
    if shared.inner.lock().unwrap().lost {
        return StatusCode::GONE;
    }
    shared.result.send_replace(Some(result));
    StatusCode::NO_CONTENT
}

async fn hand_back(State(shared): State<Shared>) -> StatusCode {
    shared.handed_back.send_replace(true);
    StatusCode::NO_CONTENT
}
