//! The store: attempts are leased under the current fence and closed once.

use stackship_domain::run::Status;

use super::StoreStep;
use super::workflow::tell;
use crate::model::asks::RunAsk;
use crate::model::rules::Rules;
use crate::model::system::System;
use crate::model::views::RunView;
use crate::model::world::{ATTEMPTS_MAX, Attempt, AttemptStatus, Lease, Phase, Report, Who, World};

impl<R: Rules> System<R> {
    pub fn run_of(&self, world: &World, who: Who) -> RunView {
        self.run(world.runs[who.index()])
    }

    /// The guard of every late write: the row of the lock names the run and the fence it knows. A
    /// speculative run has neither, and writes nothing that would need them.
    pub(super) fn fence_is_current(&self, world: &World, who: Who) -> bool {
        let run = self.run_of(world, who);
        run.fence.is_none() || self.workspace(world.workspace).is_held(who, run.fence)
    }

    pub(super) fn take_store_step(
        &self,
        world: &mut World,
        who: Who,
        step: StoreStep,
    ) -> Option<()> {
        match step {
            StoreStep::Lease => self.lease(world, who),
            StoreStep::Drop => self.drop_lease(world, who),
            StoreStep::Expire => Self::expire(world, who),
        }
    }

    fn lease(&self, world: &mut World, who: Who) -> Option<()> {
        let phase = match self.run_of(world, who).status? {
            Status::Queued => Phase::Plan,
            Status::Approved => Phase::Apply,
            _ => return None,
        };
        let number = match world.attempts[who.index()] {
            Some(newest) if newest.status.is_open() => return None,
            Some(newest) if newest.phase == phase => newest.number + 1,
            Some(_) | None => 1,
        };
        let takes_lock = phase == Phase::Apply || self.run_of(world, who).fence.is_some();
        let fenced = !takes_lock || self.fence_is_current(world, who);
        (number <= ATTEMPTS_MAX && fenced).then_some(())?;
        let mut status = AttemptStatus::Leased;
        if !R::TOLD_AFTER_START {
            status = AttemptStatus::Told;
            tell(world, phase, Lease { who, number })?;
        }
        world.attempts[who.index()] = Some(Attempt {
            phase,
            number,
            status,
        });
        Some(())
    }

    fn drop_lease(&self, world: &mut World, who: Who) -> Option<()> {
        let attempt = world.attempts[who.index()]?;
        let (phase, number) = (attempt.phase, attempt.number);
        let lease = Lease { who, number };
        let refused = self
            .ask_run(world.runs[who.index()], RunAsk::Start { phase, lease })
            .is_none();
        (attempt.status == AttemptStatus::Leased && refused).then_some(())?;
        world.attempts[who.index()].as_mut()?.status = AttemptStatus::Dropped;
        Some(())
    }

    fn expire(world: &mut World, who: Who) -> Option<()> {
        let attempt = world.attempts[who.index()].as_mut()?;
        let forgotten =
            !R::CLOSED_ONCE && attempt.status == AttemptStatus::Reported(Report::Applied);
        (attempt.status.is_open() || forgotten).then_some(())?;
        world.seen.lost[who.index()] |= attempt.status == AttemptStatus::Started;
        attempt.status = AttemptStatus::Lost;
        Some(())
    }

    /// A report closes the attempt it is about, if that is open and its fence is current.
    pub(super) fn deliver(&self, world: &mut World, lease: Lease, report: Report) -> Option<()> {
        let who = lease.who;
        let fenced = self.fence_is_current(world, who);
        let attempt = world.attempts[who.index()].as_mut()?;
        let meant = attempt.number == lease.number && attempt.phase == report.phase();
        let open = match (attempt.status, report) {
            (AttemptStatus::Started, Report::HandedBack) => !R::HANDED_BACK_UNSTARTED,
            (AttemptStatus::Told | AttemptStatus::Started, _) => true,
            (
                AttemptStatus::Leased
                | AttemptStatus::Reported(_)
                | AttemptStatus::Lost
                | AttemptStatus::Dropped,
                _,
            ) => false,
        };
        (fenced && meant && open).then_some(())?;
        attempt.status = AttemptStatus::Reported(report);
        if report == Report::Applied {
            world.publishing[who.index()] = Some(world.runs[who.index()]);
        }
        Some(())
    }
}
