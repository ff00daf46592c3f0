//! The second pass: values. A provider that copies a sensitive value returns it without its mark, so
//! masks alone do not keep a secret. Whatever is masked anywhere is collected, and what contains it
//! anywhere else is withheld.

mod collect;
mod forms;
mod needles;

pub(crate) use collect::collect;
pub(crate) use needles::{MARKER, Needles};

use std::collections::HashSet;

use crate::json::Node;

/// Shorter texts are not looked for: `true`, `10` or `eu` stand everywhere and mean nothing.
const SECRET_CHARS_MIN: usize = 6;
/// Lines of a secret that are shorter than this are not looked for alone: they may be `}`.
const LINE_CHARS_MIN: usize = 8;
/// How many lines of a secret are looked for alone.
const LINES_MAX: usize = 1_000;
/// Of a longer secret this many bytes from its middle are looked for: what contains all of it
/// contains them, and its beginning may be a common header.
const WINDOW_BYTES: usize = 48;

/// The sensitive values that were found so far.
pub(crate) struct Secrets {
    windows: HashSet<String>,
    /// How many there may be.
    limit: usize,
    is_incomplete: bool,
}

impl Secrets {
    pub fn new(limit: usize) -> Self {
        Self {
            windows: HashSet::new(),
            limit,
            is_incomplete: false,
        }
    }

    /// Adds a value: whole, trimmed, and line by line.
    pub fn add(&mut self, value: &str) {
        self.add_window(value);
        let trimmed = value.trim();
        if trimmed.len() < value.len() {
            self.add_window(trimmed);
        }
        if !trimmed.contains('\n') {
            return;
        }
        let lines = trimmed.lines().map(str::trim);
        // The header of a key file is no secret, and every public certificate has the same.
        let telling = lines
            .filter(|line| line.chars().count() >= LINE_CHARS_MIN && !line.starts_with("-----"));
        for line in telling.take(LINES_MAX) {
            self.add_window(line);
        }
    }

    /// Adds every text and number in a value.
    pub fn add_node(&mut self, node: &Node<'_>) {
        node.texts(&mut |leaf| match leaf {
            Node::String(text) => self.add(text),
            Node::Number(text) => self.add_number(text),
            Node::Null | Node::Bool(_) | Node::Array(_) | Node::Object(_) => {}
        });
    }

    /// Some value could not be looked at.
    pub fn miss(&mut self) {
        self.is_incomplete = true;
    }

    fn add_number(&mut self, text: &str) {
        if text.bytes().filter(u8::is_ascii_digit).count() >= SECRET_CHARS_MIN {
            self.add_window(text.trim_start_matches('-'));
        }
    }

    fn add_window(&mut self, value: &str) {
        if value.trim().chars().take(SECRET_CHARS_MIN).count() < SECRET_CHARS_MIN {
            return;
        }
        let window = middle(value);
        if self.windows.contains(window) {
            return;
        }
        if self.windows.len() == self.limit {
            self.is_incomplete = true;
            return;
        }
        self.windows.insert(window.to_owned());
    }
}

/// The middle of a long text.
fn middle(text: &str) -> &str {
    if text.len() <= WINDOW_BYTES {
        return text;
    }
    let start = text.floor_char_boundary((text.len() - WINDOW_BYTES) / 2);
    let window = &text[start..text.ceil_char_boundary(start + WINDOW_BYTES)];
    // Blanks alone would be found anywhere.
    if window.trim().chars().count() < SECRET_CHARS_MIN {
        text
    } else {
        window
    }
}
