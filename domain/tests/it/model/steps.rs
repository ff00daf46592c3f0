//! What can happen in the world. Each step is one commit, or one thing that a runner does by itself;
//! a process that dies between two commits is a step that never comes.

mod person;
mod runner;
mod store;
mod workflow;

use stackship_domain::run::PolicyOutcome;

use super::rules::Rules;
use super::system::{RunAnswer, System};
use super::world::{ATTEMPTS_MAX, Lease, Report, Runner, Who, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    Workflow(Who, WorkflowStep),
    Store(Who, StoreStep),
    Deliver(Lease, Report),
    Runner(Runner, RunnerStep),
    Person(Who, Decision),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkflowStep {
    Create {
        auto_apply: bool,
    },
    Enqueue,
    Dequeue,
    Acquire,
    Grant,
    Release,
    /// Tells the run that a runner leased its attempt.
    Start,
    Evaluate(PolicyOutcome),
    Publish,
    /// Tells the run how its closed attempt ended.
    Settle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreStep {
    Lease,
    /// Closes an attempt that its run did not take.
    Drop,
    Expire,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunnerStep {
    BeginApply,
    Stage,
    Say(Report),
    Die,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    Override,
    Approve {
        of_what_is_asked: bool,
    },
    Discard,
    Cancel,
    /// Nobody decided in time.
    Lapse,
    /// A newer run takes this one's place.
    Supersede,
    Adopt,
    DeclareNoChange,
}

const WORKFLOW: [WorkflowStep; 12] = [
    WorkflowStep::Create { auto_apply: false },
    WorkflowStep::Create { auto_apply: true },
    WorkflowStep::Enqueue,
    WorkflowStep::Dequeue,
    WorkflowStep::Acquire,
    WorkflowStep::Grant,
    WorkflowStep::Release,
    WorkflowStep::Start,
    WorkflowStep::Evaluate(PolicyOutcome::Pass),
    WorkflowStep::Evaluate(PolicyOutcome::SoftFailed),
    WorkflowStep::Publish,
    WorkflowStep::Settle,
];
const STORE: [StoreStep; 3] = [StoreStep::Lease, StoreStep::Drop, StoreStep::Expire];
const DECISIONS: [Decision; 9] = [
    Decision::Override,
    Decision::Approve {
        of_what_is_asked: true,
    },
    Decision::Approve {
        of_what_is_asked: false,
    },
    Decision::Discard,
    Decision::Cancel,
    Decision::Lapse,
    Decision::Supersede,
    Decision::Adopt,
    Decision::DeclareNoChange,
];

impl Who {
    /// The runs are alike, so it is enough that one of them is overridden.
    const fn is_led_through(self, step: WorkflowStep) -> bool {
        !matches!(
            (self, step),
            (
                Self::Second,
                WorkflowStep::Evaluate(PolicyOutcome::SoftFailed)
            )
        )
    }

    /// The runs are alike, so it is enough that one of them ends in every way there is.
    const fn is_decided_on(self, decision: Decision) -> bool {
        match (self, decision) {
            (Self::First, _)
            | (
                Self::Second,
                Decision::Approve { .. }
                | Decision::Cancel
                | Decision::Adopt
                | Decision::DeclareNoChange,
            ) => true,
            (
                Self::Second,
                Decision::Override | Decision::Discard | Decision::Lapse | Decision::Supersede,
            ) => false,
        }
    }
}

impl Step {
    /// Everything that might happen here; what cannot is not taken.
    pub fn candidates(world: &World, steps: &mut Vec<Self>) {
        for who in Who::BOTH {
            let workflow = WORKFLOW.iter().filter(|step| who.is_led_through(**step));
            steps.extend(workflow.map(|step| Self::Workflow(who, *step)));
            steps.extend(STORE.map(|step| Self::Store(who, step)));
            let decisions = DECISIONS
                .iter()
                .filter(|decision| who.is_decided_on(**decision));
            steps.extend(decisions.map(|decision| Self::Person(who, *decision)));
            for number in 1..=ATTEMPTS_MAX {
                let lease = Lease { who, number };
                let said = Report::ALL
                    .into_iter()
                    .filter(|report| world.messages.has(lease, *report));
                steps.extend(said.map(|report| Self::Deliver(lease, report)));
            }
        }
        for machine in world.runners {
            if machine != Runner::Idle {
                steps.extend(
                    [RunnerStep::BeginApply, RunnerStep::Stage, RunnerStep::Die]
                        .map(|step| Self::Runner(machine, step)),
                );
                steps.extend(
                    Report::ALL.map(|report| Self::Runner(machine, RunnerStep::Say(report))),
                );
            }
        }
    }
}

impl<R: Rules> System<R> {
    /// Takes the step; `None` when it cannot be taken here.
    pub fn take(&self, world: &mut World, step: Step) -> Option<()> {
        match step {
            Step::Workflow(who, step) => self.take_workflow_step(world, who, step),
            Step::Store(who, step) => self.take_store_step(world, who, step),
            Step::Deliver(lease, report) => self.deliver(world, lease, report),
            Step::Runner(machine, step) => self.take_runner_step(world, machine, step),
            Step::Person(who, decision) => self.decide(world, who, decision),
        }
    }

    /// Commits what a run answered.
    fn commit_run(&self, world: &mut World, who: Who, answer: RunAnswer) {
        let before = world.runs[who.index()];
        world.seen.breaches.moved_after_end |= answer.happened && self.run(before).is_terminal();
        world.seen.breaches.auto_apply |= answer.auto_apply;
        world.runs[who.index()] = answer.after;
    }
}
