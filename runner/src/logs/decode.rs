//! Bytes to text: invalid UTF-8 becomes U+FFFD, and what steers a terminal or hides text is removed.

/// Decodes a stream of bytes that may be cut anywhere.
#[derive(Default)]
pub(super) struct Decoder {
    /// The beginning of a character whose rest has not arrived: at most three bytes.
    pending: Vec<u8>,
    at: At,
}

/// Where in a control sequence the stream stands.
#[derive(Default, Clone, Copy)]
enum At {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// In a control sequence, up to its final byte.
    Control,
    /// In a string such as a window title, up to its terminator or the end of the line.
    InString,
    /// After an ESC inside such a string.
    StringEscape,
}

impl Decoder {
    pub(super) fn write(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let mut rest = if self.pending.is_empty() {
            bytes
        } else {
            joined = [std::mem::take(&mut self.pending).as_slice(), bytes].concat();
            joined.as_slice()
        };
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => return self.text(text, out),
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    self.text(&String::from_utf8_lossy(valid), out);
                    let Some(length) = error.error_len() else {
                        self.pending = after.to_vec();
                        return;
                    };
                    self.text("\u{fffd}", out);
                    rest = &after[length..];
                }
            }
        }
    }

    pub(super) fn finish(&mut self, out: &mut String) {
        if !std::mem::take(&mut self.pending).is_empty() {
            self.text("\u{fffd}", out);
        }
        self.at = At::Text;
    }

    fn text(&mut self, text: &str, out: &mut String) {
        for letter in text.chars() {
            self.at = self.step(letter, out);
        }
    }

    fn step(&self, letter: char, out: &mut String) -> At {
        // No sequence reaches over a line, so none can swallow the rest of a log.
        if letter == '\n' {
            out.push('\n');
            return At::Text;
        }
        match (self.at, letter) {
            (At::InString, '\u{1b}') => At::StringEscape,
            (At::InString, '\u{7}' | '\u{9c}') | (At::StringEscape, '\\') => At::Text,
            (At::InString, _)
            | (At::Escape | At::StringEscape, ']' | 'P' | 'X' | '^' | '_')
            | (At::Text, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => At::InString,
            (_, '\u{1b}') | (At::Escape | At::StringEscape, ' '..='/') => At::Escape,
            (At::Escape | At::StringEscape, '[') | (At::Text, '\u{9b}') => At::Control,
            (At::Escape | At::StringEscape, _) | (At::Control, '@'..='~') => At::Text,
            (At::Control, _) => At::Control,
            (At::Text, letter) => {
                if is_plain(letter) {
                    out.push(letter);
                }
                At::Text
            }
        }
    }
}

fn is_plain(letter: char) -> bool {
    let steers = letter.is_control() && letter != '\t';
    // Marks that change the direction of text can make a line read as what it is not.
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !steers && !turns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> String {
        let (mut decoder, mut out) = (Decoder::default(), String::new());
        decoder.write(bytes, &mut out);
        decoder.finish(&mut out);
        out
    }

    #[test]
    fn what_steers_a_terminal_is_removed_and_text_stays() {
        for (raw, expected) in [
            (&b"\x1b[31mred\x1b[0m plain\n"[..], "red plain\n"),
            (b"\x1b]0;title\x07after", "after"),
            (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            (b"a\x1b]never ended\nnext", "a\nnext"),
            (b"\x1bPdcs\x1b\\x", "x"),
            (b"bell\x07 back\x08 cr\r\n", "bell back cr\n"),
            ("c1 \u{9b}31mx \u{85}y".as_bytes(), "c1 x y"),
            ("bidi \u{202e}evil\u{2069}".as_bytes(), "bidi evil"),
            (
                b"bad \xff\xfe ok \xe2\x82",
                "bad \u{fffd}\u{fffd} ok \u{fffd}",
            ),
            (b"tab\tstays", "tab\tstays"),
        ] {
            assert_eq!(decoded(raw), expected, "{raw:?}");
        }
    }
}
