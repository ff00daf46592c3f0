//! What can make no difference any more is dropped, so that worlds that differ in nothing else are one.

use stackship_domain::run::Status;

use super::rules::Rules;
use super::system::System;
use super::world::{ATTEMPTS_MAX, Attempt, Lease, Phase, Report, Runner, Who, World};

impl<R: Rules> System<R> {
    pub fn forget(&self, world: &mut World) {
        for who in Who::BOTH {
            let run = self.run_of(world, who);
            let plans = run.is(Status::Queued)
                || run.is(Status::Planning)
                || run.cancels == Some(Phase::Plan);
            let newest = &mut world.attempts[who.index()];
            let matters = |attempt: &Attempt| match attempt.phase {
                _ if attempt.status.is_open() => true,
                Phase::Plan => plans,
                Phase::Apply => !run.is_terminal(),
            };
            *newest = newest.filter(matters);
            forget_messages(world, who);
        }
        for machine in &mut world.runners {
            // Whatever a runner without a lease says of a plan, or of an apply that it may no longer
            // begin, is refused; it might as well have died.
            if let Runner::Planning(lease) | Runner::Prepared(lease) = *machine
                && !is_open(world.attempts, lease)
            {
                *machine = Runner::Idle;
            }
        }
    }
}

/// A message about an attempt that is closed, or that is no longer the newest, is refused for ever.
fn forget_messages(world: &mut World, who: Who) {
    let newest = world.attempts[who.index()];
    for number in 1..=ATTEMPTS_MAX {
        let lease = Lease { who, number };
        let open = is_open(world.attempts, lease);
        for report in Report::ALL {
            if !open || newest.is_none_or(|attempt| attempt.phase != report.phase()) {
                world.messages.forget(lease, report);
            }
        }
    }
}

fn is_open(attempts: [Option<Attempt>; 2], lease: Lease) -> bool {
    attempts[lease.who.index()]
        .is_some_and(|attempt| attempt.number == lease.number && attempt.status.is_open())
}
