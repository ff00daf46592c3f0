//! Masking of secrets in a stream of text that may be cut anywhere.

use std::sync::Arc;

use super::Secrets;

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// Replaces secrets, the longest first. Text that may yet turn out to be the beginning of a secret
/// is held back until more arrives, so the result depends on the whole text and never on its chunks.
pub struct Masker {
    secrets: Arc<super::secrets::Patterns>,
    held: String,
}

enum Found {
    /// Whether a secret stands here depends on what follows.
    Undecided,
    Secret {
        length: usize,
    },
    Nothing,
}

impl Masker {
    /// Masks these secrets.
    pub fn new(secrets: &Secrets) -> Self {
        Self {
            secrets: secrets.patterns(),
            held: String::new(),
        }
    }

    /// Takes text and appends what is decided by then to `out`.
    pub fn write(&mut self, text: &str, out: &mut String) {
        self.held.push_str(text);
        self.advance(false, out);
    }

    /// Nothing follows: everything is decided.
    pub fn finish(&mut self, out: &mut String) {
        self.advance(true, out);
    }

    fn advance(&mut self, is_end: bool, out: &mut String) {
        let bytes = self.held.as_bytes();
        let (mut plain_from, mut at) = (0, 0);
        while at < bytes.len() {
            let next = bytes[at..]
                .iter()
                .position(|byte| self.secrets.begins_with(*byte));
            let Some(skipped) = next else {
                at = bytes.len();
                break;
            };
            at += skipped;
            match self.look(&bytes[at..], is_end) {
                Found::Undecided => break,
                Found::Nothing => at += 1,
                Found::Secret { length } => {
                    out.push_str(&self.held[plain_from..at]);
                    out.push_str(MASK);
                    at += length;
                    plain_from = at;
                }
            }
        }
        out.push_str(&self.held[plain_from..at]);
        self.held.drain(..at);
    }

    fn look(&self, rest: &[u8], is_end: bool) -> Found {
        let Some(secrets) = self.secrets.beginning_like(rest) else {
            return if !is_end && self.secrets.may_follow(rest) {
                Found::Undecided
            } else {
                Found::Nothing
            };
        };
        // Longest first, so every secret longer than what is here is asked before a match counts.
        for secret in secrets {
            let secret = secret.as_bytes();
            if secret.len() <= rest.len() {
                if rest.starts_with(secret) {
                    return Found::Secret {
                        length: secret.len(),
                    };
                }
            } else if !is_end && secret.starts_with(rest) {
                return Found::Undecided;
            }
        }
        Found::Nothing
    }
}
