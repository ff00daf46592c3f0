//! Cursors that only this installation can make: bytes and their HMAC, as text (S-INV-1).
//!
//! What the bytes begin with must name the kind of list, the tenant and the filter: a cursor then
//! opens nothing but the list that it was made for.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::CursorKey;

/// How much of the HMAC a cursor carries.
const TAG_BYTES: usize = 16;

pub(crate) fn seal(key: &CursorKey, mut body: Vec<u8>) -> String {
    let tag = mac(key, &body).finalize().into_bytes();
    body.extend(&tag[..TAG_BYTES]);
    URL_SAFE_NO_PAD.encode(body)
}

/// The `body_bytes` bytes that were sealed; `None` when they were not sealed with this key.
pub(crate) fn open(key: &CursorKey, text: &str, body_bytes: usize) -> Option<Vec<u8>> {
    let mut body = URL_SAFE_NO_PAD.decode(text).ok()?;
    let tag = body.split_off(body_bytes.min(body.len()));
    if tag.len() != TAG_BYTES {
        return None;
    }
    mac(key, &body).verify_truncated_left(&tag).ok()?;
    Some(body)
}

fn mac(key: &CursorKey, body: &[u8]) -> Hmac<Sha256> {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(body);
    mac
}
