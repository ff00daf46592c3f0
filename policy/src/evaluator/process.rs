//! One limited process: starting it, both pipes, and its end.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Limits;
use crate::wire::{HELPER_ARGUMENT, REPLY_BYTES_MAX};

/// No limited process could be started. Nothing is known about the policies; ask again later.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the process that evaluates policies did not start: {0}")]
pub struct NotStarted(String);

impl NotStarted {
    pub(super) fn closed() -> Self {
        Self("the evaluator is shutting down".to_owned())
    }

    pub(super) fn busy() -> Self {
        Self("too many bundles wait to be checked".to_owned())
    }
}

impl From<io::Error> for NotStarted {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// How a limited process ended, and what it said until then.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) output: Vec<u8>,
    pub(super) how: How,
}

#[derive(Debug)]
pub(super) enum How {
    /// By itself, or by a signal.
    Exited(ExitStatus),
    /// It lived too long and was killed.
    TimedOut,
    /// It said too much and was killed.
    Oversize,
}

pub(super) async fn run(
    program: &Path,
    limits: &Limits,
    request: &[u8],
    input: &[u8],
) -> Result<Ended, NotStarted> {
    let mut command = Command::new(program);
    command
        .args([HELPER_ARGUMENT, &limits.cpu_seconds.to_string()])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let (mut child, _parent) = spawn(command).await?;
    let mut output = Vec::new();
    let exchange = exchange(&mut child, request, input, &mut output);
    let how = if let Ok(how) = timeout(limits.wall, exchange).await {
        how?
    } else {
        child.kill().await?;
        How::TimedOut
    };
    Ok(Ended { output, how })
}

async fn exchange(
    child: &mut Child,
    request: &[u8],
    input: &[u8],
    output: &mut Vec<u8>,
) -> io::Result<How> {
    let closed = || io::Error::other("a pipe of the child is missing");
    let stdin = child.stdin.take().ok_or_else(closed)?;
    let stdout = child.stdout.take().ok_or_else(closed)?;
    let limit = u64::try_from(REPLY_BYTES_MAX).unwrap_or(u64::MAX);
    let hear = async {
        stdout
            .take(limit.saturating_add(1))
            .read_to_end(output)
            .await?;
        if output.len() > REPLY_BYTES_MAX {
            child.kill().await?;
            return Ok(How::Oversize);
        }
        Ok(How::Exited(child.wait().await?))
    };
    let ((), how) = tokio::join!(tell(stdin, request, input), hear);
    how
}

/// A child that ends without having read everything has said why in another way.
async fn tell(mut stdin: ChildStdin, request: &[u8], input: &[u8]) {
    let length = u32::try_from(request.len())
        .unwrap_or(u32::MAX)
        .to_le_bytes();
    for part in [&length, request, input] {
        if stdin.write_all(part).await.is_err() {
            return;
        }
    }
}

/// Keeps the thread that started a child. The kernel sends the child its parent-death signal when
/// that *thread* ends, and a runtime's own threads end when the runtime likes.
struct Parent {
    _ended: mpsc::Sender<()>,
}

async fn spawn(mut command: Command) -> io::Result<(Child, Parent)> {
    let (reply, answer) = oneshot::channel();
    let (ended, end) = mpsc::channel();
    let runtime = Handle::current();
    let thread = std::thread::Builder::new().name("policy-parent".to_owned());
    thread.spawn(move || {
        let _context = runtime.enter();
        if reply.send(command.spawn()).is_ok() {
            // Nothing is ever sent: the other side goes away when the evaluation is over.
            let _: Result<(), mpsc::RecvError> = end.recv();
        }
    })?;
    let gone = |_| io::Error::other("the thread that starts the process is gone");
    let child = answer.await.map_err(gone)??;
    Ok((child, Parent { _ended: ended }))
}
