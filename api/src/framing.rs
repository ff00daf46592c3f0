//! Heads that two readers could take for two different requests are taken for none (RFC 9112, 3.2 and
//! 6.1). A proxy that looks at the last of two headers, while we look at the first, would let through
//! what it means to keep out.

use axum::extract::Request;
use axum::http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST,
    TRANSFER_ENCODING,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Version};
use axum::middleware::Next;
use axum::response::Response;
use stackship_runner_protocol::SHA256_HEADER;

use crate::{ApiError, said_by_its_edge, v1};

/// Headers that say one thing or nothing. What decides on an upload or names a request is among them.
static SINGLE: [HeaderName; 8] = [
    HOST,
    AUTHORIZATION,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    CONTENT_ENCODING,
    TRANSFER_ENCODING,
    HeaderName::from_static(v1::IDEMPOTENCY_KEY),
    HeaderName::from_static(SHA256_HEADER),
];

/// Refuses a head that could be read in two ways, and does not trust what follows it.
pub async fn check(request: Request, next: Next) -> Response {
    match fault(request.version(), request.headers()) {
        None => next.run(request).await,
        Some(fault) => {
            let mut response = said_by_its_edge(request.uri(), fault);
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
            response
        }
    }
}

fn fault(version: Version, headers: &HeaderMap) -> Option<ApiError> {
    let repeated = |name: &&HeaderName| headers.get_all(*name).iter().nth(1).is_some();
    if let Some(name) = SINGLE.iter().find(repeated) {
        let message = format!("the header `{name}` is there more than once; send it once");
        return Some(unreadable("HEADER_REPEATED", name, message));
    }
    if version == Version::HTTP_11 && !headers.contains_key(HOST) {
        let message = "the header `host` is missing; HTTP/1.1 asks for it";
        return Some(unreadable("HOST_MISSING", &HOST, message));
    }
    let coding = headers.get(TRANSFER_ENCODING)?;
    let is_chunked = coding
        .as_bytes()
        .trim_ascii()
        .eq_ignore_ascii_case(b"chunked");
    (!is_chunked).then(|| {
        let message =
            "the only `transfer-encoding` taken is `chunked`, alone; send the body unpacked";
        unreadable("TRANSFER_ENCODING_UNSUPPORTED", &TRANSFER_ENCODING, message)
    })
}

fn unreadable(code: &'static str, header: &HeaderName, message: impl Into<String>) -> ApiError {
    ApiError::unreadable(code, header.as_str(), message)
}
