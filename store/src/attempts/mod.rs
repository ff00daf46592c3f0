//! Attempts: offered by the workflow, leased by a runner for a limited time, closed once.
//!
//! A lease is two secrets. Both are stored as SHA-256 of 256 random bits; whoever presents one is
//! found by its digest, and only while the attempt is leased and open.

mod end;
mod heartbeat;
mod lease;
mod offer;
mod row;
mod tokens;

pub use end::{ResultOutcome, drop_lease, expire, hand_back, record_result, withdraw};
pub use heartbeat::{HeartbeatOutcome, heartbeat, look, request_cancel};
pub use lease::{APPLIES_IN_A_ROW_MAX, LeasedAttempt, lease_next};
pub use offer::{Offer, offer};
pub use row::{AttemptRow, CloseCause, of_run};
pub use tokens::{RunPrincipal, by_lease_token, by_run_token};
