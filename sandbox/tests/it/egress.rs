//! The CONNECT proxy, tried from a real sandbox and on loopback.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use stackship_sandbox::egress::{Decision, Egress, EgressPolicy, Outside, Refusal};
use stackship_sandbox::{Environment, Network};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{finish, launch, shell, spec};

/// Names with made-up addresses; every checked address leads to one listener.
struct Made {
    server: SocketAddr,
}

#[async_trait]
impl Outside for Made {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let addresses: &[&str] = match host {
            "good.example" => &["93.184.215.14"],
            "mixed.example" => &["93.184.215.14", "10.0.0.1"],
            "metadata.example" => &["169.254.169.254"],
            _ => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(addresses
            .iter()
            .map(|address| address.parse().unwrap())
            .collect())
    }

    async fn connect(&self, checked: SocketAddr) -> io::Result<TcpStream> {
        assert_eq!(
            checked.ip().to_string(),
            "93.184.215.14",
            "only a checked address"
        );
        TcpStream::connect(self.server).await
    }
}

type Decisions = Arc<Mutex<Vec<Decision>>>;

/// A proxy on loopback; gives its address, its decisions and the listener behind `good.example`.
async fn proxy(rules: &[&str], made: bool) -> (SocketAddr, Decisions, TcpListener) {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let decisions = Decisions::default();
    let reported = Arc::clone(&decisions);
    let policy = EgressPolicy::parse(rules).unwrap();
    let mut egress = Egress::new(policy, move |decision| {
        reported.lock().unwrap().push(decision);
    });
    if made {
        egress = egress.with_outside(Arc::new(Made {
            server: server.local_addr().unwrap(),
        }));
    }
    tokio::spawn(egress.serve(listener));
    (address, decisions, server)
}

async fn ask(proxy: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    // A proxy that closes on unread bytes resets the connection; what it said is still here.
    let ended = stream.read_to_string(&mut answer).await;
    assert!(
        ended.is_ok() || answer.starts_with("HTTP/1.1 4"),
        "{ended:?}"
    );
    answer
}

async fn connect(proxy: SocketAddr, target: &str) -> String {
    ask(
        proxy,
        format!("CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes(),
    )
    .await
}

fn last(decisions: &Decisions) -> Decision {
    decisions.lock().unwrap().last().unwrap().clone()
}

#[tokio::test]
async fn an_allowed_name_is_tunneled_to_its_checked_address() {
    let (proxy, decisions, server) = proxy(&["good.example"], true).await;
    let mut client = TcpStream::connect(proxy).await.unwrap();
    client
        .write_all(b"CONNECT good.example:443 HTTP/1.1\r\n\r\nearly")
        .await
        .unwrap();
    let (mut accepted, _) = server.accept().await.unwrap();
    let mut bytes = [0; 5];
    accepted.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"early");
    accepted.write_all(b"back").await.unwrap();
    drop(accepted);
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\nback");
    let expected = Decision {
        target: Some(("good.example".to_owned(), 443)),
        result: Ok("93.184.215.14".parse().unwrap()),
    };
    assert_eq!(last(&decisions), expected);
}

#[tokio::test]
async fn what_the_list_does_not_allow_is_refused() {
    let (proxy, decisions, _server) = proxy(&["good.example", "*.mixed.example"], true).await;
    for target in [
        "other.example:443",
        "good.example:5432",
        "127.0.0.1:443",
        "x.good.example:443",
        "mixed.example:443",
    ] {
        assert!(
            connect(proxy, target).await.starts_with("HTTP/1.1 403 "),
            "{target}"
        );
        assert_eq!(
            last(&decisions).result,
            Err(Refusal::NotAllowed),
            "{target}"
        );
    }
}

#[tokio::test]
async fn one_blocked_address_of_a_name_is_enough_to_refuse_it() {
    let (proxy, decisions, _server) =
        proxy(&["mixed.example", "metadata.example", "gone.example"], true).await;
    for (target, refusal) in [
        ("mixed.example:443", Refusal::Blocked),
        ("metadata.example:443", Refusal::Blocked),
        ("gone.example:443", Refusal::Unresolved),
    ] {
        assert!(
            connect(proxy, target).await.starts_with("HTTP/1.1 403 "),
            "{target}"
        );
        assert_eq!(last(&decisions).result, Err(refusal), "{target}");
    }
}

#[tokio::test]
async fn every_spelling_of_an_internal_address_is_blocked_even_when_it_is_on_the_list() {
    let spellings = [
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "127.1",
        "0",
        "localhost",
        "127.0.0.1",
    ];
    let (proxy, decisions, _server) = proxy(&spellings, false).await;
    for host in spellings {
        let answer = connect(proxy, &format!("{host}:443")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
        assert_eq!(last(&decisions).result, Err(Refusal::Blocked), "{host}");
    }
    for target in [
        "[::1]:443",
        "[::ffff:169.254.169.254]:443",
        "169.254.169.254.:443",
    ] {
        assert!(
            connect(proxy, target).await.starts_with("HTTP/1.1 400 "),
            "{target}"
        );
    }
}

#[tokio::test]
async fn another_method_and_an_endless_head_are_refused() {
    let (proxy, decisions, _server) = proxy(&["good.example"], true).await;
    let answer = ask(proxy, b"GET http://good.example/ HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(last(&decisions).result, Err(Refusal::Method));
    let head = [
        b"CONNECT good.example:443 HTTP/1.1\r\nX: ".to_vec(),
        vec![b'x'; 20_000],
    ]
    .concat();
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    // The proxy may close before everything is sent.
    drop(stream.write_all(&head).await);
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer).await);
    assert_eq!(
        last(&decisions),
        Decision {
            target: None,
            result: Err(Refusal::Malformed)
        }
    );
}

#[tokio::test]
async fn a_head_that_does_not_come_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap();
    let decisions = Decisions::default();
    let reported = Arc::clone(&decisions);
    let policy = EgressPolicy::parse(["good.example"]).unwrap();
    let egress = Egress::new(policy, move |decision| {
        reported.lock().unwrap().push(decision);
    });
    tokio::spawn(
        egress
            .with_head_time(Duration::from_millis(20))
            .serve(listener),
    );
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(b"CONNECT good").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(last(&decisions).result, Err(Refusal::Malformed));
}

#[tokio::test]
async fn tools_inside_use_the_proxy_and_see_its_refusal() {
    let network = Network {
        gateway: false,
        egress: true,
    };
    let mut step = shell(
        "one",
        "curl -s --max-time 20 -o /dev/null -w '%{http_connect}' https://other.example/; echo \" $?\"",
    );
    step.environment = Environment::base(network);
    let mut spec = spec(vec![step]);
    spec.network = network;
    let mut sandbox = launch(spec).await;
    let listener = sandbox.take_egress().unwrap();
    let policy = EgressPolicy::parse(["good.example"]).unwrap();
    let decisions = Decisions::default();
    let reported = Arc::clone(&decisions);
    let egress = Egress::new(policy, move |decision| {
        reported.lock().unwrap().push(decision);
    });
    let serving = tokio::spawn(egress.serve(listener));
    let ran = finish(sandbox).await;
    serving.abort();
    assert_eq!(ran.stdout, "403 56\n", "curl's 56 is: the proxy refused");
    assert_eq!(
        last(&decisions).target,
        Some(("other.example".to_owned(), 443))
    );
}
