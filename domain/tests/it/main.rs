//! What the rules promise: the whole table, each rule in words, what every event looks like in the
//! log, and the machine explored to its last state.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod golden;
mod model;
mod properties;
mod rules;
mod table;
