//! Promises of the whole system: a file each, kept against the real server, database, sandboxes
//! and `tofu`.

mod support;

mod access;
mod apply;
mod changes_without_counts;
mod hand_lock;
mod hostile;
mod inputs;
mod lost_terminals;
mod providers;
mod reading;
mod rooms;
mod runner_dies;
mod secrets;
mod trouble;
