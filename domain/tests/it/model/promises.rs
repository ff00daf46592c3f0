//! What must hold in every state, and what must be possible at all.

use stackship_domain::run::{RunKind, Status};
use stateright::Property;

use super::asks::WorkspaceAsk;
use super::rules::Rules;
use super::system::System;
use super::views::RunView;
use super::world::{AttemptStatus, Phase, Runner, Who, World};

pub const SAME_BINDING: &str = "no apply without an approval of the same binding";
pub const SPECULATIVE_IS_READ_ONLY: &str = "a speculative run never applies";
pub const ONE_LIVE_APPLY: &str = "at most one live apply per workspace";
pub const APPLIED_ONCE: &str = "tofu apply begins at most once for a run";
pub const END_IS_END: &str = "nothing follows an end";
pub const LOST_IS_RECOVERED: &str = "a lost apply is recovered and nothing else";
pub const END_TELLS_THE_STATE: &str = "a run's end tells whether its state was published";
pub const CANCELED_IS_UNTOUCHED: &str = "a canceled run never began to apply";
pub const NO_AUTO_APPLY: &str = "no record says that a run applies by itself";
pub const LOCK_IS_KEPT: &str = "a run keeps its lock to its end";
pub const LOCK_IS_FREED: &str = "the lock of an ended run can be released";
pub const QUEUE_MOVES: &str = "the first in the queue can get a free lock or leave";
pub const LEFT_IS_KNOWN: &str =
    "what a failed apply left is known to the workspace until a state is published";
pub const HOLDER_PUBLISHES: &str = "only the holder of the lock publishes, under its fence";

pub fn all<R: Rules>() -> Vec<Property<System<R>>> {
    [of_the_apply(), of_the_end(), of_the_lock(), possible()]
        .into_iter()
        .flatten()
        .collect()
}

fn of_the_apply<R: Rules>() -> Vec<Property<System<R>>> {
    vec![
        Property::always(SAME_BINDING, |system: &System<R>, world: &World| {
            each(system, world, |_, run| run.approval_fits)
        }),
        Property::always(
            SPECULATIVE_IS_READ_ONLY,
            |system: &System<R>, world: &World| {
                Who::BOTH.into_iter().all(|who| {
                    let run = system.run_of(world, who);
                    system.kinds[who.index()] != RunKind::Speculative
                        || is_read_only(world, who, run)
                })
            },
        ),
        Property::always(ONE_LIVE_APPLY, |system: &System<R>, world: &World| {
            world
                .runners
                .iter()
                .filter(|machine| is_live(system, world, **machine))
                .count()
                <= 1
        }),
        Property::always(APPLIED_ONCE, |_: &System<R>, world: &World| {
            world.seen.applies.iter().all(|applies| *applies <= 1)
        }),
        Property::always(NO_AUTO_APPLY, |_: &System<R>, world: &World| {
            !world.seen.breaches.auto_apply
        }),
    ]
}

fn of_the_end<R: Rules>() -> Vec<Property<System<R>>> {
    vec![
        Property::always(END_IS_END, |_: &System<R>, world: &World| {
            !world.seen.breaches.moved_after_end
        }),
        Property::always(LOST_IS_RECOVERED, |system: &System<R>, world: &World| {
            each(system, world, |who, run| {
                !world.seen.lost[who.index()] || run.may_apply() || in_recovery(run)
            })
        }),
        Property::always(END_TELLS_THE_STATE, |system: &System<R>, world: &World| {
            each(system, world, |who, run| {
                let published = world.seen.published[who.index()];
                !run.is_terminal() || published == (run.is(Status::Applied) || run.adopted)
            })
        }),
        Property::always(
            CANCELED_IS_UNTOUCHED,
            |system: &System<R>, world: &World| {
                each(system, world, |who, run| {
                    !run.is(Status::Canceled) || world.seen.applies[who.index()] == 0
                })
            },
        ),
    ]
}

fn of_the_lock<R: Rules>() -> Vec<Property<System<R>>> {
    vec![
        Property::always(LOCK_IS_KEPT, |system: &System<R>, world: &World| {
            let workspace = system.workspace(world.workspace);
            each(system, world, |who, run| {
                run.is_terminal() || run.fence.is_none() || workspace.is_held(who, run.fence)
            })
        }),
        Property::always(LOCK_IS_FREED, |system: &System<R>, world: &World| {
            let workspace = system.workspace(world.workspace);
            each(system, world, |who, run| {
                let (fence, as_read) = (workspace.fence, world.runs[who.index()]);
                let stuck = run.is_terminal() && workspace.holder == Some(who);
                let ask = WorkspaceAsk::Release {
                    who,
                    fence,
                    as_read,
                };
                !stuck || does(system, world, ask)
            })
        }),
        Property::always(QUEUE_MOVES, |system: &System<R>, world: &World| {
            let workspace = system.workspace(world.workspace);
            let (None, Some(who)) = (workspace.holder, workspace.first) else {
                return true;
            };
            let ended = system.run_of(world, who).is_terminal();
            does(system, world, WorkspaceAsk::Acquire { who })
                && (!ended || does(system, world, WorkspaceAsk::Dequeue { who }))
        }),
        Property::always(LEFT_IS_KNOWN, |system: &System<R>, world: &World| {
            let workspace = system.workspace(world.workspace);
            each(system, world, |who, run| {
                let gone = run.left_a_state && workspace.holder != Some(who);
                !gone || workspace.head.is_some() || workspace.left[who.index()]
            })
        }),
        Property::always(HOLDER_PUBLISHES, |_: &System<R>, world: &World| {
            !world.seen.breaches.foreign_publication
        }),
    ]
}

/// Without these, a world in which nothing moves would keep every promise.
fn possible<R: Rules>() -> Vec<Property<System<R>>> {
    let mut possible = vec![
        Property::sometimes("an apply succeeds", |system: &System<R>, world: &World| {
            some(system, world, |_, run| run.is(Status::Applied))
        }),
        Property::sometimes(
            "a cancel comes too late",
            |system: &System<R>, world: &World| {
                some(system, world, |who, run| {
                    run.cancels == Some(Phase::Apply) && world.seen.applies[who.index()] == 1
                })
            },
        ),
        Property::sometimes(
            "an emergency state is adopted",
            |system: &System<R>, world: &World| some(system, world, |_, run| run.adopted),
        ),
        Property::sometimes(
            "an operator finds that nothing changed",
            |system: &System<R>, world: &World| {
                some(system, world, |who, run| {
                    run.is(Status::Recovered) && world.seen.lost[who.index()] && !run.adopted
                })
            },
        ),
        Property::sometimes(
            "a runner goes on applying without a lease",
            |system: &System<R>, world: &World| {
                world.runners.iter().any(|machine| {
                matches!(machine, Runner::Applying(lease) if system.run_of(world, lease.who).is_terminal())
            })
            },
        ),
    ];
    possible.extend(possible_beside_each_other());
    possible
}

/// What takes two runs, and so depends on their kinds.
fn possible_beside_each_other<R: Rules>() -> Vec<Property<System<R>>> {
    vec![
        Property::sometimes(
            "the second run follows, or is speculative and ends",
            |system: &System<R>, world: &World| match system.kinds[Who::Second.index()] {
                RunKind::PlanAndApply => world.seen.published == [true; 2] && world.seen.followed,
                RunKind::Speculative => system
                    .run_of(world, Who::Second)
                    .is(Status::SpeculativeFinished),
            },
        ),
        Property::sometimes(
            "both runs are at work at once",
            |_: &System<R>, world: &World| {
                let [one, other] = world.runners;
                one != Runner::Idle && other != Runner::Idle
            },
        ),
    ]
}

fn each<R: Rules>(system: &System<R>, world: &World, holds: impl Fn(Who, RunView) -> bool) -> bool {
    Who::BOTH
        .into_iter()
        .all(|who| holds(who, system.run_of(world, who)))
}

fn some<R: Rules>(system: &System<R>, world: &World, is: impl Fn(Who, RunView) -> bool) -> bool {
    !each(system, world, |who, run| !is(who, run))
}

fn in_recovery(run: RunView) -> bool {
    run.is(Status::RecoveryRequired) || run.is(Status::Recovered)
}

fn is_read_only(world: &World, who: Who, run: RunView) -> bool {
    let decided = run.is(Status::AwaitingApproval) || run.is(Status::Approved);
    let applied = run.may_apply() || run.is(Status::Applied) || in_recovery(run);
    !decided && !applied && run.fence.is_none() && world.seen.applies[who.index()] == 0
}

/// A runner in `tofu apply` whose lease still counts. One whose lease was lost may go on for a while;
/// it can stage, publish and report nothing.
fn is_live<R: Rules>(system: &System<R>, world: &World, machine: Runner) -> bool {
    let Runner::Applying(lease) = machine else {
        return false;
    };
    let open = world.attempts[lease.who.index()].is_some_and(|attempt| {
        attempt.number == lease.number && attempt.status == AttemptStatus::Started
    });
    let fence = system.run_of(world, lease.who).fence;
    open && system.workspace(world.workspace).is_held(lease.who, fence)
}

/// Whether the workspace would do what it is asked.
fn does<R: Rules>(system: &System<R>, world: &World, ask: WorkspaceAsk) -> bool {
    system
        .ask_workspace(world.workspace, ask)
        .is_some_and(|answer| answer.happened)
}
