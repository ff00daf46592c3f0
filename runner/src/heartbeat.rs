//! Keeping a lease alive, and what the answers ask of the attempt.

use std::sync::Arc;
use std::time::Duration;

use stackship_runner_protocol::{Heartbeat, Lease};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::control_plane::{CallError, ControlPlane, Hold};

/// How many heartbeats are sent while one lease would last.
const BEATS_PER_LEASE: u32 = 3;

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
            tracing::warn!(attempt.id = %hold.attempt, "The lease of an attempt is lost");
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
/// lease lasts.
async fn beat(
    control_plane: &ControlPlane,
    hold: &Hold,
    lease_time: Duration,
    orders: &watch::Sender<Order>,
) {
    let mut ticks = tokio::time::interval(lease_time / BEATS_PER_LEASE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is at once, and the lease is fresh.
    ticks.tick().await;
    let mut last_answer = Instant::now();
    loop {
        ticks.tick().await;
        let call = control_plane.heartbeat(
            hold,
            &Heartbeat {
                tofu_started: false,
            },
        );
        let left = (last_answer + lease_time).saturating_duration_since(Instant::now());
        match tokio::time::timeout(left, call).await {
            Ok(Ok(answer)) => {
                last_answer = Instant::now();
                if answer.cancel {
                    orders.send_replace(Order::Cancel);
                }
            }
            Ok(Err(CallError::Lost)) | Err(_) => return,
            Ok(Err(error)) => {
                tracing::warn!(error = %error, attempt.id = %hold.attempt, "A heartbeat was not answered");
                if last_answer.elapsed() >= lease_time {
                    return;
                }
            }
        }
    }
}
