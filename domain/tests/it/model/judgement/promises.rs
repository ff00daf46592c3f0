//! What must hold of every plan that is judged, and what must be possible at all.

use stackship_domain::run::Status;
use stateright::Property;

use super::asks::{Ask, View};
use super::system::Judged;
use super::world::{Begun, HalfDays, Verdict, World};
use crate::model::rules::Rules;

pub const LET_THROUGH: &str =
    "no apply begins without a pass, or an override of exactly the newest result";
pub const OVERRIDE_LIVES: &str = "no apply begins once the override it needs is over";
pub const APPROVED_UNDER_IT: &str =
    "no apply begins without an approval under exactly the newest result";
pub const ASKED_RIGHTLY: &str = "nobody is asked to approve what policies do not let through";
pub const EVIDENCE_FITS: &str = "the evidence names the newest result";
pub const DENIED_IS_OVER: &str = "a hard denial and a crash end the run, whatever anybody says";
pub const OVERRIDE_FITS: &str = "an override is of exactly the newest result";
pub const A_DAY_AT_MOST: &str = "an override lasts, and lasts a day at most";
pub const PINNED_ONLY: &str = "only the pinned policies judge";
pub const JUDGED_ONCE: &str = "a run is judged once";
pub const LAPSES: &str = "a run whose override is over can end";
pub const NO_CHANGES_PASS: &str =
    "a plan without changes ends well only if policies let it through";

type Promise<R> = Property<Judged<R>>;

pub fn all<R: Rules>() -> Vec<Promise<R>> {
    [of_the_apply(), of_the_result(), of_the_wait(), possible()]
        .into_iter()
        .flatten()
        .collect()
}

fn of_the_apply<R: Rules>() -> Vec<Promise<R>> {
    vec![
        Property::always(LET_THROUGH, |_: &Judged<R>, world: &World| {
            world.begun.is_none_or(|begun| begun.said.lets_through())
        }),
        Property::always(OVERRIDE_LIVES, |_: &Judged<R>, world: &World| {
            let needed = |begun: Begun| begun.said.fitting_override().map(|given| (begun, given));
            let needed = world.begun.and_then(needed);
            needed.is_none_or(|(begun, given)| begun.at < given.until)
        }),
        Property::always(APPROVED_UNDER_IT, |_: &Judged<R>, world: &World| {
            world.begun.is_none_or(|begun| {
                begun.said.approved == Some(begun.under) && begun.said.result == Some(begun.under)
            })
        }),
    ]
}

fn of_the_result<R: Rules>() -> Vec<Promise<R>> {
    vec![
        Property::always(DENIED_IS_OVER, |system: &Judged<R>, world: &World| {
            let denied = matches!(
                world.said.result,
                Some(Verdict::HardDenial | Verdict::Crash)
            );
            !denied || system.view(world).status == Status::Failed
        }),
        Property::always(OVERRIDE_FITS, |_: &Judged<R>, world: &World| {
            world.said.overridden.is_none() || world.said.fitting_override().is_some()
        }),
        Property::always(A_DAY_AT_MOST, |_: &Judged<R>, world: &World| {
            world.said.overridden.is_none_or(|given| {
                let lasts = given.until.after(given.from);
                HalfDays::NONE < lasts && lasts <= HalfDays::DAY
            })
        }),
        Property::always(PINNED_ONLY, |_: &Judged<R>, world: &World| {
            world.said.result != Some(Verdict::PassOfOthers)
        }),
        Property::always(JUDGED_ONCE, |_: &Judged<R>, world: &World| {
            !world.said.again
        }),
    ]
}

fn of_the_wait<R: Rules>() -> Vec<Promise<R>> {
    vec![
        Property::always(ASKED_RIGHTLY, |system: &Judged<R>, world: &World| {
            !system.view(world).waits_for_its_apply() || world.said.lets_through()
        }),
        Property::always(EVIDENCE_FITS, |system: &Judged<R>, world: &World| {
            let rests_on = system.view(world).rests_on;
            rests_on.is_none() || rests_on == world.said.result
        }),
        Property::always(NO_CHANGES_PASS, |system: &Judged<R>, world: &World| {
            system.view(world).status != Status::NoChanges || world.said.lets_through()
        }),
        Property::always(LAPSES, |system: &Judged<R>, world: &World| {
            let given = world.said.fitting_override();
            let over = given.is_some_and(|given| world.now >= given.until);
            let stuck = over && system.view(world).waits_for_its_apply();
            let ends = |view: View| view.status == Status::Expired;
            !stuck || system.after(world, Ask::Lapse).is_some_and(ends)
        }),
    ]
}

/// Without these, a world in which nothing moves would keep every promise.
fn possible<R: Rules>() -> Vec<Promise<R>> {
    let mut possible = vec![
        Property::sometimes(
            "a plan that passed is applied",
            |system: &Judged<R>, world: &World| {
                let applied = system.view(world).status == Status::Applied;
                applied && world.said.result == Some(Verdict::Pass)
            },
        ),
        Property::sometimes(
            "an overridden plan changes nothing",
            |system: &Judged<R>, world: &World| {
                let ended = system.view(world).status == Status::NoChanges;
                ended && world.said.fitting_override().is_some()
            },
        ),
        Property::sometimes(
            "a speculative run ends with a soft denial",
            |system: &Judged<R>, world: &World| {
                let ended = system.view(world).status == Status::SpeculativeFinished;
                ended && world.said.result == Some(Verdict::SoftDenial)
            },
        ),
    ];
    possible.extend(possible_under_an_override());
    possible
}

fn possible_under_an_override<R: Rules>() -> Vec<Promise<R>> {
    vec![
        Property::sometimes(
            "an overridden plan is applied",
            |system: &Judged<R>, world: &World| {
                let applied = system.view(world).status == Status::Applied;
                applied && world.said.fitting_override().is_some()
            },
        ),
        Property::sometimes(
            "an override ends after the approval",
            |system: &Judged<R>, world: &World| {
                let ended = system.view(world).status == Status::Expired;
                ended && world.said.approved.is_some()
            },
        ),
        Property::sometimes(
            "an override ends after its apply was handed back",
            |system: &Judged<R>, world: &World| {
                system.view(world).status == Status::Expired && world.begun.is_some()
            },
        ),
        Property::sometimes(
            "an apply goes on when its override ends",
            |system: &Judged<R>, world: &World| {
                let given = world.said.fitting_override();
                let over = given.is_some_and(|given| world.now >= given.until);
                over && system.view(world).status == Status::Applying
            },
        ),
        Property::sometimes(
            "another result is found beside the one that was overridden",
            |system: &Judged<R>, world: &World| {
                let mut found = world.evaluated.into_iter().flatten();
                let other = found.any(|verdict| Some(verdict) != world.said.result);
                let overridden = world.said.fitting_override().is_some();
                other && overridden && system.view(world).waits_for_its_apply()
            },
        ),
    ]
}
