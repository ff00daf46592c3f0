//! A secret that a tool prints in another form than its plain one.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use stackship_runner::logs::{MASK, Secrets, StreamLog};

fn masked(secret: &str, text: &str) -> String {
    let mut secrets = Secrets::default();
    secrets.add(secret);
    let (mut stream, mut out) = (StreamLog::new(&secrets), String::new());
    stream.write(text.as_bytes(), &mut out);
    stream.finish(&mut out);
    out
}

/// Anything that can be typed, without line breaks: those are masked line by line.
fn secret() -> impl Strategy<Value = String> {
    "[!-~]([ -~]|é|ß|漢|🔑){4,40}[!-~]"
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").unwrap();
        out
    })
}

fn percent(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").unwrap();
        }
        out
    })
}

fn ascii_json(text: &str) -> String {
    let json = serde_json::to_string(text).unwrap();
    let inside = &json[1..json.len() - 1];
    inside.chars().fold(String::new(), |mut out, letter| {
        if letter.is_ascii() {
            out.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}").unwrap();
            }
        }
        out
    })
}

/// The characters of the encoding that depend on nothing but the secret.
fn own_part(encoded: &str, before: usize, secret: usize) -> &str {
    &encoded[(before * 4).div_ceil(3)..(before + secret) * 4 / 3]
}

proptest! {
    #[test]
    fn a_secret_is_masked_in_every_form_that_stands_alone(secret in secret()) {
        let forms = [
            hex(&secret),
            hex(&secret).to_uppercase(),
            percent(&secret),
            percent(&secret).replace("%20", "+"),
            ascii_json(&secret),
            STANDARD.encode(&secret),
            URL_SAFE_NO_PAD.encode(&secret),
        ];
        for form in forms {
            let out = masked(&secret, &format!("> {form} <\n"));
            prop_assert_eq!(out, format!("> {MASK} <\n"), "{} as {}", secret, form);
        }
    }

    #[test]
    fn a_secret_is_masked_amid_base64_wherever_its_groups_begin(
        before in "[a-z:]{0,7}", secret in secret(), after in "[A-Z@]{0,7}",
    ) {
        let whole = format!("{before}{secret}{after}");
        for encoded in [STANDARD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
            let out = masked(&secret, &encoded);
            let own = own_part(&encoded, before.len(), secret.len());
            prop_assert!(!out.contains(own), "{} in {} is {}", secret, encoded, out);
            prop_assert!(out.contains(MASK));
        }
    }
}

#[test]
fn what_is_not_the_secret_stays_readable() {
    let text = "hunter2 68756e746572 aHVudGVy hunter%32 plain\n";
    assert_eq!(masked("hunter2!", text), text);
}

#[test]
fn a_huge_value_is_masked_in_plain_text_even_where_its_forms_are_not_known() {
    let mut secrets = Secrets::default();
    let huge = |n: u32| format!("{n:08}").repeat(256 * 1024 / 8);
    // Values as large as variables may be, until their forms would take more than is kept.
    for n in 0..40 {
        secrets.add(&huge(n));
    }
    assert!(secrets.lacks_forms());
    let (mut stream, mut out) = (StreamLog::new(&secrets), String::new());
    stream.write(format!("a {} b\n", huge(39)).as_bytes(), &mut out);
    stream.finish(&mut out);
    assert_eq!(out, format!("a {MASK} b\n"));
}
