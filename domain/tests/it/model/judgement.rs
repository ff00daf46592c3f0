//! What policies say of one plan, and what people make of it, explored to the last reachable state.
//!
//! Beside the two runs that share a workspace this would multiply their states with times and results
//! that no other run sees, so it is a world of its own. It begins where a plan is recorded. Two processes
//! may evaluate it and find different things; what they find reaches the run at once, late, twice or
//! never. People override, approve, discard and cancel whatever they saw last. Half days pass.
//! An apply begins as late as it can, and may be handed back and begin again.

mod asks;
mod broken;
mod promises;
mod system;
mod world;

use stateright::{Checker, HasDiscoveries, Model};

use self::system::Judged;
use super::broken::ApprovalOfAnything;
use super::rules::{AsDesigned, Rules};

/// More than this world has; a rule that makes it grow without bound fails instead of running on.
const STATES_MAX: usize = 300_000;

#[test]
fn a_judged_plan_keeps_every_promise_in_every_state() {
    let checker = Judged::<AsDesigned>::new()
        .checker()
        .target_state_count(STATES_MAX)
        .spawn_bfs()
        .join();
    assert!(checker.state_count() < STATES_MAX, "the world has no end");
    checker.assert_properties();
    let states = checker.unique_state_count();
    eprintln!("{states} unique states of plans that are judged");
    insta::assert_snapshot!(states, @"9166");
}

/// The exploration finds histories in which this world breaks each of the promises.
fn finds_out<R: Rules>(promises: &[&'static str]) {
    let checker = Judged::<R>::new()
        .checker()
        .target_state_count(STATES_MAX)
        .finish_when(HasDiscoveries::AllOf(promises.iter().copied().collect()))
        .spawn_bfs()
        .join();
    for promise in promises {
        let found = checker.discovery(promise);
        assert!(found.is_some(), "`{promise}` was not broken");
    }
}

#[test]
fn a_soft_denial_that_passes_is_found_out() {
    finds_out::<broken::SoftPasses>(&[promises::LET_THROUGH, promises::ASKED_RIGHTLY]);
}

#[test]
fn a_hard_denial_that_is_overridden_is_found_out() {
    finds_out::<broken::HardIsSoft>(&[promises::DENIED_IS_OVER, promises::LET_THROUGH]);
}

#[test]
fn a_crash_that_passes_is_found_out() {
    finds_out::<broken::CrashPasses>(&[promises::DENIED_IS_OVER, promises::LET_THROUGH]);
}

#[test]
fn policies_that_are_not_pinned_are_found_out() {
    finds_out::<broken::AnyPolicies>(&[promises::PINNED_ONLY]);
}

/// With a second result, the override and the approval of the first one would still start an apply.
#[test]
fn a_second_result_that_voids_nothing_is_found_out() {
    finds_out::<broken::ResultAfterResult>(&[
        promises::JUDGED_ONCE,
        promises::EVIDENCE_FITS,
        promises::APPROVED_UNDER_IT,
        promises::LET_THROUGH,
    ]);
}

#[test]
fn an_override_of_another_result_is_found_out() {
    finds_out::<broken::OverrideOfAnything>(&[promises::OVERRIDE_FITS, promises::LET_THROUGH]);
}

#[test]
fn an_override_without_an_end_in_time_is_found_out() {
    finds_out::<broken::OverrideForAsLongAsOneLikes>(&[promises::A_DAY_AT_MOST]);
}

#[test]
fn an_apply_under_an_override_that_is_over_is_found_out() {
    finds_out::<broken::OverrideOutlived>(&[promises::OVERRIDE_LIVES]);
}

#[test]
fn an_approval_that_never_lapses_is_found_out() {
    finds_out::<broken::ApprovedForEver>(&[promises::LAPSES]);
}

#[test]
fn an_approval_under_another_result_is_found_out() {
    finds_out::<ApprovalOfAnything>(&[promises::APPROVED_UNDER_IT]);
}

#[test]
fn a_denied_plan_without_changes_that_ends_well_is_found_out() {
    finds_out::<broken::NoChangesPass>(&[promises::NO_CHANGES_PASS]);
}
