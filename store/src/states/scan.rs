//! The serial and the lineage inside a state, read while its bytes pass by. A state can be hundreds of
//! megabytes, so nothing of it is kept; an encrypted one has both members in the same place.

use std::ops::Range;

use serde::de::DeserializeOwned;

/// The longest lineage of a state, in bytes.
pub const LINEAGE_BYTES_MAX: usize = 128;
/// The longest member name or value that is kept, in bytes; longer ones are none of ours.
const TOKEN_BYTES_MAX: usize = 256;
/// The member that an encrypted state has and no other.
const ENCRYPTED: &str = "encrypted_data";

/// What a state says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its serial.
    pub serial: i64,
    /// Its lineage.
    pub lineage: String,
}

/// What was found in the bytes of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What it says of itself.
    pub identity: Identity,
    /// Where the digits of its serial are, in bytes from the beginning.
    pub serial_at: Range<u64>,
    /// Whether the rest is encrypted: then the serial stands inside as well, and OpenTofu wants both to be
    /// the same.
    pub is_encrypted: bool,
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
    serial_at: Range<u64>,
    lineage: Option<String>,
    is_encrypted: bool,
    is_broken: bool,
    /// How many bytes have passed.
    passed: u64,
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
    at: Range<u64>,
    is_too_long: bool,
}

impl Token {
    fn push(&mut self, byte: u8, at: u64) {
        if self.bytes.is_empty() {
            self.at.start = at;
        }
        self.at.end = at + 1;
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
            self.passed += 1;
        }
    }

    /// What the document says, when it was one object with both members, each once.
    pub fn finish(self) -> Option<Identity> {
        self.found().map(|found| found.identity)
    }

    /// The same, with where it stands.
    pub fn found(self) -> Option<Found> {
        let is_whole = !self.is_broken && !self.in_text && self.depth == 0;
        let (serial, lineage) = (self.serial?, self.lineage?);
        is_whole.then_some(Found {
            identity: Identity { serial, lineage },
            serial_at: self.serial_at,
            is_encrypted: self.is_encrypted,
        })
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
            self.token.push(byte, self.passed);
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
        let name = self.token.take::<String>();
        self.name = match name.as_deref() {
            Some("serial") => Some(Member::Serial),
            Some("lineage") => Some(Member::Lineage),
            _ => None,
        };
        self.is_encrypted |= name.as_deref() == Some(ENCRYPTED);
    }

    fn end_value(&mut self) {
        let is_second = match self.name.take() {
            None => {
                self.token = Token::default();
                return;
            }
            Some(Member::Serial) => {
                self.serial_at = self.token.at.clone();
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
    fn the_digits_of_the_serial_are_found_where_they_stand() {
        let found = |text: &str| {
            let mut scanner = Scanner::default();
            scanner.feed(text.as_bytes());
            let found = scanner.found().unwrap();
            let place = usize::try_from(found.serial_at.start).unwrap()
                ..usize::try_from(found.serial_at.end).unwrap();
            (text[place].to_owned(), found.is_encrypted)
        };
        let plain = r#"{"lineage":"7","a":{"serial":8},"serial" : 123 ,"b":"serial"}"#;
        assert_eq!(found(plain), ("123".to_owned(), false));
        let last = r#"{"lineage":"x","serial":4}"#;
        assert_eq!(found(last), ("4".to_owned(), false));
        let encrypted = r#"{"serial":56,"lineage":"x","meta":{},"encrypted_data":"e30="}"#;
        assert_eq!(found(encrypted), ("56".to_owned(), true));
        let only_called_so = r#"{"serial":1,"lineage":"encrypted_data","c":{"encrypted_data":1}}"#;
        assert_eq!(found(only_called_so), ("1".to_owned(), false));
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
