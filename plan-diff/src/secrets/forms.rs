//! The forms in which a copy of a secret is likely to appear.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// In base64 a shorter piece would be found by chance.
const BASE64_CHARS_MIN: usize = 8;

/// Calls `each` with the text as it is, as JSON escapes it, URL-encoded, in base64 and in hexadecimal.
pub(super) fn each_form(text: &str, each: &mut impl FnMut(String)) {
    let json = json_escaped(text);
    let html = json
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026");
    let url = percent_encoded(text);
    for form in [json, html, url] {
        if form != text {
            each(form);
        }
    }
    base64_forms(text.as_bytes(), each);
    each(hexadecimal(text));
    each(text.to_owned());
}

/// Base64 of a longer text that contains this one holds one of three, whatever stands around it.
fn base64_forms(bytes: &[u8], each: &mut impl FnMut(String)) {
    for skipped in 0..3 {
        let rest = bytes.get(skipped..).unwrap_or_default();
        let whole = &rest[..rest.len() - rest.len() % 3];
        let standard = STANDARD_NO_PAD.encode(whole);
        if standard.len() < BASE64_CHARS_MIN {
            continue;
        }
        let url = URL_SAFE_NO_PAD.encode(whole);
        if url != standard {
            each(url);
        }
        each(standard);
    }
}

fn json_escaped(text: &str) -> String {
    let quoted = serde_json::to_string(text).expect("any text has a form in JSON");
    quoted[1..quoted.len() - 1].to_owned()
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("writing to a string cannot fail");
        }
    }
    out
}

fn hexadecimal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        write!(out, "{byte:02x}").expect("writing to a string cannot fail");
    }
    out
}
