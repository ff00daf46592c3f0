//! What the supervisor promises, tried against a real PostgreSQL: a file per promise.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

mod another_major_is_refused;
mod committed_rows_survive_a_crash;
mod death_is_reported;
mod half_made_clusters_are_removed;
mod kill_leaves_nothing_running;
mod one_owner;
mod open_directory_is_closed;
mod settings_reach_the_server;
mod socket_path_can_be_long;
mod stale_pid_files;
mod starts_and_stops;
mod user_that_postgres_refuses;
mod with_postgres_runs_a_command;
