//! Serving the listener.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::address::is_public;
use super::policy::EgressPolicy;
use super::request::{HEAD_MAX, end_of_head, parse};

/// Connections of one sandbox at the same time.
const CONNECTIONS_MAX: usize = 128;
/// From the connection to the end of the head, when nothing else is set.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// For one look-up.
const RESOLVE_TIME_MAX: Duration = Duration::from_secs(10);
/// For one connection to the outside.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 16;

/// The network outside, as the proxy uses it.
#[async_trait]
pub trait Outside: Send + Sync {
    /// All addresses of the name.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;

    /// Connects to an address that was checked.
    async fn connect(&self, checked: SocketAddr) -> io::Result<TcpStream>;
}

/// The network and resolver of the host.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostNetwork;

#[async_trait]
impl Outside for HostNetwork {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(lookup_host((host, 0))
            .await?
            .map(|address| address.ip())
            .collect())
    }

    async fn connect(&self, checked: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(checked).await
    }
}

/// What was decided about one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Host and port as asked for; absent when the request could not be read.
    pub target: Option<(String, u16)>,
    /// The address connected to, or why not.
    pub result: Result<IpAddr, Refusal>,
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Not a CONNECT request.
    #[error("only the method CONNECT is served")]
    Method,
    /// The head cannot be understood, is too long or came too late.
    #[error("the request is malformed")]
    Malformed,
    /// No rule allows the host and port.
    #[error("the host and port are not on the allow-list")]
    NotAllowed,
    /// The name has no address.
    #[error("the host does not resolve")]
    Unresolved,
    /// At least one address of the name is not public.
    #[error("the host resolves to a blocked address")]
    Blocked,
    /// The outside did not accept the connection.
    #[error("the host does not accept the connection")]
    Unreachable,
}

impl Refusal {
    const fn status(self) -> &'static str {
        match self {
            Self::Malformed => "400 Bad Request",
            Self::Method | Self::NotAllowed | Self::Unresolved | Self::Blocked => "403 Forbidden",
            Self::Unreachable => "502 Bad Gateway",
        }
    }
}

/// The proxy of one sandbox.
pub struct Egress {
    policy: EgressPolicy,
    outside: Arc<dyn Outside>,
    report: Box<dyn Fn(Decision) + Send + Sync>,
    head_time: Duration,
}

impl Egress {
    /// A proxy on the host's network; `report` is called for each decision and must not block.
    pub fn new(policy: EgressPolicy, report: impl Fn(Decision) + Send + Sync + 'static) -> Self {
        Self {
            policy,
            outside: Arc::new(HostNetwork),
            report: Box::new(report),
            head_time: HEAD_TIME_MAX,
        }
    }

    /// Replaces the network outside.
    #[must_use]
    pub fn with_outside(mut self, outside: Arc<dyn Outside>) -> Self {
        self.outside = outside;
        self
    }

    /// Replaces how long a client may take for its request.
    #[must_use]
    pub const fn with_head_time(mut self, time: Duration) -> Self {
        self.head_time = time;
        self
    }

    /// Serves until the future is dropped, which also ends all connections.
    pub async fn serve(self, listener: TcpListener) {
        let egress = Arc::new(self);
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        loop {
            let place = Arc::clone(&places).acquire_owned().await;
            let Ok(place) = place else { return };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_ended) = connections.join_next() => continue,
            };
            match accepted {
                Ok((client, _)) => {
                    let egress = Arc::clone(&egress);
                    connections.spawn(async move {
                        egress.connection(client).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the egress listener cannot accept");
                    return;
                }
            }
        }
    }

    async fn connection(&self, mut client: TcpStream) {
        let (target, decided) = match timeout(self.head_time, read_head(&mut client)).await {
            Ok(Ok((target, early))) => {
                let decided = self.decide(&target).await;
                (
                    Some(target),
                    decided.map(|(address, server)| (address, server, early)),
                )
            }
            Ok(Err(refusal)) => (None, Err(refusal)),
            Err(_) => (None, Err(Refusal::Malformed)),
        };
        let result = decided
            .as_ref()
            .map(|(address, ..)| *address)
            .map_err(|refusal| *refusal);
        (self.report)(Decision { target, result });
        let ended = match decided {
            Ok((_, server, early)) => tunnel(client, server, &early).await,
            Err(refusal) => refuse(client, refusal).await,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "an egress connection broke");
        }
    }

    async fn decide(&self, (host, port): &(String, u16)) -> Result<(IpAddr, TcpStream), Refusal> {
        if !self.policy.allows(host, *port) {
            return Err(Refusal::NotAllowed);
        }
        let resolved = timeout(RESOLVE_TIME_MAX, self.outside.resolve(host)).await;
        let Ok(Ok(addresses)) = resolved else {
            return Err(Refusal::Unresolved);
        };
        if addresses.is_empty() {
            return Err(Refusal::Unresolved);
        }
        if !addresses.iter().copied().all(is_public) {
            return Err(Refusal::Blocked);
        }
        for address in addresses.into_iter().take(ADDRESSES_MAX) {
            let connected = self.outside.connect(SocketAddr::new(address, *port));
            if let Ok(Ok(server)) = timeout(CONNECT_TIME_MAX, connected).await {
                return Ok((address, server));
            }
        }
        Err(Refusal::Unreachable)
    }
}

/// The target, and bytes the client sent after the head.
async fn read_head(client: &mut TcpStream) -> Result<((String, u16), Vec<u8>), Refusal> {
    let mut head = Vec::with_capacity(1024);
    loop {
        let room = u64::try_from(HEAD_MAX - head.len()).unwrap_or(0);
        let read = (&mut *client).take(room).read_buf(&mut head).await;
        if !matches!(read, Ok(1..)) {
            return Err(Refusal::Malformed);
        }
        if let Some(end) = end_of_head(&head) {
            let target = parse(&head)?;
            return Ok((target, head.split_off(end)));
        }
    }
}

async fn tunnel(mut client: TcpStream, mut server: TcpStream, early: &[u8]) -> io::Result<()> {
    client
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .await?;
    server.write_all(early).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

async fn refuse(mut client: TcpStream, refusal: Refusal) -> io::Result<()> {
    let status = refusal.status();
    let body = format!("{refusal}\n");
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await
}
