//! The values that must not appear in a log, in every form in which a tool is likely to print them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use super::decode::Decoder;
use super::forms;

/// Shorter values are left alone: masking `1` or `no` would make a log unreadable and hide nothing.
const SECRET_BYTES_MIN: usize = 4;
/// Lines of a secret of several lines that are shorter than this are left alone: they may be `}`.
const LINE_BYTES_MIN: usize = 8;
/// For all encoded forms of all values together. Values are variables, of which a run may have many
/// megabytes; of values beyond this only the plain text is masked.
const FORMS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A set of secrets.
#[derive(Default)]
pub struct Secrets {
    texts: BTreeSet<String>,
    /// What the encoded forms among them take.
    forms_bytes: usize,
    lacks_forms: bool,
    /// Made when first asked for: every stream and every detail of a phase shares them.
    patterns: OnceLock<Arc<Patterns>>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Secrets({})", self.texts.len())
    }
}

impl Secrets {
    /// Adds a value: as it is, as JSON and HCL escape it, URL-encoded, in hexadecimal, in base64 by
    /// itself and amid other text, and line by line, since OpenTofu indents the lines of a long text.
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

    /// Whether some values are so large that only their plain text is masked.
    pub const fn lacks_forms(&self) -> bool {
        self.lacks_forms
    }

    fn add_forms(&mut self, value: &str) {
        self.insert(value);
        if self.forms_bytes >= FORMS_BYTES_MAX {
            self.lacks_forms = true;
            return;
        }
        for form in forms::encoded(value) {
            self.forms_bytes += self.insert(&form);
        }
    }

    /// A secret appears in the log as the stages before the mask leave it. Says how many bytes that
    /// are, if they are new.
    fn insert(&mut self, text: &str) -> usize {
        let (mut decoder, mut plain) = (Decoder::default(), String::new());
        decoder.write(text.as_bytes(), &mut plain);
        decoder.finish(&mut plain);
        let length = plain.len();
        if length >= SECRET_BYTES_MIN && self.texts.insert(plain) {
            self.patterns = OnceLock::new();
            length
        } else {
            0
        }
    }

    pub(super) fn patterns(&self) -> Arc<Patterns> {
        let made = self
            .patterns
            .get_or_init(|| Arc::new(Patterns::of(&self.texts)));
        Arc::clone(made)
    }
}

/// What every secret has at least.
type Head = [u8; SECRET_BYTES_MIN];

/// Secrets by how they begin. One secret has many forms, so the first byte alone would let nearly
/// every byte of a log be compared with all of them.
pub(super) struct Patterns {
    begins: [bool; 256],
    by_head: HashMap<Head, Vec<String>>,
}

impl Patterns {
    fn of(texts: &BTreeSet<String>) -> Self {
        let (mut begins, mut by_head) = ([false; 256], HashMap::<Head, Vec<String>>::new());
        for text in texts {
            if let Some(head) = text.as_bytes().first_chunk::<SECRET_BYTES_MIN>() {
                begins[usize::from(head[0])] = true;
                by_head.entry(*head).or_default().push(text.clone());
            }
        }
        for texts in by_head.values_mut() {
            texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        }
        Self { begins, by_head }
    }

    /// Whether a secret begins with this byte.
    pub(super) fn begins_with(&self, byte: u8) -> bool {
        self.begins[usize::from(byte)]
    }

    /// Whether a secret begins with these bytes, which are fewer than any secret has.
    pub(super) fn may_follow(&self, few: &[u8]) -> bool {
        self.by_head.keys().any(|head| head.starts_with(few))
    }

    /// The secrets that begin like this, the longest first; `None` if there is too little to say.
    pub(super) fn beginning_like(&self, rest: &[u8]) -> Option<&[String]> {
        let head = rest.first_chunk::<SECRET_BYTES_MIN>()?;
        Some(self.by_head.get(head).map_or(&[], Vec::as_slice))
    }
}

/// The quoted texts of an expression, with the common escapes undone.
pub(crate) fn quoted_texts(expression: &str) -> Vec<String> {
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
