//! How a secret looks when it is repeated.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::json;

use crate::dice::Dice;

/// What cannot be by chance in anything else, and has to be escaped in JSON and in addresses.
pub(crate) fn marker(dice: &mut Dice) -> String {
    const SPECIAL: &[char] = &['"', '\\', '<', '&', '/', '\n', ' ', 'é'];
    let upper: Vec<char> = ('A'..='Z').collect();
    let lower: Vec<char> = ('a'..='z').chain('0'..='9').collect();
    [(4, &upper[..]), (2, SPECIAL), (8, &lower[..])]
        .into_iter()
        .flat_map(|(count, letters)| std::iter::repeat_n(letters, count))
        .map(|letters| *dice.one(letters))
        .collect()
}

/// A text that repeats the marker in some way.
pub(crate) fn copy(marker: &str, dice: &mut Dice) -> String {
    match dice.below(8) {
        0 => marker.to_owned(),
        1 => format!("before {marker} after"),
        2 => json!({ "copy": marker }).to_string(),
        3 => STANDARD.encode(marker),
        4 => STANDARD.encode(format!("u:{marker}")),
        5 => URL_SAFE.encode(format!("x{marker}?")),
        6 => format!("https://user:{}@example.com/", percent_encoded(marker)),
        _ => hexadecimal(marker),
    }
}

/// The marker as it may stand in bytes: as it is, as JSON writes it (once and twice escaped, in both
/// manners), in an address, in base64 at every offset, in hexadecimal.
pub(crate) fn all(marker: &str) -> Vec<String> {
    let html = escaped(marker)
        .replace('<', "\\u003c")
        .replace('&', "\\u0026");
    let mut forms = vec![
        marker.to_owned(),
        escaped(marker),
        escaped(&escaped(marker)),
        html,
        percent_encoded(marker),
        hexadecimal(marker),
    ];
    for skipped in 0..3 {
        // A shift may cut a letter; base64 does not mind.
        let bytes = &marker.as_bytes()[skipped..];
        let whole = &bytes[..bytes.len() - bytes.len() % 3];
        forms.extend([STANDARD.encode(whole), URL_SAFE.encode(whole)]);
    }
    forms
}

fn escaped(text: &str) -> String {
    let quoted = json!(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("writing to a string cannot fail");
        }
    }
    out
}

fn hexadecimal(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        write!(out, "{byte:02x}").expect("writing to a string cannot fail");
    }
    out
}
