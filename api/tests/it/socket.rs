//! A client on a bare socket: it reads as slowly as it likes, goes away when it likes, and sees what the
//! kernel holds for it and what the server has read of a file.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The longest head of an answer.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// One request on a connection of its own.
pub struct Wire {
    stream: TcpStream,
    /// Read from the socket with the head.
    pending: Vec<u8>,
}

/// How an answer begins.
pub struct Head {
    pub status: u16,
    /// How many bytes it says will follow.
    pub length: usize,
}

impl Wire {
    pub async fn send(url: &str, method: &str, path: &str, token: &str, body: &str) -> Self {
        let host = url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(host).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        Self {
            stream,
            pending: Vec::new(),
        }
    }

    /// Reads as far as the body.
    pub async fn head(&mut self) -> Head {
        self.head_if_any()
            .await
            .expect("the connection ended before the body")
    }

    /// The same; nothing when the connection ends before the body begins.
    pub async fn head_if_any(&mut self) -> Option<Head> {
        const END: &[u8] = b"\r\n\r\n";
        loop {
            let found = self
                .pending
                .windows(END.len())
                .position(|bytes| bytes == END);
            if let Some(end) = found {
                let body = self.pending.split_off(end + END.len());
                let head = String::from_utf8(std::mem::replace(&mut self.pending, body)).unwrap();
                return Some(Head::read(&head));
            }
            assert!(self.pending.len() < HEAD_BYTES_MAX, "a head without an end");
            let read = self.stream.read_buf(&mut self.pending).await;
            if !matches!(read, Ok(1..)) {
                return None;
            }
        }
    }

    /// Reads exactly so many bytes of the body.
    pub async fn take(&mut self, amount: usize) -> Vec<u8> {
        let mut taken = std::mem::take(&mut self.pending);
        if taken.len() > amount {
            self.pending = taken.split_off(amount);
        }
        let have = taken.len();
        taken.resize(amount, 0);
        self.stream.read_exact(&mut taken[have..]).await.unwrap();
        taken
    }

    /// Reads until the connection ends, in whichever way.
    pub async fn rest(mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.pending);
        // A reset is an end like any other here.
        drop(self.stream.read_to_end(&mut rest).await);
        rest
    }

    /// What the kernel holds between the two ends: bytes that came and were not read, and bytes that the
    /// server has handed over and that are not acknowledged yet.
    pub fn in_kernel(&self) -> (usize, usize) {
        let own = self.stream.local_addr().unwrap();
        let server = self.stream.peer_addr().unwrap();
        let (unread, _) = queues(own, server);
        let (_, unsent) = queues(server, own);
        (unread, unsent)
    }

    /// Whether the server has said anything that was not read.
    pub fn has_come(&self) -> bool {
        !self.pending.is_empty() || self.in_kernel() != (0, 0)
    }
}

impl Head {
    fn read(head: &str) -> Self {
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1))
            .unwrap();
        let length = lines
            .filter_map(|line| line.split_once(": "))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        Self {
            status: status.parse().unwrap(),
            length: length.unwrap().1.parse().unwrap(),
        }
    }
}

/// The receive and the send queue of one end of a connection; nothing once it is closed.
fn queues(end: SocketAddr, other: SocketAddr) -> (usize, usize) {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let wanted = [kernel_name(end), kernel_name(other)];
    for line in table.lines().skip(1) {
        let columns: Vec<_> = line.split_whitespace().collect();
        if columns[1..3] == wanted {
            let (send, receive) = columns[4].split_once(':').unwrap();
            let bytes = |hex| usize::from_str_radix(hex, 16).unwrap();
            return (bytes(receive), bytes(send));
        }
    }
    (0, 0)
}

fn kernel_name(end: SocketAddr) -> String {
    let SocketAddr::V4(end) = end else {
        panic!("{end} is not the loopback address of the test's server");
    };
    format!(
        "{:08X}:{:04X}",
        u32::from_le_bytes(end.ip().octets()),
        end.port()
    )
}

/// How far this process has read the file, for each time it has it open.
pub fn positions(file: &Path) -> Vec<usize> {
    let open = fs::read_dir("/proc/self/fd").unwrap();
    let position = |entry: std::io::Result<fs::DirEntry>| {
        // A descriptor may be closed at any moment.
        let entry = entry.ok()?;
        if fs::read_link(entry.path()).ok()? != file {
            return None;
        }
        let about = Path::new("/proc/self/fdinfo").join(entry.file_name());
        let about = fs::read_to_string(about).ok()?;
        let position = about.lines().find_map(|line| line.strip_prefix("pos:"))?;
        position.trim().parse().ok()
    };
    open.filter_map(position).collect()
}
