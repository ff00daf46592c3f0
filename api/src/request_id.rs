//! A name for every request: in its answer, in the log, and in the events it leads to.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use stackship_store::clock;

/// The header that carries the name, in both directions.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest name that is taken from a caller.
const REQUEST_ID_CHARS_MAX: usize = 64;

/// The name of the request at hand.
#[derive(Debug, Clone)]
pub struct RequestId(pub String);

/// Takes the caller's name for the request where it is plain, else makes one, and answers with it.
pub async fn assign(mut request: Request, next: Next) -> Response {
    let id = request
        .headers()
        .get(REQUEST_ID)
        .and_then(plain)
        .unwrap_or_else(clock::fresh_text);
    request.extensions_mut().insert(RequestId(id.clone()));
    let mut response = next.run(request).await;
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

fn plain(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let fits = !text.is_empty() && text.len() <= REQUEST_ID_CHARS_MAX;
    (fits && text.bytes().all(is_plain)).then(|| text.to_owned())
}
