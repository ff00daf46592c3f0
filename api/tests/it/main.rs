//! What the edges promise, tried over the whole router on a real database.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod approvals;
mod audit;
mod broken;
mod documents;
mod guarded;
mod heartbeats;
mod http;
mod idempotency;
mod inputs;
mod permissions;
mod plan_changes;
mod readiness;
mod recovery;
mod refusals;
mod schema;
mod tenants;
mod uploads;
mod v2;
mod world;
