//! `stackship bench terminal`: the same run, typed as `tofu apply` by somebody who answers at once.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

use super::figures::{Figure, seconds};
use super::product::{HOSTNAME, ORGANIZATION, Product};
use super::{Bench, bare};
use crate::Failure;

/// What the CLI of OpenTofu 1.12 sleeps in such a run, whatever the server does: 0.5 s after the
/// upload, and between its looks at the run, the plan, the apply and their logs.
const OWN_WAITS: Duration = Duration::from_millis(2_500);
/// What the CLI asks.
const QUESTION: &[u8] = b"Enter a value:";
/// The most that a command may show.
const SHOWN_BYTES_MAX: usize = 1024 * 1024;
/// How long one command may take.
const COMMAND_LIMIT: Duration = Duration::from_mins(2);

/// Measures pairs, one after the other, so that both sides see the same machine.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let tofu = bench.tofu()?;
    let product = Product::start(bench).await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // The first is not counted: caches and connection pools are warm in every measured pair.
    for number in 0..=bench.n {
        product.workspace(number).await?;
        let checkout = Checkout::new(&product, &tofu, number)?;
        checkout.command(&["init", "-no-color"]).await?;
        let typed = checkout.command(&["apply", "-no-color"]).await?;
        let bare = bare::run(&tofu).await?;
        if number > 0 {
            ours.push(typed);
            theirs.push(bare);
        }
    }
    product.stop().await?;
    let above: Vec<Duration> = ours
        .iter()
        .map(|whole| whole.saturating_sub(OWN_WAITS))
        .collect();
    let extra: Vec<Duration> = ours
        .iter()
        .zip(&theirs)
        .map(|(whole, bare)| whole.saturating_sub(OWN_WAITS + *bare))
        .collect();
    Ok(vec![
        seconds(
            "`tofu apply` in a terminal, answered at once",
            &ours,
            Some(&theirs),
        ),
        seconds("above the CLI's own waits of 2.5 s", &above, Some(&theirs)),
        seconds("above its waits and bare tofu", &extra, None),
    ])
}

/// A directory of somebody who types.
struct Checkout<'a> {
    home: TempDir,
    tofu: &'a Path,
}

impl<'a> Checkout<'a> {
    fn new(product: &Product, tofu: &'a Path, number: u16) -> Result<Self, Failure> {
        let home = tempfile::tempdir()?;
        let checkout = Self { home, tofu };
        std::fs::create_dir(checkout.root())?;
        std::fs::write(checkout.root().join("main.tf"), bare::CONFIGURATION)?;
        let cloud = format!(
            "terraform {{\n  cloud {{\n    hostname     = \"{HOSTNAME}\"\n    organization = \"{ORGANIZATION}\"\n    workspaces {{\n      name = \"bench-{number}\"\n    }}\n  }}\n}}\n"
        );
        std::fs::write(checkout.root().join("cloud.tf"), cloud)?;
        let (url, token) = (product.url(), product.token());
        let settings = format!(
            "host \"{HOSTNAME}\" {{\n  services = {{\n    \"tfe.v2\"   = \"{url}/api/v2/\"\n    \"state.v2\" = \"{url}/api/v2/\"\n  }}\n}}\ncredentials \"{HOSTNAME}\" {{\n  token = \"{token}\"\n}}\n"
        );
        std::fs::write(checkout.settings(), settings)?;
        Ok(checkout)
    }

    fn root(&self) -> PathBuf {
        self.home.path().join("root")
    }

    fn settings(&self) -> PathBuf {
        self.home.path().join("tofurc")
    }

    /// Types one command, answers `yes` when asked; how long until it ended.
    async fn command(&self, arguments: &[&str]) -> Result<Duration, Failure> {
        let (keyboard, terminal) = terminal()?;
        let began = Instant::now();
        let mut command = Command::new(self.tofu);
        command
            .args(arguments)
            .current_dir(self.root())
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", "/usr/bin:/bin")
            .env("TERM", "dumb")
            .env("CHECKPOINT_DISABLE", "1")
            .env("TF_CLI_CONFIG_FILE", self.settings())
            .stdin(Stdio::from(terminal.try_clone()?))
            .stdout(Stdio::from(terminal.try_clone()?))
            .stderr(Stdio::from(terminal))
            .kill_on_drop(true);
        let child = command.spawn()?;
        // It holds the terminal's other end, and only the command's end may close that.
        drop(command);
        tokio::time::timeout(COMMAND_LIMIT, answer(child, keyboard)).await??;
        Ok(began.elapsed())
    }
}

/// Reads to the command's end, and answers its question once.
async fn answer(mut child: Child, mut keyboard: File) -> Result<(), Failure> {
    let mut screen = tokio::fs::File::from_std(keyboard.try_clone()?);
    let (mut shown, mut answered) = (Vec::new(), false);
    let mut buffer = [0; 4096];
    // Linux answers the last read of a closed terminal with an error.
    while let Ok(read @ 1..) = screen.read(&mut buffer).await {
        shown.extend_from_slice(&buffer[..read]);
        if shown.len() > SHOWN_BYTES_MAX {
            return Err("a command showed more than it may".into());
        }
        if !answered && shown.windows(QUESTION.len()).any(|words| words == QUESTION) {
            keyboard.write_all(b"yes\n")?;
            answered = true;
        }
    }
    let status = child.wait().await?;
    if status.success() {
        return Ok(());
    }
    let shown = String::from_utf8_lossy(&shown).into_owned();
    Err(format!("tofu ended with {status}: {shown}").into())
}

/// A new pseudo-terminal: the end of the person, and that of the command.
fn terminal() -> Result<(File, OwnedFd), Failure> {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&person)?;
    unlockpt(&person)?;
    let name = ptsname(&person, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let command = rustix::fs::openat(CWD, name, flags, Mode::empty())?;
    Ok((File::from(person), command))
}
