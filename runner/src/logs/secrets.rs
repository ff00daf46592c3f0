//! The values that must not appear in a log, in every form in which a tool is likely to print them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use super::decode::Decoder;

/// Shorter values are left alone: masking `1` or `no` would make a log unreadable and hide nothing.
const SECRET_BYTES_MIN: usize = 4;
/// Lines of a secret of several lines that are shorter than this are left alone: they may be `}`.
const LINE_BYTES_MIN: usize = 8;

/// A set of secrets.
#[derive(Default)]
pub struct Secrets {
    texts: BTreeSet<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Secrets({})", self.texts.len())
    }
}

impl Secrets {
    /// Adds a value: as it is, as JSON and HCL escape it, URL-encoded, in base64, and line by line,
    /// since OpenTofu indents the lines of a long text.
    pub fn add(&mut self, value: &str) {
        if value.trim().len() < SECRET_BYTES_MIN {
            return;
        }
        self.add_forms(value);
        let trimmed = value.trim();
        if trimmed.len() < value.len() {
            self.add_forms(trimmed);
        }
        if value.contains('\n') {
            for line in value
                .lines()
                .map(str::trim)
                .filter(|line| line.len() >= LINE_BYTES_MIN)
            {
                self.add_forms(line);
            }
        }
    }

    /// Adds an HCL expression: the whole, and every quoted text in it.
    pub fn add_expression(&mut self, expression: &str) {
        self.add(expression);
        for text in quoted_texts(expression) {
            self.add(&text);
        }
    }

    fn add_forms(&mut self, value: &str) {
        self.insert(value);
        self.insert(&percent_encoded(value));
        if let Ok(json) = serde_json::to_string(value) {
            self.insert(&json[1..json.len() - 1]);
        }
        for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
            self.insert(&engine.encode(value));
        }
    }

    /// A secret appears in the log as the stages before the mask leave it.
    fn insert(&mut self, text: &str) {
        let (mut decoder, mut plain) = (Decoder::default(), String::new());
        decoder.write(text.as_bytes(), &mut plain);
        decoder.finish(&mut plain);
        if plain.len() >= SECRET_BYTES_MIN {
            self.texts.insert(plain);
        }
    }

    pub(super) fn patterns(&self) -> Arc<Patterns> {
        let mut by_first = vec![Vec::new(); 256];
        for text in &self.texts {
            by_first[usize::from(text.as_bytes()[0])].push(text.clone());
        }
        for texts in &mut by_first {
            texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        }
        Arc::new(Patterns { by_first })
    }
}

/// Secrets by their first byte, the longest first.
pub(super) struct Patterns {
    by_first: Vec<Vec<String>>,
}

impl Patterns {
    pub(super) fn begins_with(&self, byte: u8) -> bool {
        !self.by_first[usize::from(byte)].is_empty()
    }

    pub(super) fn beginning_with(&self, byte: u8) -> &[String] {
        &self.by_first[usize::from(byte)]
    }
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

/// The quoted texts of an expression, with the common escapes undone.
fn quoted_texts(expression: &str) -> Vec<String> {
    let (mut texts, mut current, mut is_escaped) = (Vec::new(), None::<String>, false);
    for letter in expression.chars() {
        match (&mut current, letter) {
            (None, '"') => current = Some(String::new()),
            (None, _) => {}
            (Some(text), letter) if is_escaped => {
                text.push(match letter {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    other => other,
                });
                is_escaped = false;
            }
            (Some(_), '\\') => is_escaped = true,
            (Some(_), '"') => texts.extend(current.take()),
            (Some(text), letter) => text.push(letter),
        }
    }
    texts
}
