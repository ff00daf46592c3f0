//! A peer with too many connections is told so, at next to no cost.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::linger;

/// How many of those who were turned away may still be listened to, so that they get to read why. They
/// take file descriptors beside the places.
const LINGERING_MAX: usize = 64;
/// For how long.
const LINGER_TIME_MAX: Duration = Duration::from_secs(1);
/// Whoever is turned away has said nothing yet, so there is no edge whose shape this could have.
const ANSWER: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\n\
content-type: text/plain; charset=utf-8\r\n\
content-length: 110\r\n\
retry-after: 5\r\n\
connection: close\r\n\
\r\n\
Too many connections from your address have a request at hand; wait for some of them to end, then try again.\r\n";

/// Who is being turned away.
pub(super) struct TurningAway {
    room: Arc<Semaphore>,
}

impl Default for TurningAway {
    fn default() -> Self {
        Self {
            room: Arc::new(Semaphore::new(LINGERING_MAX)),
        }
    }
}

impl TurningAway {
    /// Says no. Nothing waits for the peer here, and it is not heard for long.
    pub(super) fn turn_away(
        &self,
        stream: TcpStream,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) {
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            return;
        };
        let stop = stop.clone();
        tasks.spawn(async move {
            let _room = room;
            let saying = async {
                if let Ok(stream) = said(stream) {
                    linger(stream).await;
                }
            };
            tokio::select! {
                _ = tokio::time::timeout(LINGER_TIME_MAX, saying) => {}
                () = stop.cancelled() => {}
            }
        });
    }
}

/// The answer fits the empty buffer of a new connection, so it is written without waiting.
fn said(stream: TcpStream) -> std::io::Result<TcpStream> {
    let mut stream = stream.into_std()?;
    stream.write_all(ANSWER)?;
    stream.shutdown(std::net::Shutdown::Write)?;
    TcpStream::from_std(stream)
}
