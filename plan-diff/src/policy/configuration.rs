//! The configuration without the values that are written down in it.

use crate::buffer::Buffer;
use crate::json::{Cursor, JsonError};
use crate::secrets::{MARKER, Needles};

use super::WITHHELD;

/// Members that hold values.
const VALUE_KEYS: [&str; 2] = ["constant_value", "default"];

struct Copier<'o> {
    needles: &'o Needles,
    out: &'o mut Buffer,
    is_full: bool,
}

/// Copies the configuration; says whether it fits.
pub(super) fn copy(text: &str, needles: &Needles, out: &mut Buffer) -> Result<bool, JsonError> {
    let mut copier = Copier {
        needles,
        out,
        is_full: false,
    };
    copier.value(&mut Cursor::new(text))?;
    Ok(!copier.is_full)
}

impl Copier<'_> {
    fn value(&mut self, cursor: &mut Cursor<'_>) -> Result<(), JsonError> {
        match cursor.peek()? {
            b'{' => self.object(cursor),
            b'[' => {
                self.raw("[");
                cursor.array(|cursor| {
                    self.comma();
                    self.value(cursor)
                })?;
                self.raw("]");
                Ok(())
            }
            b'"' => {
                let text = cursor.string()?;
                if self.needles.is_in(&text) {
                    self.raw(WITHHELD);
                } else {
                    self.json(&text);
                }
                Ok(())
            }
            _ => {
                let text = cursor.slice()?;
                self.raw(if self.needles.is_in(text) {
                    WITHHELD
                } else {
                    text
                });
                Ok(())
            }
        }
    }

    /// An object with a key that is not shown is withheld as a whole.
    fn object(&mut self, cursor: &mut Cursor<'_>) -> Result<(), JsonError> {
        let start = self.out.len();
        let mut is_echo = false;
        self.raw("{");
        cursor.object(|cursor, key| {
            is_echo |= key == MARKER || self.needles.is_in(key);
            if is_echo || VALUE_KEYS.contains(&key.as_ref()) {
                return cursor.skip();
            }
            self.comma();
            self.json(key);
            self.raw(":");
            self.value(cursor)
        })?;
        if is_echo {
            self.out.truncate(start);
            self.raw(WITHHELD);
        } else {
            self.raw("}");
        }
        Ok(())
    }

    fn raw(&mut self, text: &str) {
        self.is_full |= self.is_full || self.out.raw(text).is_err();
    }

    fn json(&mut self, text: &str) {
        self.is_full |= self.is_full || self.out.json(text).is_err();
    }

    fn comma(&mut self) {
        self.is_full |= self.is_full || self.out.comma().is_err();
    }
}
