//! A campaign: real applies on real parts, each of which loses one part at one moment. Whatever
//! breaks, the run tells the truth afterwards, and nothing that was made is forgotten.
//!
//! `make test` has a short one, with every kind of fault once; `make faults` has longer ones. The
//! schedule is chosen by a seed, so that every trial can be repeated alone.

mod bench;
mod inject;
mod report;
mod schedule;
mod state;
mod trial;
mod truth;
mod turnstile;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bench::Bench;
use report::Outcome;
use schedule::{Fault, Trial};

use crate::support::campaign;

/// How many trials go on at the same time, each with parts of its own: most of a trial is waiting.
const LANES: usize = 2;
/// How much of a log is shown of a trial that failed.
const LOG_LINES_MAX: usize = 40;
/// What `make test` tries: every kind of fault once, and no moment that takes long to reach.
const SHORT: Campaign = Campaign {
    seed: 18_845,
    trials: Fault::ALL.len() as u64,
    only: None,
};

/// Which trials.
#[derive(Debug, Clone, Copy)]
pub struct Campaign {
    pub seed: u64,
    pub trials: u64,
    /// Only the trial of this number.
    pub only: Option<u64>,
}

#[test]
fn whatever_breaks_in_an_apply_the_truth_is_kept() {
    let campaign = campaign().map_or(SHORT, |[seed, trials, only]| Campaign {
        seed: seed.unwrap_or(SHORT.seed),
        trials: trials.unwrap_or(SHORT.trials),
        only,
    });
    let outcomes = carry_out(campaign);
    eprint!("{}", report::summary(&campaign, &outcomes));
    let failed = outcomes.iter().filter(|outcome| outcome.found.is_err());
    let failed: Vec<_> = failed.map(|outcome| outcome.line(campaign.seed)).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn carry_out(campaign: Campaign) -> Vec<Outcome> {
    let all = (0, campaign.trials);
    let (first, end) = campaign.only.map_or(all, |only| (only, only + 1));
    let (next, outcomes) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            let (next, outcomes) = (&next, &outcomes);
            scope.spawn(move || {
                let mut bench = None;
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= end {
                        return;
                    }
                    let outcome = one(&mut bench, lane, Trial::of(campaign.seed, number));
                    eprintln!("{}", outcome.line(campaign.seed));
                    outcomes.lock().expect("no holder panics").push(outcome);
                }
            });
        }
    });
    outcomes.into_inner().expect("no holder panics")
}

/// Carries out one trial. The parts of one that failed are in an unknown state: the next gets others.
fn one(bench: &mut Option<Bench>, lane: usize, trial: Trial) -> Outcome {
    let mut parts = bench.take().unwrap_or_else(|| Bench::new(lane));
    let began = Instant::now();
    let carried_out = catch_unwind(AssertUnwindSafe(|| trial::carry_out(&mut parts, trial)));
    let found = carried_out.map_err(|panic| {
        let (server, runner) = (tail(&parts.world.server.log()), tail(&parts.runner.log()));
        format!(
            "{}\nthe server's log ends:\n{server}\nthe runner's log ends:\n{runner}",
            words(&*panic)
        )
    });
    if found.is_ok() {
        *bench = Some(parts);
    }
    Outcome {
        trial,
        found,
        took: began.elapsed(),
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "a panic without words".to_owned())
}

fn tail(log: &str) -> String {
    let mut lines: Vec<_> = log.lines().rev().take(LOG_LINES_MAX).collect();
    lines.reverse();
    lines.join("\n")
}

#[test]
fn the_short_campaign_meets_nothing_that_takes_long() {
    for number in 0..SHORT.trials {
        let trial = Trial::of(SHORT.seed, number);
        assert_ne!(trial.moment, schedule::Moment::SavedOnTheWay, "{trial}");
    }
}
