//! A text that may not grow beyond a limit: what is written of a plan can be much longer than the
//! plan, since every changed attribute names its whole path.

use std::io;

use serde::Serialize;

/// Bytes, up to a limit.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    limit: usize,
}

/// The limit was met.
#[derive(Debug)]
pub(crate) struct Full;

impl Buffer {
    pub fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
        }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes JSON that is known to be JSON.
    pub fn raw(&mut self, text: &str) -> Result<(), Full> {
        self.bytes(text.as_bytes())
    }

    /// Writes JSON that was written before.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if bytes.len() > self.limit - self.bytes.len() {
            return Err(Full);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes a value as JSON.
    pub fn json(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Full> {
        // Texts, numbers and plain structures always have a form in JSON, so only the limit fails.
        serde_json::to_writer(self, value).map_err(|_| Full)
    }

    /// Writes `"name":`, after a comma where one is needed.
    pub fn name(&mut self, name: &str) -> Result<(), Full> {
        self.comma()?;
        self.json(name)?;
        self.raw(":")
    }

    /// A comma, except behind an opening bracket. Only for a buffer that holds its own brackets.
    pub fn comma(&mut self) -> Result<(), Full> {
        match self.bytes.last() {
            None | Some(b'{' | b'[') => Ok(()),
            Some(_) => self.raw(","),
        }
    }
}

impl io::Write for &mut Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes(bytes)
            .map_err(|Full| io::Error::from(io::ErrorKind::FileTooLarge))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a text, or null in its place when it contains a secret or is too long.
pub(crate) fn shown<'t>(text: &'t str, needles: &crate::secrets::Needles) -> Option<&'t str> {
    let is_shown = text.len() <= IDENTITY_BYTES_MAX && !needles.is_in(text);
    is_shown.then_some(text)
}

/// How long an address, a name or a provider may be.
pub(crate) const IDENTITY_BYTES_MAX: usize = 4_096;
