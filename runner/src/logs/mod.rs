//! From what a process wrote to what a person may read.
//!
//! Bytes of one stream pass through six stages: decoding, removing what steers a terminal, masking
//! of secrets, cutting into lines, leaving out dumped states, and breaking what the tofu CLI would take for
//! more than text. How the bytes are cut into chunks never
//! changes the result, and a secret that arrives in two chunks is masked like one that does not.

mod client;
mod decode;
mod dump;
mod forms;
mod lines;
mod mask;
mod secrets;
mod ship;

use stackship_runner_protocol::LOG_BYTES_MAX;
use stackship_sandbox::LogStream;
use tokio::sync::mpsc;

pub use mask::{MASK, Masker};
pub use secrets::Secrets;
pub(crate) use secrets::quoted_texts;
pub(crate) use ship::ship;

use decode::Decoder;
use dump::DumpFilter;
use lines::LineCutter;

/// The stages of one stream.
pub struct StreamLog {
    decoder: Decoder,
    masker: Masker,
    lines: LineCutter,
    dump: DumpFilter,
}

impl StreamLog {
    /// A stream in which these secrets are masked.
    pub fn new(secrets: &Secrets) -> Self {
        Self {
            decoder: Decoder::default(),
            masker: Masker::new(secrets),
            lines: LineCutter::default(),
            dump: DumpFilter::default(),
        }
    }

    /// Takes bytes and appends what is complete by then to `out`.
    pub fn write(&mut self, bytes: &[u8], out: &mut String) {
        let mut text = String::new();
        self.decoder.write(bytes, &mut text);
        let mut masked = String::new();
        self.masker.write(&text, &mut masked);
        let mut lines = String::new();
        self.lines
            .write(&masked, |piece| self.dump.take(piece, &mut lines));
        client::pass_on(&lines, out);
    }

    /// Ends the stream: what waited for more comes out. The stream can be used again.
    pub fn finish(&mut self, out: &mut String) {
        let (mut text, mut masked) = (String::new(), String::new());
        self.decoder.finish(&mut text);
        self.masker.write(&text, &mut masked);
        self.masker.finish(&mut masked);
        let mut lines = String::new();
        self.lines
            .write(&masked, |piece| self.dump.take(piece, &mut lines));
        self.lines.finish(|piece| self.dump.take(piece, &mut lines));
        self.dump.finish(&mut lines);
        client::pass_on(&lines, out);
    }
}

/// Room that is kept for what the runner itself says at a phase's end: a program that fills the log
/// must not be able to keep that out of it.
const STATEMENT_BYTES_MAX: u64 = 128 * 1024;
/// What stands at the end of a log of which more was written than is kept.
const TRUNCATED: &str = "(the log is longer than is kept; the rest is left out)\n";

/// The log of one phase: both streams of every step, up to a bound.
pub(crate) struct PhaseLog {
    stdout: StreamLog,
    stderr: StreamLog,
    /// What may still be written. It bounds the queue too.
    left: u64,
    queue: mpsc::UnboundedSender<String>,
}

impl PhaseLog {
    pub(crate) fn new(secrets: &Secrets, queue: mpsc::UnboundedSender<String>) -> Self {
        let (stdout, stderr) = (StreamLog::new(secrets), StreamLog::new(secrets));
        Self {
            stdout,
            stderr,
            left: LOG_BYTES_MAX - STATEMENT_BYTES_MAX,
            queue,
        }
    }

    pub(crate) fn write(&mut self, stream: LogStream, bytes: &[u8]) {
        let mut out = String::new();
        match stream {
            LogStream::Stdout => self.stdout.write(bytes, &mut out),
            LogStream::Stderr => self.stderr.write(bytes, &mut out),
        }
        self.pass_on(out);
    }

    /// A step ended: nothing of it is held back any longer.
    pub(crate) fn end_step(&mut self) {
        let mut out = String::new();
        self.stdout.finish(&mut out);
        self.stderr.finish(&mut out);
        self.pass_on(out);
    }

    /// A line of the runner's own.
    pub(crate) fn note(&mut self, line: &str) {
        self.pass_on(format!("{line}\n"));
    }

    /// What the runner itself has to say after the last step. It has room whatever was written before,
    /// once, and is cleaned and masked like everything else.
    pub(crate) fn state(&mut self, text: &str) {
        self.left += STATEMENT_BYTES_MAX;
        self.write(LogStream::Stdout, text.as_bytes());
        self.end_step();
    }

    fn pass_on(&mut self, text: String) {
        if text.is_empty() || self.left == 0 {
            return;
        }
        let length = text.len() as u64;
        let text = if length > self.left {
            TRUNCATED.to_owned()
        } else {
            text
        };
        self.left = self.left.saturating_sub(length);
        // The shipper is gone only when the lease is: nobody would read it.
        drop(self.queue.send(text));
    }
}
