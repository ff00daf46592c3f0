//! What the edges promise, tried over the whole router on a real database.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod absent_runners;
mod approvals;
mod audit;
mod broken;
mod crowds;
mod documents;
mod framing;
mod guarded;
mod guarded_order;
mod guarded_refusals;
mod heartbeats;
mod hidden_marks;
mod http;
mod idempotency;
mod inputs;
mod json_output;
mod json_output_stream;
mod permissions;
mod plan_changes;
mod policy_sets;
mod queue;
mod readiness;
mod recovery;
mod refusals;
mod review;
mod run_list;
mod schema;
mod serving;
mod slow_bodies;
mod socket;
mod state_versions;
mod tenants;
mod token_descent;
mod unfinished;
mod uploads;
mod v2;
mod words;
mod world;
