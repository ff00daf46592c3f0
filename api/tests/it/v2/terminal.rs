//! A person at a terminal: `tofu` in a pseudo-terminal, read as it prints and answered when it asks.

use std::io::{Read as _, Write as _};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::v2::tofu::{Ended, Tofu};
use crate::v2::world::SOON;

const SIZE: PtySize = PtySize {
    rows: 50,
    cols: 200,
    pixel_width: 0,
    pixel_height: 0,
};

/// What has been printed so far, and whether nothing will follow.
type Printed = Arc<(Mutex<(String, bool)>, Condvar)>;

pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn std::io::Write + Send>,
    printed: Printed,
    _screen: Box<dyn MasterPty + Send>,
}

impl Terminal {
    pub fn start(tofu: &Tofu, arguments: &[&str]) -> Self {
        let pair = native_pty_system().openpty(SIZE).unwrap();
        let (binary, environment) = tofu.invocation();
        let mut command = CommandBuilder::new(binary);
        command.args(arguments);
        command.cwd(tofu.root());
        command.env_clear();
        for (name, value) in environment {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut screen = pair.master.try_clone_reader().unwrap();
        let printed = Printed::default();
        let writer = Arc::clone(&printed);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let read = screen.read(&mut bytes).unwrap_or(0);
                let (text, changed) = &*writer;
                let mut text = text.lock().unwrap();
                text.0.push_str(&String::from_utf8_lossy(&bytes[..read]));
                text.1 = read == 0;
                changed.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        Self {
            child,
            keyboard: pair.master.take_writer().unwrap(),
            printed,
            _screen: pair.master,
        }
    }

    /// Waits until these words are on the screen.
    pub async fn sees(&self, words: &'static str) {
        let seen = self.sees_or_ends(words).await;
        assert!(seen, "no `{words}` in:\n{}", self.text());
    }

    /// Waits until these words are on the screen or the command has ended; whether it was the words.
    pub async fn sees_or_ends(&self, words: &'static str) -> bool {
        let printed = Arc::clone(&self.printed);
        let seen = tokio::task::spawn_blocking(move || wait(&printed, |text| text.contains(words)));
        seen.await.unwrap().contains(words)
    }

    pub fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    pub async fn ends(mut self) -> Ended {
        let printed = Arc::clone(&self.printed);
        let text = tokio::task::spawn_blocking(move || wait(&printed, |_| false))
            .await
            .unwrap();
        let status = self.child.wait().unwrap();
        Ended {
            code: i32::try_from(status.exit_code()).ok(),
            text,
        }
    }

    /// What is on the screen now.
    pub fn text(&self) -> String {
        self.printed.0.lock().unwrap().0.clone()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Ended already, unless its test failed.
        drop(self.child.kill());
    }
}

fn wait(printed: &Printed, enough: impl Fn(&str) -> bool) -> String {
    let deadline = Instant::now() + SOON;
    let (text, changed) = &**printed;
    let mut text = text.lock().unwrap();
    while !text.1 && !enough(&text.0) {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "the terminal stands still:\n{}", text.0);
        text = changed.wait_timeout(text, left).unwrap().0;
    }
    text.0.clone()
}
