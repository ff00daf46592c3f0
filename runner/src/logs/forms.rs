//! How tools write a value that they do not print as it is.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// Digits of numbers in escapes.
const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";
/// What encoders of URLs leave as it is besides letters and digits: the standard's own list, then
/// those of Python, of browsers, and of Go for a path and for a password in front of a host.
const KEPT_IN_URLS: [&[u8]; 5] = [
    b"-._~",
    b"-._~/",
    b"-._~!'()*",
    b"-._~$&+=:@",
    b"-._~$&+,;=",
];
/// Bytes that base64 writes as one group.
const GROUP_BYTES: usize = 3;

/// Every form but the plain one. For most values many of them are equal.
pub(super) fn encoded(value: &str) -> BTreeSet<String> {
    let mut forms = vec![hex(value, LOWER), hex(value, UPPER)];
    for kept in KEPT_IN_URLS {
        forms.push(percent_encoded(value, kept, UPPER));
        forms.push(percent_encoded(value, kept, LOWER));
    }
    let in_forms: Vec<_> = forms[2..4]
        .iter()
        .map(|form| form.replace("%20", "+"))
        .collect();
    forms.extend(in_forms);
    for only_ascii in [false, true] {
        for for_html in [false, true] {
            forms.push(json_escaped(value, only_ascii, for_html, LOWER));
            forms.push(json_escaped(value, only_ascii, for_html, UPPER));
        }
    }
    for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
        forms.push(engine.encode(value));
    }
    for before in 0..GROUP_BYTES {
        forms.push(amid_base64(value, before, &STANDARD_NO_PAD));
        forms.push(amid_base64(value, before, &URL_SAFE_NO_PAD));
    }
    forms.into_iter().collect()
}

fn hex(value: &str, digits: &[u8; 16]) -> String {
    let mut out = String::with_capacity(2 * value.len());
    for byte in value.bytes() {
        push_hex(&mut out, byte, digits);
    }
    out
}

fn push_hex(out: &mut String, byte: u8, digits: &[u8; 16]) {
    out.push(char::from(digits[usize::from(byte >> 4)]));
    out.push(char::from(digits[usize::from(byte & 15)]));
}

fn percent_encoded(value: &str, kept: &[u8], digits: &[u8; 16]) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            push_hex(&mut out, byte, digits);
        }
    }
    out
}

/// The inside of a JSON string. Python writes only ASCII; Go and others escape what could end a
/// script in a page.
fn json_escaped(value: &str, only_ascii: bool, for_html: bool, digits: &[u8; 16]) -> String {
    let mut out = String::with_capacity(value.len());
    for letter in value.chars() {
        let is_escaped = letter.is_control() && letter.is_ascii()
            || only_ascii && !letter.is_ascii()
            || for_html && matches!(letter, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            letter if is_escaped => push_units(&mut out, letter, digits),
            letter => out.push(letter),
        }
    }
    out
}

fn push_units(out: &mut String, letter: char, digits: &[u8; 16]) {
    for unit in letter.encode_utf16(&mut [0; 2]) {
        out.push_str("\\u");
        for byte in unit.to_be_bytes() {
            push_hex(out, byte, digits);
        }
    }
}

/// What base64 of a longer text shows of the value, when so many bytes of the first group stand
/// before it: the characters whose bits are all the value's.
fn amid_base64(value: &str, before: usize, engine: &GeneralPurpose) -> String {
    const BITS_A_BYTE: usize = 8;
    const BITS_A_CHARACTER: usize = 6;
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(value.as_bytes());
    let from = (before * BITS_A_BYTE).div_ceil(BITS_A_CHARACTER);
    let to = bytes.len() * BITS_A_BYTE / BITS_A_CHARACTER;
    engine.encode(bytes)[from..to].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_in_the_forms_of_common_tools() {
        let forms = encoded("p&ss wörd/1");
        for form in [
            "70267373 2077c3b672642f31".replace(' ', "").as_str(),
            "70267373 2077C3B672642F31".replace(' ', "").as_str(),
            "p%26ss%20w%C3%B6rd%2F1",
            "p%26ss%20w%c3%b6rd%2f1",
            "p%26ss+w%C3%B6rd%2F1",
            "p%26ss%20w%C3%B6rd/1",
            "p&ss%20w%C3%B6rd%2F1",
            "p\\u0026ss wörd/1",
            "p&ss w\\u00f6rd/1",
            "p\\u0026ss w\\u00F6rd/1",
            "cCZzcyB3w7ZyZC8x",
        ] {
            assert!(forms.contains(form), "{form}");
        }
        assert!(encoded("🔑key").contains("\\ud83d\\udd11key"));
    }

    #[test]
    fn a_value_amid_base64_is_known_by_the_characters_that_are_its_own() {
        // `user:hunter2!` and `ab` around it, as a basic authorization would have them.
        for before in ["", "u", "us", "use"] {
            let whole = STANDARD.encode(format!("{before}hunter2!ab"));
            let shown = amid_base64("hunter2!", before.len() % GROUP_BYTES, &STANDARD_NO_PAD);
            assert!(whole.contains(&shown), "{whole} {shown}");
            assert!(shown.len() >= 8, "{shown}");
        }
    }
}
