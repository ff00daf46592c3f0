//! Downloads on a bare socket, so that a test decides how much is read and when.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::Client;

/// The longest head of an answer.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// An answer whose body is read on demand.
pub struct Download {
    stream: TcpStream,
    /// How many bytes it says it has.
    pub length: usize,
    /// How many of them came so far.
    pub came: usize,
}

impl Download {
    /// Asks, and reads the head of the answer.
    #[track_caller]
    pub fn begin(client: &Client, method: &str, path: &str, body: &str) -> Self {
        let host = client.url().strip_prefix("http://").expect("plain HTTP");
        let mut stream = TcpStream::connect(host).expect("the server listens");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            client.token(),
            body.len()
        );
        stream
            .write_all(request.as_bytes())
            .expect("the server reads");
        let mut head = Vec::new();
        // Byte by byte: what follows the head is the body.
        while !head.ends_with(b"\r\n\r\n") {
            assert!(head.len() < HEAD_BYTES_MAX, "a head without an end");
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("the server answers");
            head.extend(byte);
        }
        let head = String::from_utf8(head).expect("a head is text");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length = length.and_then(|length| length.parse().ok());
        Self {
            stream,
            length: length.unwrap_or_else(|| panic!("no length in {head}")),
            came: 0,
        }
    }

    /// Reads so many bytes, or until the end; says how many there were.
    pub fn read(&mut self, most: usize) -> usize {
        let mut buffer = vec![0; 64 * 1024];
        let before = self.came;
        while self.came - before < most {
            match self.stream.read(&mut buffer) {
                // A reset is an end like any other.
                Ok(0) | Err(_) => break,
                Ok(read) => self.came += read,
            }
        }
        self.came - before
    }
}
