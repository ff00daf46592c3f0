//! The serial and the lineage inside a state, read while its bytes pass by. A state can be hundreds of
//! megabytes, so nothing of it is kept; an encrypted one has both members in the same place.

use serde::de::DeserializeOwned;

/// The longest lineage of a state, in bytes.
pub const LINEAGE_BYTES_MAX: usize = 128;
/// The longest member name or value that is kept, in bytes; longer ones are none of ours.
const TOKEN_BYTES_MAX: usize = 256;

/// What a state says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its serial.
    pub serial: i64,
    /// Its lineage.
    pub lineage: String,
}

/// Reads a JSON document byte by byte and keeps two members of its outermost object. It does not judge
/// the rest: that the bytes are the announced ones is what the digest is for.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "where a reader stands in a text is a set of independent answers"
)]
pub struct Scanner {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    /// The next text of the outermost object is a member's name.
    expects_name: bool,
    token: Token,
    name: Option<Member>,
    serial: Option<i64>,
    lineage: Option<String>,
    is_broken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Serial,
    Lineage,
}

/// The raw bytes of a name or a value.
#[derive(Debug, Default)]
struct Token {
    bytes: Vec<u8>,
    is_too_long: bool,
}

impl Token {
    fn push(&mut self, byte: u8) {
        if self.bytes.len() < TOKEN_BYTES_MAX {
            self.bytes.push(byte);
        } else {
            self.is_too_long = true;
        }
    }

    fn take<T: DeserializeOwned>(&mut self) -> Option<T> {
        let token = std::mem::take(self);
        let fits = !token.is_too_long && !token.bytes.is_empty();
        fits.then(|| serde_json::from_slice(&token.bytes).ok())
            .flatten()
    }
}

impl Scanner {
    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.step(*byte);
        }
    }

    /// What the document says, when it was one object with both members, each once.
    pub fn finish(self) -> Option<Identity> {
        let is_whole = !self.is_broken && !self.in_text && self.depth == 0;
        let (serial, lineage) = (self.serial?, self.lineage?);
        is_whole.then_some(Identity { serial, lineage })
    }

    fn step(&mut self, byte: u8) {
        if self.in_text {
            self.step_in_text(byte);
            return;
        }
        match byte {
            b'"' => {
                self.in_text = true;
                self.collect(byte);
            }
            b'{' | b'[' => self.open(byte),
            b'}' | b']' => self.close(),
            b',' if self.depth == 1 => {
                self.end_value();
                self.expects_name = true;
            }
            b':' if self.depth == 1 => {
                self.expects_name = false;
                self.token = Token::default();
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            other => self.collect(other),
        }
    }

    fn step_in_text(&mut self, byte: u8) {
        self.collect(byte);
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => {
                self.in_text = false;
                if self.depth == 1 && self.expects_name {
                    self.end_name();
                }
            }
            _ => {}
        }
    }

    /// Bytes deeper down belong to values that are not looked at.
    fn collect(&mut self, byte: u8) {
        if self.depth == 1 && (self.expects_name || self.name.is_some()) {
            self.token.push(byte);
        }
    }

    fn open(&mut self, byte: u8) {
        if self.depth == 0 {
            // Only one object, and nothing before it.
            self.is_broken |= byte != b'{' || self.serial.is_some() || self.lineage.is_some();
            self.expects_name = true;
        } else if self.depth == 1 && self.name.is_some() {
            self.is_broken = true;
        }
        self.depth += 1;
    }

    fn close(&mut self) {
        if self.depth == 1 {
            self.end_value();
        }
        match self.depth.checked_sub(1) {
            Some(depth) => self.depth = depth,
            None => self.is_broken = true,
        }
    }

    fn end_name(&mut self) {
        self.name = match self.token.take::<String>().as_deref() {
            Some("serial") => Some(Member::Serial),
            Some("lineage") => Some(Member::Lineage),
            _ => None,
        };
    }

    fn end_value(&mut self) {
        let is_second = match self.name.take() {
            None => {
                self.token = Token::default();
                return;
            }
            Some(Member::Serial) => {
                let value = self.token.take();
                self.is_broken |= value.is_none();
                std::mem::replace(&mut self.serial, value).is_some()
            }
            Some(Member::Lineage) => {
                let value = self.token.take();
                self.is_broken |= value.is_none();
                std::mem::replace(&mut self.lineage, value).is_some()
            }
        };
        self.is_broken |= is_second;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(text: &str) -> Option<Identity> {
        let mut scanner = Scanner::default();
        scanner.feed(text.as_bytes());
        scanner.finish()
    }

    fn identity(serial: i64, lineage: &str) -> Identity {
        let lineage = lineage.to_owned();
        Identity { serial, lineage }
    }

    #[test]
    fn both_members_are_found_in_every_form_of_a_state() {
        let compact =
            r#"{"version":4,"serial":3,"lineage":"c0-1","outputs":{"serial":{"value":9}}}"#;
        assert_eq!(scan(compact), Some(identity(3, "c0-1")));
        let pretty = "{\n  \"lineage\": \"a\\\"b\",\n  \"serial\": 12\n}\n";
        assert_eq!(scan(pretty), Some(identity(12, "a\"b")));
        let encrypted = r#"{"serial":1,"lineage":"x","meta":{"k":"}"},"encrypted_data":"e30="}"#;
        assert_eq!(scan(encrypted), Some(identity(1, "x")));
    }

    #[test]
    fn members_deeper_down_and_in_texts_do_not_count() {
        assert_eq!(scan(r#"{"a":{"serial":1,"lineage":"x"}}"#), None);
        assert_eq!(scan(r#"{"a":"\"serial\":1,\"lineage\":\"x\""}"#), None);
    }

    #[test]
    fn what_is_ambiguous_or_cut_is_nothing() {
        for text in [
            r#"{"serial":1,"lineage":"x","serial":2}"#,
            r#"{"serial":1,"lineage":"x""#,
            r#"{"serial":"1","lineage":"x"}"#,
            r#"{"serial":1,"lineage":["x"]}"#,
            r#"[{"serial":1,"lineage":"x"}]"#,
            r#"{"serial":1,"lineage":"x"}{"serial":2,"lineage":"y"}"#,
            "",
        ] {
            assert_eq!(scan(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn it_reads_what_a_whole_parser_reads_however_the_bytes_arrive(
            serial in any::<i64>(),
            lineage in ".{0,40}",
            other in ".{0,200}",
            piece in 1_usize..40,
        ) {
            let document = serde_json::json!({
                "zero": other, "serial": serial, "lineage": lineage, "nested": {"serial": [other]},
            });
            let text = document.to_string();
            let mut scanner = Scanner::default();
            text.as_bytes().chunks(piece).for_each(|bytes| scanner.feed(bytes));
            prop_assert_eq!(scanner.finish(), Some(identity(serial, &lineage)));
        }
    }
}
