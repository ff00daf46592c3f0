//! Promises of the whole system: a file each, kept against the real server, database, sandboxes
//! and `tofu`.

mod support;

mod access;
mod apply;
mod changes_without_counts;
mod egress;
mod hand_lock;
mod hostile;
mod inputs;
mod interrupts;
mod limits;
mod lost_terminals;
mod plan_changes;
mod policies;
mod policy_sets;
mod providers;
mod queue;
mod reading;
mod recovery;
mod remote_runner;
mod rooms;
mod runner_dies;
mod secrets;
mod trouble;
mod uploads;
