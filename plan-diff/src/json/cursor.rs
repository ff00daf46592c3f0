//! One pass over a JSON text, driven by what the caller wants of it.

use std::borrow::Cow;

/// How deep a document may nest. OpenTofu nests two levels for a module, and a few for a value.
const DOCUMENT_DEPTH_MAX: usize = 128;
/// How many keys the objects that are open at one place may have together: they are kept to find one
/// that is doubled.
const OPEN_KEYS_MAX: usize = 200_000;

/// Why a text is not taken. Never quotes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JsonError {
    pub kind: JsonErrorKind,
    /// Where, in bytes.
    pub offset: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonErrorKind {
    Syntax,
    /// JSON, but not of the shape that was asked for.
    Shape,
    TooDeep,
    TooManyKeys,
    TooManyNodes,
    DoubledKey,
}

/// A place in a JSON text. Every method reads one value from there and stops behind it.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// The keys of every object that is open, so that one allocation serves them all.
    keys: Vec<Cow<'a, str>>,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            keys: Vec::new(),
        }
    }

    /// The first byte of the value that comes next.
    pub fn peek(&mut self) -> Result<u8, JsonError> {
        self.space();
        self.byte().ok_or(self.error(JsonErrorKind::Syntax))
    }

    /// Nothing but space may follow.
    pub fn end(&mut self) -> Result<(), JsonError> {
        self.space();
        match self.byte() {
            None => Ok(()),
            Some(_) => Err(self.error(JsonErrorKind::Syntax)),
        }
    }

    /// Reads an object. `each` gets a key and has to read its value.
    pub fn object(
        &mut self,
        mut each: impl FnMut(&mut Self, &Cow<'a, str>) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        let first_key = self.keys.len();
        self.open(b'{')?;
        let mut is_first = true;
        while self.goes_on(b'}', &mut is_first)? {
            let key = self.string()?;
            self.space();
            self.take(b':')?;
            each(self, &key)?;
            if self.keys.len() == OPEN_KEYS_MAX {
                return Err(self.error(JsonErrorKind::TooManyKeys));
            }
            self.keys.push(key);
        }
        let keys = &mut self.keys[first_key..];
        keys.sort_unstable();
        let is_doubled = keys.windows(2).any(|pair| pair[0] == pair[1]);
        self.keys.truncate(first_key);
        if is_doubled {
            return Err(self.error(JsonErrorKind::DoubledKey));
        }
        Ok(())
    }

    /// Reads an array. `each` has to read an element.
    pub fn array(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        self.open(b'[')?;
        let mut is_first = true;
        while self.goes_on(b']', &mut is_first)? {
            self.space();
            each(self)?;
        }
        Ok(())
    }

    /// Reads any value and gives its text.
    pub fn slice(&mut self) -> Result<&'a str, JsonError> {
        self.space();
        let start = self.at;
        self.skip()?;
        Ok(&self.text[start..self.at])
    }

    /// Reads any value, and takes it no less strictly than one that is kept.
    pub fn skip(&mut self) -> Result<(), JsonError> {
        match self.peek()? {
            b'{' => self.object(|cursor, _| cursor.skip()),
            b'[' => self.array(Self::skip),
            b'"' => self.string().map(drop),
            b't' | b'f' => self.boolean().map(drop),
            b'n' => self.null(),
            _ => self.number().map(drop),
        }
    }

    pub fn boolean(&mut self) -> Result<bool, JsonError> {
        let value = self.peek()? == b't';
        self.word(if value { "true" } else { "false" })?;
        Ok(value)
    }

    pub fn null(&mut self) -> Result<(), JsonError> {
        self.space();
        self.word("null")
    }

    /// Reads a number and gives its text, so that no digit is lost.
    pub fn number(&mut self) -> Result<&'a str, JsonError> {
        self.space();
        let start = self.at;
        self.skip_if(b"-");
        match self.byte() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.skip_if(b".") {
            self.digits()?;
        }
        if self.skip_if(b"eE") {
            self.skip_if(b"+-");
            self.digits()?;
        }
        Ok(&self.text[start..self.at])
    }

    /// Reads a string; one without escapes is borrowed.
    pub fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.space();
        self.wanted(b'"')?;
        let mut decoded: Option<String> = None;
        let mut plain_from = self.at;
        loop {
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let text = decoded.get_or_insert_default();
                    text.push_str(&self.text[plain_from..self.at]);
                    let letter = self.escape()?;
                    decoded.get_or_insert_default().push(letter);
                    plain_from = self.at;
                }
                Some(0..=0x1f) | None => return Err(self.error(JsonErrorKind::Syntax)),
                Some(_) => self.at += 1,
            }
        }
        let rest = &self.text[plain_from..self.at];
        self.at += 1;
        Ok(match decoded {
            None => Cow::Borrowed(rest),
            Some(mut text) => {
                text.push_str(rest);
                Cow::Owned(text)
            }
        })
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        self.at += 1;
        let letter = self.byte().ok_or(self.error(JsonErrorKind::Syntax))?;
        self.at += 1;
        Ok(match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return Err(self.error(JsonErrorKind::Syntax)),
        })
    }

    /// A half of a surrogate pair has no text, and no encoder of OpenTofu writes one.
    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let first = self.four_digits()?;
        let unit = if (0xd800..0xdc00).contains(&first) {
            self.wanted(b'\\')?;
            self.wanted(b'u')?;
            let second = self.four_digits()?;
            if !(0xdc00..0xe000).contains(&second) {
                return Err(self.error(JsonErrorKind::Syntax));
            }
            0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
        } else {
            first
        };
        char::from_u32(unit).ok_or(self.error(JsonErrorKind::Syntax))
    }

    fn four_digits(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let digits = digits
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .ok_or(self.error(JsonErrorKind::Syntax))?;
        self.at += 4;
        Ok(digits.iter().fold(0, |number, digit| {
            let value = char::from(*digit).to_digit(16);
            number * 16 + value.expect("only hexadecimal digits were let through")
        }))
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.error(JsonErrorKind::Syntax));
        }
        Ok(())
    }

    fn open(&mut self, bracket: u8) -> Result<(), JsonError> {
        self.space();
        self.take(bracket)?;
        if self.depth == DOCUMENT_DEPTH_MAX {
            return Err(self.error(JsonErrorKind::TooDeep));
        }
        self.depth += 1;
        Ok(())
    }

    /// Whether another element follows, and not the closing bracket.
    fn goes_on(&mut self, closing: u8, is_first: &mut bool) -> Result<bool, JsonError> {
        self.space();
        let was_first = std::mem::replace(is_first, false);
        if self.skip_if(&[closing]) {
            self.depth -= 1;
            return Ok(false);
        }
        if !was_first {
            self.wanted(b',')?;
        }
        Ok(true)
    }

    fn word(&mut self, word: &str) -> Result<(), JsonError> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            let is_misspelt = self.byte() == word.bytes().next();
            return Err(if is_misspelt {
                self.error(JsonErrorKind::Syntax)
            } else {
                self.unexpected()
            });
        }
        self.at += word.len();
        Ok(())
    }

    fn take(&mut self, byte: u8) -> Result<(), JsonError> {
        if self.byte() != Some(byte) {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    fn wanted(&mut self, byte: u8) -> Result<(), JsonError> {
        self.take(byte).map_err(|error| JsonError {
            kind: JsonErrorKind::Syntax,
            ..error
        })
    }

    /// Another value than the one that was asked for stands here, or none.
    fn unexpected(&self) -> JsonError {
        let is_value = self
            .byte()
            .is_some_and(|byte| b"{[\"tfn-0123456789".contains(&byte));
        self.error(if is_value {
            JsonErrorKind::Shape
        } else {
            JsonErrorKind::Syntax
        })
    }

    fn skip_if(&mut self, one_of: &[u8]) -> bool {
        let is_one = self.byte().is_some_and(|byte| one_of.contains(&byte));
        self.at += usize::from(is_one);
        is_one
    }

    fn space(&mut self) {
        while self.skip_if(b" \n\r\t") {}
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError {
            kind,
            offset: self.at,
        }
    }
}

#[cfg(test)]
mod tests;
