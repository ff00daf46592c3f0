//! The head of a proxy request.

use super::policy::is_host_name;
use super::proxy::Refusal;

/// Longest head.
pub(super) const HEAD_MAX: usize = 8 * 1024;

/// Host and port of a CONNECT request; the rest of the head means nothing here.
pub(super) fn parse(head: &[u8]) -> Result<(String, u16), Refusal> {
    let line = head
        .split(|byte| *byte == b'\r' || *byte == b'\n')
        .next()
        .unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| Refusal::Malformed)?;
    let mut words = line.split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let (Some(method), Some(target), Some(version), None) = (method, target, version, words.next())
    else {
        return Err(Refusal::Malformed);
    };
    if !version.starts_with("HTTP/1.") {
        return Err(Refusal::Malformed);
    }
    if method != "CONNECT" {
        return Err(Refusal::Method);
    }
    let (host, port) = target.rsplit_once(':').ok_or(Refusal::Malformed)?;
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port
        .parse()
        .ok()
        .filter(|_| digits)
        .ok_or(Refusal::Malformed)?;
    let host = host.to_ascii_lowercase();
    if is_host_name(&host) {
        Ok((host, port))
    } else {
        Err(Refusal::Malformed)
    }
}

/// Where the head ends, if it has.
pub(super) fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .map(|at| at + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_connect_request_is_understood() {
        let parsed = |text: &str| parse(text.as_bytes());
        assert_eq!(
            parsed("CONNECT A.example:443 HTTP/1.1\r\nHost: b\r\n\r\n"),
            Ok(("a.example".into(), 443))
        );
        assert_eq!(
            parsed("GET http://a/ HTTP/1.1\r\n\r\n"),
            Err(Refusal::Method)
        );
        for text in [
            "CONNECT a.example HTTP/1.1",
            "CONNECT a.example:+443 HTTP/1.1",
            "CONNECT a.example:70000 HTTP/1.1",
            "CONNECT a.example:443",
            "CONNECT  a.example:443 HTTP/1.1",
            "CONNECT [::1]:443 HTTP/1.1",
            "CONNECT a.example.:443 HTTP/1.1",
            "CONNECT u@a.example:443 HTTP/1.1",
            "",
        ] {
            assert_eq!(parsed(text), Err(Refusal::Malformed), "{text}");
        }
    }
}
