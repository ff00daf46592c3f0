//! The real `tofu` in a pseudo-terminal, and somebody who reads and types.

use std::io::{Read as _, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::{DEADLINE, environment, eventually};

/// What tofu asks whoever interrupts it.
pub const CANCEL_QUESTION: &str = "Do you want to cancel the remote operation?";
/// So wide that no sentence is broken into lines.
const SIZE: PtySize = PtySize {
    rows: 60,
    cols: 1_000,
    pixel_width: 0,
    pixel_height: 0,
};
/// What a terminal sends for Ctrl-C.
const END_OF_TEXT: &[u8] = &[3];

/// One command in its terminal.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    screen: Arc<Screen>,
    _master: Box<dyn MasterPty + Send>,
}

#[derive(Default)]
struct Screen {
    shown: Mutex<Shown>,
    changed: Condvar,
}

#[derive(Default)]
struct Shown {
    bytes: Vec<u8>,
    closed: bool,
}

impl Terminal {
    pub fn tofu(directory: &Path, variables: &[(String, String)], arguments: &[&str]) -> Self {
        let pair = native_pty_system()
            .openpty(SIZE)
            .expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(environment::tofu());
        command.args(arguments);
        command.cwd(directory);
        command.env_clear();
        command.env("PATH", environment::path());
        command.env("TERM", "dumb");
        command.env("CHECKPOINT_DISABLE", "1");
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).expect("tofu starts");
        let keyboard = pair.master.take_writer().expect("a keyboard");
        let screen = Arc::new(Screen::default());
        let mut output = pair.master.try_clone_reader().expect("a screen");
        let watched = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Linux answers the last read of a closed terminal with an error.
            while let Ok(read @ 1..) = output.read(&mut buffer) {
                watched.lock().bytes.extend_from_slice(&buffer[..read]);
                watched.changed.notify_all();
            }
            watched.lock().closed = true;
            watched.changed.notify_all();
        });
        Self {
            child,
            keyboard,
            screen,
            _master: pair.master,
        }
    }

    /// Everything shown so far, without frames, colours and line breaks.
    pub fn text(&self) -> String {
        plain(&self.screen.lock().bytes)
    }

    /// Waits until the words were shown.
    #[track_caller]
    pub fn expect(&self, words: &str) -> &Self {
        assert!(
            self.shows_or_ends(words),
            "tofu ended without showing `{words}`:\n{}",
            self.text()
        );
        self
    }

    /// Waits until the words were shown or tofu has ended; whether it was the words.
    #[track_caller]
    pub fn shows_or_ends(&self, words: &str) -> bool {
        let began = Instant::now();
        let mut shown = self.screen.lock();
        loop {
            let text = plain(&shown.bytes);
            if text.contains(words) || shown.closed {
                return text.contains(words);
            }
            let left = DEADLINE.saturating_sub(began.elapsed());
            assert!(!left.is_zero(), "`{words}` was not shown:\n{text}");
            shown = self
                .screen
                .changed
                .wait_timeout(shown, left)
                .expect("no holder panics")
                .0;
        }
    }

    pub fn type_line(&mut self, line: &str) {
        self.keyboard
            .write_all(format!("{line}\n").as_bytes())
            .expect("tofu reads");
    }

    pub fn ctrl_c(&mut self) {
        self.keyboard.write_all(END_OF_TEXT).expect("tofu reads");
    }

    /// Ends the command as a crash would.
    pub fn kill(&mut self) {
        let id = self
            .child
            .process_id()
            .and_then(|id| i32::try_from(id).ok());
        kill(Pid::from_raw(id.expect("a running child")), Signal::SIGKILL)
            .expect("one's own child");
        drop(self.child.wait());
    }

    /// Waits for the end, whatever it is.
    #[track_caller]
    pub fn ends(&self) {
        eventually("the end of the screen", || {
            self.screen.lock().closed.then_some(())
        });
    }

    /// Waits for the end and says everything shown.
    #[track_caller]
    pub fn exits(mut self, code: u32) -> String {
        let status = eventually("tofu's end", || {
            self.child.try_wait().expect("a child can be waited for")
        });
        eventually("the last of the screen", || {
            self.screen.lock().closed.then_some(())
        });
        let text = self.text();
        assert_eq!(status.exit_code(), code, "{text}");
        text
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

impl Screen {
    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().expect("no holder panics")
    }
}

/// One line of words, as a person would read them.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut words = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => {
                // A colour: everything up to the letter that ends the sequence.
                characters.by_ref().find(char::is_ascii_alphabetic);
            }
            '╷' | '│' | '╵' => words.push(' '),
            other => words.push(other),
        }
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn frames_and_colours_are_not_read() {
    let shown = "\u{1b}[31m╷\r\n│ \u{1b}[0mError: a\r\n│ b\r\n╵".as_bytes();
    assert_eq!(plain(shown), "Error: a b");
}
