//! The real rules of a run and of a workspace, explored to the last reachable state.
//!
//! The world around them is abstract but unkind. Two runs share one workspace and two runners; every
//! message of a runner may be lost, doubled or late; a lease may run out at any moment; a process may
//! die between any two commits; a person may decide at any time. What the store and the runners
//! promise in return is listed in [`rules::Rules`], and each promise is broken once, to see that the
//! exploration finds out.
//!
//! Left out, because it ends a run without touching the workspace like other ends that are here:
//! failed plans, plans without changes, denials. What policies say, and what people make of it, is a world
//! of its own: [`judgement`]. Left out, because no run is involved: locks by hand.

mod arena;
mod asks;
mod broken;
mod forgetting;
mod judgement;
mod promises;
mod rules;
mod steps;
mod system;
mod views;
mod world;

use stackship_domain::run::RunKind;
use stateright::{Checker, Model};

use self::rules::{AsDesigned, Rules};
use self::system::System;

const TWO_APPLIES: [RunKind; 2] = [RunKind::PlanAndApply, RunKind::PlanAndApply];
const ONE_SPECULATIVE: [RunKind; 2] = [RunKind::PlanAndApply, RunKind::Speculative];
/// More than the worlds here have; a rule that makes one grow without bound fails instead of running on.
const STATES_MAX: usize = 3_000_000;

fn explore<R: Rules>(kinds: [RunKind; 2]) -> impl Checker<System<R>> {
    System::<R>::new(kinds)
        .checker()
        .target_state_count(STATES_MAX)
        .spawn_bfs()
        .join()
}

/// Every promise holds in every state, and everything that should be possible is. The number of
/// states is part of the snapshot: a world that suddenly shrinks has stopped trying something.
fn unique_states(kinds: [RunKind; 2]) -> usize {
    let checker = explore::<AsDesigned>(kinds);
    assert!(checker.state_count() < STATES_MAX, "the world has no end");
    checker.assert_properties();
    let states = checker.unique_state_count();
    eprintln!("{states} unique states of {kinds:?}");
    states
}

#[test]
fn two_runs_of_one_workspace_keep_every_promise_in_every_state() {
    insta::assert_snapshot!(unique_states(TWO_APPLIES), @"74340");
}

#[test]
fn a_speculative_run_beside_an_apply_keeps_every_promise_in_every_state() {
    insta::assert_snapshot!(unique_states(ONE_SPECULATIVE), @"50239");
}

/// The exploration finds a history in which this world breaks the promise.
fn finds_out<R: Rules>(kinds: [RunKind; 2], promise: &'static str) {
    let checker = System::<R>::new(kinds)
        .checker()
        .target_state_count(STATES_MAX)
        .finish_when(stateright::HasDiscoveries::AllOf([promise].into()))
        .spawn_bfs()
        .join();
    let found = checker.discovery(promise);
    assert!(found.is_some(), "`{promise}` was not broken");
}

#[test]
fn an_approval_of_anything_is_found_out() {
    finds_out::<broken::ApprovalOfAnything>(TWO_APPLIES, promises::SAME_BINDING);
}

#[test]
fn a_loss_that_looks_like_a_failure_is_found_out() {
    finds_out::<broken::LossIsFailure>(TWO_APPLIES, promises::LOST_IS_RECOVERED);
}

#[test]
fn an_event_after_the_end_is_found_out() {
    finds_out::<broken::CancelAfterTheEnd>(TWO_APPLIES, promises::END_IS_END);
}

#[test]
fn an_automatic_apply_is_found_out() {
    finds_out::<broken::AutomaticApply>(TWO_APPLIES, promises::NO_AUTO_APPLY);
}

#[test]
fn a_speculative_apply_is_found_out() {
    finds_out::<broken::SpeculativeApplies>(ONE_SPECULATIVE, promises::SPECULATIVE_IS_READ_ONLY);
}

#[test]
fn a_lock_given_away_in_doubt_is_found_out() {
    finds_out::<broken::ReleaseInDoubt>(TWO_APPLIES, promises::LOCK_IS_KEPT);
}

#[test]
fn a_state_left_behind_that_nobody_tells_of_is_found_out() {
    finds_out::<broken::LeftUnsaid>(TWO_APPLIES, promises::LEFT_IS_KNOWN);
}

#[test]
fn a_lease_lost_after_its_report_is_found_out() {
    finds_out::<broken::LostAfterReport>(TWO_APPLIES, promises::END_TELLS_THE_STATE);
}

#[test]
fn a_runner_that_starts_before_its_run_did_is_found_out() {
    finds_out::<broken::ToldTooEarly>(TWO_APPLIES, promises::CANCELED_IS_UNTOUCHED);
}

#[test]
fn an_apply_handed_back_too_late_is_found_out() {
    finds_out::<broken::HandedBackTooLate>(TWO_APPLIES, promises::APPLIED_ONCE);
}

/// The fence is the last line of defence: it holds also where the store forgets what it closed.
#[test]
fn only_the_fence_stops_a_late_publication_where_the_store_is_careless() {
    let careless = explore::<broken::LostAfterReport>(TWO_APPLIES);
    assert!(careless.discovery(promises::HOLDER_PUBLISHES).is_none());
    finds_out::<broken::CarelessWithoutFence>(TWO_APPLIES, promises::HOLDER_PUBLISHES);
}
