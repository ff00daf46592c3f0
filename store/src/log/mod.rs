//! The event log: append a decision's events, read them back, in event-store mode only.
//!
//! The event-store library keeps the optimistic lock and the serialization. Three of its habits are
//! not taken: snapshots (they apply events twice), streams (they end quietly on an error) and its
//! query dispatch (lost when a caller goes away).

mod aggregate;
mod commands;
mod facts;
mod feed;
mod repository;
mod upcast;

pub use aggregate::Logged;
pub use commands::{CommandError, Committed, Context, EventLog};
pub use facts::{Fact, fact_append};
pub use feed::{
    FeedPosition, LoggedEvent, feed_read, feed_read_as, feed_safe_end, stream_read, written_at,
    written_here,
};
pub use upcast::{UnknownVersion, Upcast, upcast};
