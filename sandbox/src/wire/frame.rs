//! One kind byte, four length bytes, the payload.

use std::io::{self, IoSlice, Read, Write};

const HEADER: usize = 5;

/// What a read found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// A whole message of this kind; its payload is in the buffer.
    Frame(u8),
    /// The other side is gone.
    End,
    /// A message longer than allowed, or cut short.
    Broken(&'static str),
}

/// Writes one message; `head` and `body` together are the payload.
pub(crate) fn write_frame(
    socket: &mut impl Write,
    kind: u8,
    head: &[u8],
    body: &[u8],
) -> io::Result<()> {
    let length = u32::try_from(head.len() + body.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut front = Vec::with_capacity(HEADER + head.len());
    front.push(kind);
    front.extend_from_slice(&length.to_le_bytes());
    front.extend_from_slice(head);
    let total = front.len() + body.len();
    let mut sent = socket.write_vectored(&[IoSlice::new(&front), IoSlice::new(body)])?;
    if sent == total {
        return Ok(());
    }
    if sent < front.len() {
        socket.write_all(&front[sent..])?;
        sent = front.len();
    }
    socket.write_all(&body[sent - front.len()..])
}

/// Reads one message of at most `max` payload bytes into `payload`.
pub(crate) fn read_frame(
    socket: &mut impl Read,
    payload: &mut Vec<u8>,
    max: usize,
) -> io::Result<Incoming> {
    let mut header = [0_u8; HEADER];
    match read_fully(socket, &mut header)? {
        0 => return Ok(Incoming::End),
        HEADER => {}
        _ => return Ok(Incoming::Broken("a message header is cut short")),
    }
    let [kind, length @ ..] = header;
    let Ok(length) = usize::try_from(u32::from_le_bytes(length)) else {
        return Ok(Incoming::Broken("a message is too long"));
    };
    if length > max {
        return Ok(Incoming::Broken("a message is too long"));
    }
    payload.resize(length, 0);
    if read_fully(socket, payload)? == length {
        Ok(Incoming::Frame(kind))
    } else {
        Ok(Incoming::Broken("a message is cut short"))
    }
}

fn read_fully(socket: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match socket.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], max: usize) -> (Incoming, Vec<u8>) {
        let mut payload = Vec::new();
        let incoming = read_frame(&mut &*bytes, &mut payload, max).unwrap();
        (incoming, payload)
    }

    #[test]
    fn a_written_frame_is_read_back() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, 7, b"head", b"body").unwrap();
        assert_eq!(read(&bytes, 8), (Incoming::Frame(7), b"headbody".to_vec()));
    }

    #[test]
    fn a_frame_above_the_limit_is_refused_before_its_payload_is_read() {
        let (incoming, payload) = read(&[7, 9, 0, 0, 0], 8);
        assert_eq!(incoming, Incoming::Broken("a message is too long"));
        assert!(payload.is_empty());
    }

    #[test]
    fn a_frame_cut_short_is_told_from_a_clean_end() {
        assert_eq!(read(&[], 8).0, Incoming::End);
        assert_eq!(
            read(&[7, 1], 8).0,
            Incoming::Broken("a message header is cut short")
        );
        assert_eq!(
            read(&[7, 2, 0, 0, 0, 1], 8).0,
            Incoming::Broken("a message is cut short")
        );
    }
}
