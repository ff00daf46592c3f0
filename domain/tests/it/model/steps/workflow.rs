//! The workflow. It reads, then commits to one aggregate; what it read may be old by then, so it asks
//! also where it could know better.

use stackship_domain::run::Status;

use super::WorkflowStep;
use crate::model::asks::{RunAsk, WorkspaceAsk};
use crate::model::rules::Rules;
use crate::model::system::{System, WorkspaceAnswer};
use crate::model::world::{AttemptStatus, Lease, Phase, Report, Runner, Who, World};

/// A run that never had the lock is queued again, by a process that read it long ago, only while
/// fewer acquisitions than this have happened: else the fence would grow without end.
const STALE_FENCE_MAX: i64 = 3;

impl<R: Rules> System<R> {
    pub(super) fn take_workflow_step(
        &self,
        world: &mut World,
        who: Who,
        step: WorkflowStep,
    ) -> Option<()> {
        match step {
            WorkflowStep::Create { auto_apply } => {
                let kind = self.kinds[who.index()];
                self.ask(world, who, RunAsk::Create { kind, auto_apply })
            }
            WorkflowStep::Enqueue => self.enqueue(world, who),
            WorkflowStep::Dequeue => {
                self.run_of(world, who).is_terminal().then_some(())?;
                self.ask_lock(world, WorkspaceAsk::Dequeue { who })
            }
            WorkflowStep::Acquire => self.acquire(world, who),
            WorkflowStep::Grant => {
                let workspace = self.workspace(world.workspace);
                (workspace.holder == Some(who)).then_some(())?;
                let fence = workspace.fence;
                self.ask(world, who, RunAsk::Grant { fence })
            }
            WorkflowStep::Release => self.release(world, who),
            WorkflowStep::Start => self.start(world, who),
            WorkflowStep::Evaluate(outcome) => self.ask(world, who, RunAsk::Evaluate { outcome }),
            WorkflowStep::Publish => {
                let as_read = world.publishing[who.index()]?;
                let answer =
                    self.ask_workspace(world.workspace, WorkspaceAsk::Publish { who, as_read })?;
                Self::commit_publication(world, who, answer);
                Some(())
            }
            WorkflowStep::Settle => self.settle(world, who),
        }
    }

    fn enqueue(&self, world: &mut World, who: Who) -> Option<()> {
        let run = self.run_of(world, who);
        let never_had_it = run.status.is_some() && run.fence.is_none();
        let needs_it = run.kind == Some(stackship_domain::run::RunKind::PlanAndApply);
        let few = self.workspace(world.workspace).fence.number() < STALE_FENCE_MAX;
        (never_had_it && needs_it && few).then_some(())?;
        self.ask_lock(world, WorkspaceAsk::Enqueue { who })
    }

    fn acquire(&self, world: &mut World, who: Who) -> Option<()> {
        let had_been_held = self.workspace(world.workspace).fence.number() > 0;
        self.ask_lock(world, WorkspaceAsk::Acquire { who })?;
        world.seen.followed |= had_been_held && !self.run_of(world, who).is_terminal();
        Some(())
    }

    fn release(&self, world: &mut World, who: Who) -> Option<()> {
        let run = self.run_of(world, who);
        let in_doubt = !R::RELEASED_AT_THE_END && run.is(Status::RecoveryRequired);
        (run.is_terminal() || in_doubt).then_some(())?;
        let fence = self.workspace(world.workspace).fence;
        let as_read = world.runs[who.index()];
        let ask = WorkspaceAsk::Release {
            who,
            fence,
            as_read,
        };
        self.ask_lock(world, ask)
    }

    /// The run takes the leased attempt, and then its runner hears of it. A process that stalled says
    /// so after the lease was lost or handed back, and no runner hears it.
    fn start(&self, world: &mut World, who: Who) -> Option<()> {
        let attempt = world.attempts[who.index()]?;
        let (phase, number) = (attempt.phase, attempt.number);
        let lease = Lease { who, number };
        match attempt.status {
            AttemptStatus::Leased => {
                self.ask(world, who, RunAsk::Start { phase, lease })?;
                world.attempts[who.index()].as_mut()?.status = AttemptStatus::Told;
                tell(world, phase, lease)
            }
            AttemptStatus::Lost | AttemptStatus::Reported(Report::HandedBack) => {
                self.ask(world, who, RunAsk::Start { phase, lease })
            }
            AttemptStatus::Told | AttemptStatus::Started if !R::TOLD_AFTER_START => {
                self.ask(world, who, RunAsk::Start { phase, lease })
            }
            AttemptStatus::Told
            | AttemptStatus::Started
            | AttemptStatus::Reported(_)
            | AttemptStatus::Dropped => None,
        }
    }

    fn settle(&self, world: &mut World, who: Who) -> Option<()> {
        let attempt = world.attempts[who.index()]?;
        let (phase, number) = (attempt.phase, attempt.number);
        let lease = Lease { who, number };
        let staged = world.staged[who.index()];
        let ask = match attempt.status {
            AttemptStatus::Lost => RunAsk::Lose {
                phase,
                lease,
                staged,
            },
            AttemptStatus::Reported(Report::Planned) => RunAsk::RecordPlan {
                lease,
                against: world.workspace,
            },
            AttemptStatus::Reported(Report::HandedBack) => RunAsk::HandBack { lease },
            AttemptStatus::Reported(Report::Applied) => {
                let report = self.published(world, who)?;
                RunAsk::RecordApply {
                    lease,
                    report,
                    staged,
                }
            }
            AttemptStatus::Reported(report) => RunAsk::RecordApply {
                lease,
                report,
                staged,
            },
            AttemptStatus::Leased
            | AttemptStatus::Told
            | AttemptStatus::Started
            | AttemptStatus::Dropped => return None,
        };
        self.ask(world, who, ask)
    }

    /// What a success is, now that its state was to be published; `None` while it is not yet.
    fn published(&self, world: &World, who: Who) -> Option<Report> {
        let as_read = world.publishing[who.index()]?;
        match self.ask_workspace(world.workspace, WorkspaceAsk::Publish { who, as_read }) {
            None => Some(Report::Doubtful),
            Some(answer) if answer.happened => None,
            Some(_) => Some(Report::Applied),
        }
    }

    pub(super) fn ask(&self, world: &mut World, who: Who, ask: RunAsk) -> Option<()> {
        let answer = self.ask_run(world.runs[who.index()], ask)?;
        self.commit_run(world, who, answer);
        Some(())
    }

    fn ask_lock(&self, world: &mut World, ask: WorkspaceAsk) -> Option<()> {
        world.workspace = self.ask_workspace(world.workspace, ask)?.after;
        Some(())
    }

    pub(super) fn commit_publication(world: &mut World, who: Who, answer: WorkspaceAnswer) {
        world.workspace = answer.after;
        world.seen.published[who.index()] |= answer.happened;
        world.seen.breaches.foreign_publication |= answer.foreign_publication;
    }
}

/// An idle runner gets the lease.
pub(super) fn tell(world: &mut World, phase: Phase, lease: Lease) -> Option<()> {
    let idle = world
        .runners
        .iter_mut()
        .find(|machine| **machine == Runner::Idle)?;
    *idle = match phase {
        Phase::Plan => Runner::Planning(lease),
        Phase::Apply => Runner::Prepared(lease),
    };
    Some(())
}
