//! What operators see of the projector.

use sqlx::PgPool;
use stackship_domain::Timestamp;
use stackship_store::clock;

use super::batch::Applied;
use crate::ProjectionError;
use crate::lag::{LAG_SECONDS, lag};

const BATCH_EVENTS: &str = "stackship_projection_batch_events";
const APPLIED_TOTAL: &str = "stackship_projection_applied_total";
const FAILURES_TOTAL: &str = "stackship_projection_failures_total";

/// A batch is committed.
pub(super) fn applied(applied: &Applied) {
    metrics::counter!(APPLIED_TOTAL).increment(u64::try_from(applied.events).unwrap_or(u64::MAX));
    let events = u32::try_from(applied.events).unwrap_or(u32::MAX);
    metrics::histogram!(BATCH_EVENTS).record(f64::from(events));
    waiting_since(applied.newest);
}

/// Nothing waits.
pub(super) fn caught_up() {
    metrics::gauge!(LAG_SECONDS).set(0.0);
}

/// The oldest event that readers cannot see yet, or could not until now.
pub(super) fn waiting_since(recorded_at: Timestamp) {
    let lag = clock::now().duration_since(recorded_at).as_secs_f64();
    metrics::gauge!(LAG_SECONDS).set(lag.max(0.0));
}

/// The alarm: the projector stands still until the cause is mended.
pub(super) async fn failed(pool: &PgPool, error: &ProjectionError) {
    metrics::counter!(FAILURES_TOTAL).increment(1);
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::error!(
        error = %error,
        error.cause = cause,
        alarm = "projection_stopped",
        "The projector cannot go on; read models stand still until it can"
    );
    // Without an answer the gauge keeps its last value; the error itself has been reported.
    drop(lag(pool).await);
}
