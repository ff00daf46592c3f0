//! How old the read models are: the age of the first event that readers cannot see yet, measured by
//! the database's clock, by which events are recorded. Asked of the log, not of the projector: one
//! that has died says nothing.

use std::time::Duration;

use sqlx::PgPool;

use crate::ProjectionError;

/// The gauge of the age, in seconds.
pub(crate) const LAG_SECONDS: &str = "stackship_projection_lag_seconds";

/// One look-up in the index of the feed, however many events are waiting.
const FIRST_PENDING_AGE: &str = "\
select coalesce((\
    select greatest(extract(epoch from clock_timestamp() - event.recorded_at), 0)::float8 \
    from log.events as event \
    where (event.epoch, event.transaction_id, event.global_position) \
        > (live.epoch, (live.transaction_id::text)::xid8, live.global_position) \
    order by event.epoch, event.transaction_id, event.global_position limit 1), 0) \
from view.checkpoints as live where live.name = 'live'";

/// How old the first event is that readers cannot see yet; zero when they see everything, `None`
/// when the schema has no read models. Sets the gauge as well.
pub async fn lag(pool: &PgPool) -> Result<Option<Duration>, ProjectionError> {
    let seconds: Option<f64> = sqlx::query_scalar(FIRST_PENDING_AGE)
        .fetch_optional(pool)
        .await?;
    let Some(seconds) = seconds else {
        return Ok(None);
    };
    metrics::gauge!(LAG_SECONDS).set(seconds);
    Ok(Some(
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
    ))
}
