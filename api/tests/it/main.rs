//! What the edges promise, tried over the whole router on a real database.

mod documents;
mod http;
mod idempotency;
mod permissions;
mod refusals;
mod schema;
mod support;
mod tenants;
mod uploads;
