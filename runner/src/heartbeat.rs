//! Keeping a lease alive, and what the answers ask of the attempt.

use std::sync::Arc;
use std::time::Duration;

use stackship_runner_protocol::{HEARTBEAT_WAIT_MS_MAX, Heartbeat, Lease};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::control_plane::{CallError, ControlPlane, Hold};

/// How many heartbeats are sent while one lease would last.
const BEATS_PER_LEASE: u32 = 3;
/// The longest between two heartbeats, however long a lease is.
const BEAT_EVERY_MAX: Duration = Duration::from_millis(HEARTBEAT_WAIT_MS_MAX);

/// How soon a heartbeat that was not answered is sent again. The next would be due in a third of the
/// lease: two that meet one short absence of the control plane would be two thirds of it.
const BEAT_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// What the control plane asks of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    GoOn,
    Cancel,
    Lost,
}

/// A running heartbeat; it ends with the value.
pub(crate) struct Heart {
    beating: JoinHandle<()>,
    pub(crate) orders: watch::Receiver<Order>,
    /// Canceled when the lease is lost.
    pub(crate) lost: CancellationToken,
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

impl Heart {
    pub(crate) fn start(control_plane: Arc<ControlPlane>, lease: &Lease) -> Self {
        let (sender, orders) = watch::channel(Order::GoOn);
        let lost = CancellationToken::new();
        let hold = Hold::of(lease);
        let lease_time = Duration::from_secs(lease.lease_seconds.max(1).into());
        let token = lost.clone();
        let beating = tokio::spawn(async move {
            beat(&control_plane, &hold, lease_time, &sender).await;
            token.cancel();
            // No warning: an attempt whose result was just taken hears the same. Whoever loses
            // something by it says so.
            tracing::debug!(attempt.id = %hold.attempt, "The lease of an attempt is over");
            sender.send_replace(Order::Lost);
        });
        Self {
            beating,
            orders,
            lost,
        }
    }
}

/// Returns when the lease is lost: the control plane said so, or has not answered for as long as a
/// lease lasts. An answer is awaited until the next heartbeat is due, so that an order comes at once; one
/// that is sent again asks for its answer at once, so that it comes while the lease lasts.
async fn beat(
    control_plane: &ControlPlane,
    hold: &Hold,
    lease_time: Duration,
    orders: &watch::Sender<Order>,
) {
    let beat_every = (lease_time / BEATS_PER_LEASE).min(BEAT_EVERY_MAX);
    let wait_ms = u64::try_from(beat_every.as_millis()).unwrap_or(HEARTBEAT_WAIT_MS_MAX);
    let mut beat = Heartbeat {
        tofu_started: false,
        wait_ms,
    };
    let mut ticks = tokio::time::interval(beat_every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_renewal = Instant::now();
    loop {
        ticks.tick().await;
        let sent = Instant::now();
        let left = (last_renewal + lease_time).saturating_duration_since(sent);
        match tokio::time::timeout(left, control_plane.heartbeat(hold, &beat)).await {
            Ok(Ok(answer)) => {
                // The lease was renewed when the request arrived, however late its answer came.
                last_renewal = sent;
                beat.wait_ms = wait_ms;
                if answer.cancel {
                    orders.send_replace(Order::Cancel);
                }
            }
            Ok(Err(CallError::Lost)) | Err(_) => return,
            Ok(Err(error)) => {
                tracing::warn!(error = %error, attempt.id = %hold.attempt, "A heartbeat was not answered");
                if last_renewal.elapsed() >= lease_time {
                    return;
                }
                beat.wait_ms = 0;
                ticks.reset_after(BEAT_AGAIN_AFTER.min(beat_every));
            }
        }
    }
}
