//! Connections over real sockets: what a peer that does not go on costs, and what it does not cost
//! others. Each test has one small limit, the one it is about; everything else may take its time.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::routing::{get, post};
use http_body_util::BodyExt as _;
use stackship_api::serving::{self, Limits, Stalled};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::world::SOON;

/// A limit that a test is about: a quarter of a second, so that a busy machine keeps the others apart.
const SMALL: Duration = Duration::from_millis(250);
const HELLO: &str = "GET / HTTP/1.1\r\nHost: ship\r\n\r\n";
const GATED: &str = "GET /gated HTTP/1.1\r\nHost: ship\r\n\r\n";
/// What an endless answer is made of.
const PART: &[u8] = &[0; 8 * 1024];
/// More than every buffer between two sockets holds.
const MANY_BYTES: usize = 32 << 20;

/// A server that is about connections alone.
pub struct Serving {
    pub address: SocketAddr,
    pub stop: CancellationToken,
    pub ended: JoinHandle<()>,
}

impl Serving {
    pub async fn new(router: Router, limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let ended = tokio::spawn(serving::serve(listener, router, limits, stop.clone()));
        Self {
            address,
            stop,
            ended,
        }
    }

    /// Connects and says something.
    pub async fn say(&self, text: &str) -> Peer {
        let mut peer = Peer(TcpStream::connect(self.address).await.unwrap());
        peer.say(text.as_bytes()).await;
        peer
    }
}

/// The other end of a connection.
pub struct Peer(TcpStream);

impl Peer {
    pub async fn say(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// Waits until the server has said exactly this.
    pub async fn is_told(&mut self, expected: &str) {
        let mut said = vec![0; expected.len()];
        let read = tokio::time::timeout(SOON, self.0.read_exact(&mut said)).await;
        read.expect("the server says something").unwrap();
        assert_eq!(String::from_utf8_lossy(&said), expected);
    }

    /// Everything that the server still says until it closes the connection.
    pub async fn rest(mut self) -> String {
        let mut text = Vec::new();
        let read = tokio::time::timeout(SOON, self.0.read_to_end(&mut text)).await;
        // A reset is an end too, and what came before it counts.
        drop(read.expect("the server lets go of the connection"));
        String::from_utf8(text).unwrap()
    }

    /// The next answer with a body that fits one read, as those of these routes do.
    async fn answer(&mut self) -> String {
        let mut text = String::new();
        let reading = async {
            while !text.contains("\r\n\r\n") || !text.ends_with('.') {
                let mut part = [0; 1024];
                let read = self.0.read(&mut part).await.unwrap();
                assert_ne!(read, 0, "the connection ended after {text:?}");
                text.push_str(std::str::from_utf8(&part[..read]).unwrap());
            }
        };
        tokio::time::timeout(SOON, reading)
            .await
            .expect("an answer comes");
        text
    }
}

fn patient() -> Limits {
    Limits {
        connections_max: 64,
        head_time_max: SOON,
        silence_max: SOON,
        body_head_start: SOON,
        body_rate_min: 1,
        linger_time_max: SOON,
    }
}

/// Where requests wait until a test lets them through.
struct Gate {
    arrived: Semaphore,
    open: Semaphore,
}

impl Gate {
    fn closed() -> Arc<Self> {
        let (arrived, open) = (Semaphore::new(0), Semaphore::new(0));
        Arc::new(Self { arrived, open })
    }

    /// Waits until so many requests are here.
    async fn has(&self, requests: u32) {
        let arrived = tokio::time::timeout(SOON, self.arrived.acquire_many(requests)).await;
        arrived.expect("the requests arrive").unwrap().forget();
    }
}

/// Answers at once, counts what comes, or waits at the gate.
fn router(gate: &Arc<Gate>) -> Router {
    let gate = Arc::clone(gate);
    let gated = async move || {
        gate.arrived.add_permits(1);
        gate.open.acquire().await.unwrap().forget();
        "through."
    };
    let count = async |body: Body| match body.collect().await {
        Ok(whole) => (StatusCode::OK, format!("{}.", whole.to_bytes().len())),
        Err(error) if Stalled::is_behind(&error) => (StatusCode::REQUEST_TIMEOUT, "late.".into()),
        Err(_) => (StatusCode::BAD_REQUEST, "broken.".into()),
    };
    Router::new()
        .route("/", get(async || "hello."))
        .route("/gated", get(gated))
        .route("/count", post(count))
        .route("/refuse", post(async || (StatusCode::FORBIDDEN, "no.")))
}

#[tokio::test]
async fn who_says_no_whole_head_is_let_go_and_so_is_who_says_nothing_more() {
    let limits = Limits {
        head_time_max: SMALL,
        ..patient()
    };
    let serving = Serving::new(router(&Gate::closed()), limits).await;
    for unfinished in ["", "GET / HTTP/1.1\r\nHost"] {
        assert_eq!(serving.say(unfinished).await.rest().await, "");
    }
    let kept_alive = serving.say(HELLO).await.rest().await;
    assert!(kept_alive.ends_with("hello."), "{kept_alive}");
}

#[tokio::test]
async fn a_body_that_stands_still_is_given_up() {
    let limits = Limits {
        silence_max: SMALL,
        ..patient()
    };
    let serving = Serving::new(router(&Gate::closed()), limits).await;
    for sent in ["", "ten bytes."] {
        let head = "POST /count HTTP/1.1\r\nHost: ship\r\nContent-Length: 100\r\n\r\n";
        let mut peer = serving.say(&format!("{head}{sent}")).await;
        let answer = peer.answer().await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
}

#[tokio::test]
async fn a_body_that_drips_is_given_up() {
    let limits = Limits {
        body_head_start: SMALL,
        body_rate_min: 1 << 30,
        ..patient()
    };
    let serving = Serving::new(router(&Gate::closed()), limits).await;
    let head = "POST /count HTTP/1.1\r\nHost: ship\r\nContent-Length: 1000000\r\n\r\n";
    let peer = serving.say(head).await;
    let (mut from, mut to) = peer.0.into_split();
    let dripping = tokio::spawn(async move {
        let mut tick = tokio::time::interval(Duration::from_millis(5));
        // Until the server lets go of the connection.
        while to.write_all(b"x").await.is_ok() {
            tick.tick().await;
        }
    });
    let mut answer = vec![0; 12];
    let read = tokio::time::timeout(SOON, from.read_exact(&mut answer)).await;
    read.expect("an answer comes").unwrap();
    assert_eq!(answer, b"HTTP/1.1 408");
    drop(from);
    serving.stop.cancel();
    tokio::time::timeout(SOON, dripping).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_body_in_pieces_is_taken() {
    let serving = Serving::new(router(&Gate::closed()), Limits::default()).await;
    let head = "POST /count HTTP/1.1\r\nHost: ship\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut peer = serving.say(head).await;
    for _ in 0..10 {
        peer.say(b"3\r\nabc\r\n").await;
        tokio::task::yield_now().await;
    }
    peer.say(b"0\r\n\r\n").await;
    let answer = peer.answer().await;
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("30."),
        "{answer}"
    );
}

#[tokio::test]
async fn idle_connections_do_not_keep_others_out() {
    let limits = Limits {
        connections_max: 4,
        ..patient()
    };
    let serving = Serving::new(router(&Gate::closed()), limits).await;
    let mut crowd = Vec::new();
    for _ in 0..8 {
        crowd.push(serving.say("GET / HTTP/1.1\r\nHo").await);
    }
    let mut newcomer = serving.say(HELLO).await;
    assert!(newcomer.answer().await.ends_with("hello."));
    let longest = crowd.swap_remove(0);
    assert_eq!(longest.rest().await, "");
}

#[tokio::test]
async fn a_request_at_hand_gives_its_place_to_nobody() {
    let limits = Limits {
        connections_max: 2,
        ..patient()
    };
    let gate = Gate::closed();
    let serving = Serving::new(router(&gate), limits).await;
    let mut busy = [serving.say(GATED).await, serving.say(GATED).await];
    gate.has(2).await;
    let mut newcomer = serving.say(HELLO).await;
    gate.open.add_permits(1);
    // Whose request is through first, waits for the next one and makes room.
    assert!(newcomer.answer().await.ends_with("hello."));
    gate.open.add_permits(1);
    for peer in &mut busy {
        assert!(peer.answer().await.ends_with("through."));
    }
}

#[tokio::test]
async fn a_shutdown_waits_for_requests_and_not_for_idle_connections() {
    let gate = Gate::closed();
    let serving = Serving::new(router(&gate), patient()).await;
    let mut idle = serving.say(HELLO).await;
    idle.answer().await;
    let half = serving.say("GET / HTT").await;
    let mut busy = serving.say(GATED).await;
    gate.has(1).await;
    // Whoever comes after is served after: the three are known to the server.
    serving.say(HELLO).await.answer().await;
    serving.stop.cancel();
    assert_eq!(idle.rest().await, "");
    assert_eq!(half.rest().await, "");
    assert!(!serving.ended.is_finished());
    gate.open.add_permits(1);
    assert!(busy.answer().await.ends_with("through."));
    assert_eq!(busy.rest().await, "", "no further request is taken");
    tokio::time::timeout(SOON, serving.ended)
        .await
        .expect("it ends")
        .unwrap();
}

#[tokio::test]
async fn who_is_refused_early_can_read_why() {
    let serving = Serving::new(router(&Gate::closed()), patient()).await;
    let head =
        format!("POST /refuse HTTP/1.1\r\nHost: ship\r\nContent-Length: {MANY_BYTES}\r\n\r\n");
    let mut peer = serving.say(&head).await;
    // A plain client sends everything before it looks for an answer.
    peer.say(&vec![0; MANY_BYTES]).await;
    let answer = peer.answer().await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

#[tokio::test]
async fn the_rest_of_a_refused_request_is_not_taken_for_ever() {
    let limits = Limits {
        linger_time_max: SMALL,
        ..patient()
    };
    let serving = Serving::new(router(&Gate::closed()), limits).await;
    let head = "POST /refuse HTTP/1.1\r\nHost: ship\r\nContent-Length: 1000000\r\n\r\n";
    let mut peer = serving.say(head).await;
    peer.answer().await;
    let sending = async {
        let mut tick = tokio::time::interval(Duration::from_millis(5));
        while peer.0.write_all(b"x").await.is_ok() {
            tick.tick().await;
        }
    };
    let ended = tokio::time::timeout(SOON, sending).await;
    ended.expect("the server lets go of the connection");
}

#[tokio::test]
async fn an_answer_that_nobody_takes_is_given_up() {
    let limits = Limits {
        silence_max: SMALL,
        ..patient()
    };
    let given_up = CancellationToken::new();
    let held = given_up.clone();
    let endless = get(async move || {
        let guard = held.clone().drop_guard();
        let parts = futures::stream::repeat_with(move || {
            let _held = &guard;
            Ok::<_, Infallible>(Bytes::from_static(PART))
        });
        Body::from_stream(parts)
    });
    let serving = Serving::new(Router::new().route("/", endless), limits).await;
    let _never_reads = serving.say(HELLO).await;
    let waited = tokio::time::timeout(SOON, given_up.cancelled()).await;
    waited.expect("the answer is let go");
}

#[tokio::test]
async fn an_answer_that_is_taken_byte_by_byte_is_given_up() {
    let limits = Limits {
        body_head_start: SMALL,
        body_rate_min: 1 << 30,
        ..patient()
    };
    let large = get(async || vec![b'x'; MANY_BYTES]);
    let serving = Serving::new(Router::new().route("/", large), limits).await;
    let mut peer = serving.say(HELLO).await;
    let taking = async {
        let (mut tick, mut part) = (tokio::time::interval(Duration::from_millis(5)), [0; 1024]);
        let mut taken = 0;
        while let Ok(1..) = peer.0.read(&mut part).await.inspect(|read| taken += read) {
            tick.tick().await;
        }
        taken
    };
    let taken = tokio::time::timeout(SOON, taking).await;
    let taken = taken.expect("the server lets go of the connection");
    assert!(taken < MANY_BYTES, "all of it was sent");
}

#[tokio::test]
async fn who_has_taken_a_whole_answer_makes_room() {
    let limits = Limits {
        connections_max: 1,
        head_time_max: Duration::from_hours(1),
        ..patient()
    };
    let large = get(async || vec![b'x'; MANY_BYTES]);
    let serving = Serving::new(router(&Gate::closed()).route("/large", large), limits).await;
    let ask = "GET /large HTTP/1.1\r\nHost: ship\r\n\r\n";
    let mut peer = serving.say(ask).await;
    let mut whole = vec![0; MANY_BYTES];
    let (some, rest) = whole.split_at_mut(MANY_BYTES / 2);
    peer.0.read_exact(some).await.unwrap();
    let mut newcomer = serving.say(HELLO).await;
    peer.0.read_exact(rest).await.unwrap();
    // The head of the answer is among what was read, and as much of the body is still to come.
    assert!(newcomer.answer().await.ends_with("hello."));
}
