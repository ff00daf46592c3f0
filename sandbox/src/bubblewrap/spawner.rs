//! The one thread that starts helpers.
//!
//! The kernel sends the parent-death signal when the *thread* that spawned the child ends, so a
//! worker of a runtime, which may retire, would kill a sandbox by retiring.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{SyncSender, sync_channel};

use tokio::sync::oneshot;

use super::settings::unavailable;
use crate::driver::Unavailable;

/// Most starts that wait; there are never more than slots.
const WAITING_MAX: usize = 256;

struct Request {
    command: Command,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// A handle to the thread, which ends with the handle.
#[derive(Debug)]
pub(super) struct Spawner {
    requests: SyncSender<Request>,
}

impl Spawner {
    pub(super) fn start() -> Result<Self, Unavailable> {
        let (requests, waiting) = sync_channel::<Request>(WAITING_MAX);
        let thread = std::thread::Builder::new().name("sandbox-spawner".to_owned());
        let started = thread.spawn(move || {
            for Request { mut command, reply } in waiting {
                // A child whose requester went away dies with the socket it was given.
                drop(reply.send(command.spawn()));
            }
        });
        started.map_err(|error| unavailable("spawner thread", &error.to_string()))?;
        Ok(Self { requests })
    }

    pub(super) async fn spawn(&self, command: Command) -> io::Result<Child> {
        let (reply, answer) = oneshot::channel();
        let gone = || io::Error::other("the spawner thread is gone");
        self.requests
            .try_send(Request { command, reply })
            .map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}
