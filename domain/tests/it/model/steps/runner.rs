//! Runners: honest, and with no idea of what happened to their lease meanwhile.

use super::RunnerStep;
use crate::model::rules::Rules;
use crate::model::system::System;
use crate::model::world::{AttemptStatus, Lease, Phase, Report, Runner, World};

impl<R: Rules> System<R> {
    pub(super) fn take_runner_step(
        &self,
        world: &mut World,
        machine: Runner,
        step: RunnerStep,
    ) -> Option<()> {
        let becomes = match (machine, step) {
            (Runner::Prepared(lease), RunnerStep::BeginApply) => {
                self.begin_apply(world, lease)?;
                Runner::Applying(lease)
            }
            (Runner::Applying(lease), RunnerStep::Stage) => {
                self.stage(world, lease)?;
                machine
            }
            (_, RunnerStep::Say(report)) => {
                world
                    .messages
                    .add(Self::may_say(world, machine, report)?, report);
                Runner::Idle
            }
            (_, RunnerStep::Die) => Runner::Idle,
            (_, RunnerStep::BeginApply | RunnerStep::Stage) => return None,
        };
        *world.runners.iter_mut().find(|known| **known == machine)? = becomes;
        Some(())
    }

    /// The store's mark comes before `tofu apply`: while the attempt is open, under the current fence.
    fn begin_apply(&self, world: &mut World, lease: Lease) -> Option<()> {
        let who = lease.who.index();
        self.fence_is_current(world, lease.who).then_some(())?;
        let attempt = world.attempts[who].as_mut()?;
        let open = attempt.phase == Phase::Apply
            && attempt.number == lease.number
            && attempt.status == AttemptStatus::Told;
        open.then_some(())?;
        attempt.status = AttemptStatus::Started;
        world.seen.applies[who] = world.seen.applies[who].saturating_add(1).min(2);
        Some(())
    }

    /// A state is staged under the current fence while the attempt is open.
    fn stage(&self, world: &mut World, lease: Lease) -> Option<()> {
        self.fence_is_current(world, lease.who).then_some(())?;
        let attempt = world.attempts[lease.who.index()]?;
        let open = attempt.number == lease.number && attempt.status == AttemptStatus::Started;
        open.then_some(())?;
        world.staged[lease.who.index()] = true;
        Some(())
    }

    /// Whose attempt the report is about, if a runner here may say it.
    fn may_say(world: &World, machine: Runner, report: Report) -> Option<Lease> {
        match (machine, report) {
            (Runner::Planning(lease), Report::Planned)
            | (Runner::Prepared(lease), Report::HandedBack | Report::NotStarted)
            | (Runner::Applying(lease), Report::Failed | Report::Doubtful) => Some(lease),
            (Runner::Applying(lease), Report::Applied) => {
                world.staged[lease.who.index()].then_some(lease)
            }
            (Runner::Applying(lease), Report::HandedBack) => {
                (!R::HANDED_BACK_UNSTARTED).then_some(lease)
            }
            (Runner::Idle | Runner::Planning(_) | Runner::Prepared(_) | Runner::Applying(_), _) => {
                None
            }
        }
    }
}
