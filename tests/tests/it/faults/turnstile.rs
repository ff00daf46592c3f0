//! A way between a runner and its control plane on which one request can be held: before the control
//! plane sees it, or before the runner sees the answer. What breaks meanwhile breaks exactly there.

use std::sync::{Arc, Mutex, MutexGuard, mpsc};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State as Shared};
use axum::http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TRANSFER_ENCODING};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::state::State;
use crate::support::{DEADLINE, http, runtime};

/// The largest body that passes.
const BODY_BYTES_MAX: usize = 64 << 20;
/// What is said by each connection for itself.
const HOP_BY_HOP: [HeaderName; 4] = [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING];

/// Which request is held, and on which side of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    LeaseAsked,
    LeaseGiven,
    InputsFetched,
    StartAsked,
    StartTaken,
    StateOffered,
    StateTaken,
    ResultOffered,
}

/// The way, which stays open as long as the value.
pub struct Turnstile {
    url: String,
    way: Arc<Way>,
    serving: tokio::task::JoinHandle<()>,
}

struct Way {
    target: String,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    armed: Option<Armed>,
    is_cut: bool,
    newest: Option<State>,
}

struct Armed {
    stop: Stop,
    reached: mpsc::Sender<()>,
    go: oneshot::Receiver<Answer>,
}

/// What becomes of a held request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It goes on its way.
    Passes,
    /// Whoever asked never learns what became of it.
    Lost,
}

/// A request that is held, or will be.
pub struct Held {
    reached: mpsc::Receiver<()>,
    go: oneshot::Sender<Answer>,
}

impl Held {
    /// Waits until the request is there.
    pub fn wait(&self, stop: Stop) {
        let reached = self.reached.recv_timeout(DEADLINE);
        reached.unwrap_or_else(|_| panic!("no request came as far as {stop:?}"));
    }

    /// Lets it go; its sender may be dead by now.
    pub fn release(self, answer: Answer) {
        let _ = self.go.send(answer);
    }
}

impl Turnstile {
    pub fn before(target: String) -> Self {
        let way = Arc::new(Way {
            target,
            inner: Mutex::default(),
        });
        let router = Router::new().fallback(pass).with_state(Arc::clone(&way));
        let listener = runtime().block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let serving = runtime().spawn(async move {
            let served = axum::serve(listener, router).await;
            served.expect("a listener on loopback accepts");
        });
        Self {
            url: format!("http://{address}"),
            way,
            serving,
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Holds the next request that comes there.
    pub fn arm(&self, stop: Stop) -> Held {
        let (sender, reached) = mpsc::channel();
        let (go, released) = oneshot::channel();
        self.way.lock().armed = Some(Armed {
            stop,
            reached: sender,
            go: released,
        });
        Held { reached, go }
    }

    /// Lets nothing through, or everything again.
    pub fn cut(&self, is_cut: bool) {
        self.way.lock().is_cut = is_cut;
    }

    /// The newest state that the control plane has said to have taken.
    pub fn newest(&self) -> Option<State> {
        self.way.lock().newest.clone()
    }

    /// Begins anew.
    pub fn forget(&self) {
        *self.way.lock() = Inner::default();
    }
}

impl Drop for Turnstile {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Way {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no holder panics")
    }

    /// Waits if this is where somebody wants to hold a request; whether it may go on.
    async fn hold(&self, is_there: impl Fn(Stop) -> bool) -> bool {
        let armed = {
            let mut inner = self.lock();
            let is_there = inner.armed.as_ref().is_some_and(|it| is_there(it.stop));
            if is_there { inner.armed.take() } else { None }
        };
        if let Some(armed) = armed {
            // Whoever armed it may have given up; then nobody will break anything here.
            let _ = armed.reached.send(());
            if armed.go.await == Ok(Answer::Lost) {
                return false;
            }
        }
        !self.lock().is_cut
    }

    async fn forward(&self, asked: &Parts, body: Bytes) -> Result<Response, reqwest::Error> {
        let path = asked.uri.path_and_query().map_or("/", |path| path.as_str());
        let call = http()
            .request(asked.method.clone(), format!("{}{path}", self.target))
            .headers(own_headers(&asked.headers))
            .body(body);
        let answer = call.send().await?;
        let (status, headers) = (answer.status(), own_headers(answer.headers()));
        let mut passed = Response::new(Body::from(answer.bytes().await?));
        *passed.status_mut() = status;
        *passed.headers_mut() = headers;
        Ok(passed)
    }

    /// Remembers a state that was taken.
    fn note(&self, asked: &Asked, body: &[u8]) {
        let state = serde_json::from_slice(body).ok();
        let state = state.as_ref().and_then(State::parse);
        let mut inner = self.lock();
        if let Some(state) = state.filter(|_| asked.is_state)
            && inner
                .newest
                .as_ref()
                .is_none_or(|it| it.serial < state.serial)
        {
            inner.newest = Some(state);
        }
    }
}

async fn pass(Shared(way): Shared<Arc<Way>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let asked = Asked::of(&head, &body);
    if !way.hold(|stop| asked.is_before(stop)).await {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    let Ok(answer) = way.forward(&head, body.clone()).await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let status = answer.status();
    if status.is_success() {
        way.note(&asked, &body);
    }
    if !way.hold(|stop| asked.is_after(stop, status)).await {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    answer
}

/// A request, as far as it matters here.
struct Asked {
    method: Method,
    path: String,
    announces_start: bool,
    is_state: bool,
}

impl Asked {
    fn of(head: &Parts, body: &[u8]) -> Self {
        let path = head.uri.path().to_owned();
        let beat: Option<Value> = path
            .ends_with("/heartbeat")
            .then(|| serde_json::from_slice(body).unwrap_or_default());
        let is_state = path.starts_with("/api/v2/uploads/states/")
            || path.ends_with("/artifacts/errored_state");
        Self {
            method: head.method.clone(),
            announces_start: beat.is_some_and(|beat| beat["tofu_started"] == true),
            is_state: is_state && head.method == Method::PUT,
            path,
        }
    }

    fn asks_for_lease(&self) -> bool {
        self.method == Method::POST && self.path == "/runner/v1/leases"
    }

    fn is_before(&self, stop: Stop) -> bool {
        match stop {
            Stop::LeaseAsked => self.asks_for_lease(),
            Stop::StartAsked => self.announces_start,
            Stop::StateOffered => self.is_state,
            Stop::ResultOffered => self.path.ends_with("/result"),
            Stop::LeaseGiven | Stop::InputsFetched | Stop::StartTaken | Stop::StateTaken => false,
        }
    }

    fn is_after(&self, stop: Stop, status: StatusCode) -> bool {
        match stop {
            Stop::LeaseGiven => self.asks_for_lease() && status == StatusCode::OK,
            // The only input that comes neither with every phase nor in any certain order.
            Stop::InputsFetched => self.path.ends_with("/inputs/plan") && status.is_success(),
            Stop::StartTaken => self.announces_start && status.is_success(),
            Stop::StateTaken => self.is_state && status.is_success(),
            Stop::LeaseAsked | Stop::StartAsked | Stop::StateOffered | Stop::ResultOffered => false,
        }
    }
}

fn own_headers(headers: &HeaderMap) -> HeaderMap {
    let mut own = headers.clone();
    for name in &HOP_BY_HOP {
        own.remove(name);
    }
    own
}
