//! What the store promises, tried against a real PostgreSQL: a database for each test, the rights of
//! the API wherever the server would have them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod an_organization_keeps_an_owner;
mod attempts_are_fenced;
mod configurations_never_change;
mod event_log;
mod every_change_tells_a_fact;
mod feed_never_skips;
mod going_away;
mod keys_stay_secret;
mod leases_take_turns;
mod log_is_append_only;
mod no_apply_without_approval;
mod objects_detect_tampering;
mod objects_round_trip;
mod objects_without_rows_are_swept;
mod passwords_prove_who_is_there;
mod phase_logs;
mod policies;
mod restored_elsewhere;
mod roles_hold_below_their_scope;
mod runs_are_pinned;
mod states_are_fenced;
mod states_roll_back;
mod support;
mod tenants_are_apart;
mod tokens_end_with_their_minter;
mod tokens_open_one_organization;
mod variables_keep_secrets;
