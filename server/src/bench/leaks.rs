//! `stackship bench leaks`: secrets that come out of random plans, against those that were planted. The
//! aim is none.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use stackship_plan_diff::{Limits, inspect, outline};
use stackship_planted::{Planted, Search};

use super::Bench;
use super::figures::{Figure, count};
use crate::Failure;
use crate::answer::remark;

/// How many plans one of the `n` rounds has.
const PLANS: u32 = 1_000;
/// How many plans that leak are named; all are counted.
const TOLD_MAX: usize = 20;

/// Everything that is made of one plan and leaves its sandbox.
type Emitted = Vec<Vec<u8>>;

/// What a search over many plans found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    planted: u32,
    leaked: u32,
    seeds: Vec<u64>,
}

/// Searches everything that is emitted of many plans.
pub fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let seed = bench.seed.unwrap_or_else(fresh_seed);
    let plans = u32::from(bench.n) * PLANS;
    remark(format_args!(
        "{plans} plans from seed {seed} on; repeat with --seed {seed}"
    ));
    let found = search(seed, plans, emitted)?;
    for seed in found.seeds.iter().take(TOLD_MAX) {
        remark(format_args!("the plan of seed {seed} leaks"));
    }
    let n = usize::try_from(plans)?;
    Ok(vec![count(
        "leaked markers, of those planted",
        found.leaked,
        found.planted,
        n,
    )])
}

/// 32 bits, so that it is easily typed.
fn fresh_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 32
}

fn search(
    seed: u64,
    plans: u32,
    emit: impl Fn(&Planted) -> Result<Emitted, Failure>,
) -> Result<Found, Failure> {
    let mut found = Found::default();
    for seed in (seed..).take(usize::try_from(plans)?) {
        let planted = stackship_planted::plan(seed);
        let search = Search::of(&planted.markers);
        // A search that does not find what is certainly there would say of anything that it is clean.
        let json = planted.plan.to_string();
        let there = search.found_in(json.as_bytes()).len();
        if there != planted.markers.len() {
            return Err(format!("the search misses a marker in the plan of seed {seed}").into());
        }
        found.planted += u32::try_from(there)?;
        let emitted = emit(&planted)?.join(&b'\n');
        let leaked = search.found_in(&emitted).len();
        found.leaked += u32::try_from(leaked)?;
        found.seeds.extend((leaked > 0).then_some(seed));
    }
    Ok(found)
}

/// Both documents, the outline, and what is said of the same plan when it is cut.
fn emitted(planted: &Planted) -> Result<Emitted, Failure> {
    let json = planted.plan.to_string();
    let inspect = |json: &[u8]| inspect(json, &planted.secrets, &Limits::default());
    let inspection = inspect(json.as_bytes())?;
    // What is withheld as a whole leaks nothing, and proves nothing either.
    if inspection.summary.doubtful > 0 {
        return Err("a plan was taken for a doubtful one".into());
    }
    let policy_input = inspection.policy_input.ok_or("a policy input is missing")?;
    let outline = outline(&inspection.diff)?.into_bytes();
    let summary = serde_json::to_vec(&inspection.summary)?;
    let mut emitted = vec![inspection.diff, policy_input, outline, summary];
    for end in [json.len() / 3, json.len() - 1] {
        let told = inspect(&json.as_bytes()[..end]).err();
        let told = told.ok_or("a cut plan was taken")?;
        emitted.push(format!("{told} {told:?}").into_bytes());
    }
    Ok(emitted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: u32 = 200;

    #[test]
    fn nothing_leaks() {
        let found = search(1, FEW, emitted).unwrap();
        assert!(found.planted >= FEW, "{found:?}");
        assert_eq!((found.leaked, found.seeds), (0, Vec::new()));
    }

    #[test]
    fn what_is_let_through_is_found_and_its_seeds_are_told() {
        let let_through = |planted: &Planted| Ok(vec![planted.plan.to_string().into_bytes()]);
        let found = search(1, FEW, let_through).unwrap();
        assert_eq!(found.leaked, found.planted);
        assert_eq!(found.seeds, (1..=u64::from(FEW)).collect::<Vec<_>>());
    }

    #[test]
    fn one_marker_in_one_document_is_enough() {
        let one = |planted: &Planted| {
            let mut all = emitted(planted)?;
            all[2].extend_from_slice(planted.markers[0].as_bytes());
            Ok(all)
        };
        assert_eq!(search(1, 1, one).unwrap().leaked, 1);
    }
}
