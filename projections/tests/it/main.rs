//! What the read models promise, against a real PostgreSQL.
#![expect(
    clippy::unwrap_used,
    reason = "what a test prepares is there, or the test has failed"
)]

mod audit;
mod audit_verify;
mod exactly_once;
mod inventory;
mod rebuild;
mod replay;
mod review;
mod rights;
mod waiting;
mod workspaces;
mod world;
