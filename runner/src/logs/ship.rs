//! Sending a log to the control plane in numbered batches, each until it was acknowledged.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::control_plane::{CallError, ControlPlane, Hold};

/// How long text waits for company.
const BATCH_TIME_MAX: Duration = Duration::from_millis(100);
/// How much text goes into one batch.
const BATCH_BYTES_MAX: usize = 64 * 1024;
/// The longest pause between two tries of one batch.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(2);

/// A running shipper. It ends when the log's other end is dropped and everything was acknowledged.
pub(crate) struct Shipper(JoinHandle<()>);

impl Shipper {
    /// Waits until everything is acknowledged, or the lease is lost.
    pub(crate) async fn flushed(mut self) {
        if let Err(error) = (&mut self.0).await {
            tracing::error!(error = %error, "The task that sends a log ended abruptly");
        }
    }
}

impl Drop for Shipper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts to send. `lost` ends it: nobody takes the log of a lease that is over.
pub(crate) fn ship(
    control_plane: Arc<ControlPlane>,
    hold: Hold,
    queue: mpsc::UnboundedReceiver<String>,
    lost: CancellationToken,
) -> Shipper {
    Shipper(tokio::spawn(async move {
        let sending = send_all(&control_plane, &hold, queue);
        if lost.run_until_cancelled(sending).await.is_none() {
            tracing::warn!(attempt.id = %hold.attempt, "The log was not sent to its end: the lease is lost");
        }
    }))
}

async fn send_all(
    control_plane: &ControlPlane,
    hold: &Hold,
    mut queue: mpsc::UnboundedReceiver<String>,
) {
    let mut sequence = 0;
    let mut batch = String::new();
    loop {
        if batch.is_empty() {
            match queue.recv().await {
                Some(text) => batch.push_str(&text),
                None => return,
            }
        }
        let until = Instant::now() + BATCH_TIME_MAX;
        while batch.len() < BATCH_BYTES_MAX {
            match timeout_at(until, queue.recv()).await {
                Ok(Some(text)) => batch.push_str(&text),
                Ok(None) | Err(_) => break,
            }
        }
        let rest = batch.split_off(batch.floor_char_boundary(BATCH_BYTES_MAX));
        let bytes = Bytes::from(std::mem::replace(&mut batch, rest));
        if !send(control_plane, hold, sequence, bytes).await {
            return;
        }
        sequence += 1;
    }
}

/// Whether the control plane takes more.
async fn send(control_plane: &ControlPlane, hold: &Hold, sequence: u64, bytes: Bytes) -> bool {
    let mut pause = Duration::from_millis(50);
    loop {
        match control_plane
            .append_log(hold, sequence, bytes.clone())
            .await
        {
            Ok(()) => return true,
            Err(CallError::Lost) => return false,
            Err(error) if error.may_pass() => {
                tracing::warn!(error = %error, attempt.id = %hold.attempt, "A part of a log was not taken; sending it again");
            }
            Err(error) => {
                tracing::error!(error = %error, attempt.id = %hold.attempt, "A part of a log was refused");
                return false;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY_AFTER_MAX);
    }
}
