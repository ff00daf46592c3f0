//! The two aggregates behind small numbers: every question to the rules is answered once.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard};

use stackship_domain::run::{Event, Run, RunKind};
use stackship_domain::workspace::{self, Workspace};
use stateright::{Model, Property};

use super::arena::{Arena, Ref};
use super::asks::{RunAsk, WorkspaceAsk};
use super::promises;
use super::rules::Rules;
use super::steps::Step;
use super::views::{RunView, WorkspaceView};
use super::world::{Messages, Runner, Seen, World};

/// What a run answered; refusals are no answer.
#[derive(Debug, Clone, Copy)]
pub struct RunAnswer {
    pub after: Ref,
    /// Whether anything happened, or it had happened before.
    pub happened: bool,
    pub auto_apply: bool,
}

/// What a workspace answered; refusals are no answer.
#[derive(Debug, Clone, Copy)]
pub struct WorkspaceAnswer {
    pub after: Ref,
    pub happened: bool,
    /// Whether it published a state for somebody who does not hold the lock under that fence.
    pub foreign_publication: bool,
}

#[derive(Debug)]
struct Answers {
    runs: Arena<Run, RunView>,
    workspaces: Arena<Workspace, WorkspaceView>,
    of_runs: HashMap<(Ref, RunAsk), Option<RunAnswer>>,
    of_workspaces: HashMap<(Ref, WorkspaceAsk), Option<WorkspaceAnswer>>,
}

#[derive(Debug)]
pub struct System<R> {
    pub kinds: [RunKind; 2],
    answers: Mutex<Answers>,
    rules: PhantomData<R>,
}

impl<R: Rules> System<R> {
    pub fn new(kinds: [RunKind; 2]) -> Self {
        Self {
            kinds,
            answers: Mutex::new(Answers {
                runs: Arena::new(RunView::of),
                workspaces: Arena::new(WorkspaceView::of),
                of_runs: HashMap::new(),
                of_workspaces: HashMap::new(),
            }),
            rules: PhantomData,
        }
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().expect("nobody panics with the answers")
    }

    pub fn run(&self, which: Ref) -> RunView {
        self.answers().runs.view(which)
    }

    pub fn workspace(&self, which: Ref) -> WorkspaceView {
        self.answers().workspaces.view(which)
    }

    pub fn ask_run(&self, which: Ref, ask: RunAsk) -> Option<RunAnswer> {
        let mut answers = self.answers();
        if let Some(known) = answers.of_runs.get(&(which, ask)) {
            return *known;
        }
        let before = answers.runs.get(which);
        let against = match ask {
            RunAsk::RecordPlan { against, .. } => Some(answers.workspaces.get(against)),
            _ => None,
        };
        let decision = R::run(&before, ask.command(&before, against.as_deref())).ok();
        let answer = decision.map(|events| answers.after_run(&before, &events));
        answers.of_runs.insert((which, ask), answer);
        answer
    }

    pub fn ask_workspace(&self, which: Ref, ask: WorkspaceAsk) -> Option<WorkspaceAnswer> {
        let mut answers = self.answers();
        if let Some(known) = answers.of_workspaces.get(&(which, ask)) {
            return *known;
        }
        let before = answers.workspaces.get(which);
        let as_read = match ask {
            WorkspaceAsk::Publish { as_read, .. } | WorkspaceAsk::Release { as_read, .. } => {
                Some(answers.runs.get(as_read))
            }
            _ => None,
        };
        let decision = ask
            .command(as_read.as_deref())
            .and_then(|command| R::workspace(&before, command).ok());
        let answer = decision.map(|events| answers.after_workspace(&before, &events));
        answers.of_workspaces.insert((which, ask), answer);
        answer
    }
}

impl Answers {
    fn after_run(&mut self, before: &Arc<Run>, events: &[Event]) -> RunAnswer {
        let mut after = Run::clone(before);
        for event in events {
            after.evolve(event);
        }
        RunAnswer {
            after: self.runs.intern(after),
            happened: !events.is_empty(),
            auto_apply: events.iter().any(|event| {
                matches!(
                    event,
                    Event::RunQueued {
                        auto_apply: true,
                        ..
                    }
                )
            }),
        }
    }

    fn after_workspace(
        &mut self,
        before: &Arc<Workspace>,
        events: &[workspace::Event],
    ) -> WorkspaceAnswer {
        let mut after = Workspace::clone(before);
        for event in events {
            after.evolve(event);
        }
        WorkspaceAnswer {
            after: self.workspaces.intern(after),
            happened: !events.is_empty(),
            foreign_publication: events.iter().any(|event| is_foreign(before, event)),
        }
    }
}

/// The database's own check, written down once more: the row of the lock names run and fence.
fn is_foreign(before: &Workspace, event: &workspace::Event) -> bool {
    let workspace::Event::StatePublished { run, fence, .. } = event else {
        return false;
    };
    let held = before.lock.as_ref().is_some_and(|lock| {
        lock.holder == workspace::Holder::Run { run: *run } && lock.fence == *fence
    });
    !held
}

impl<R: Rules> Model for System<R> {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let mut answers = self.answers();
        let unborn = answers.runs.intern(Run::default());
        let workspace = answers.workspaces.intern(Workspace::default());
        vec![World {
            workspace,
            runs: [unborn; 2],
            attempts: [None; 2],
            runners: [Runner::Idle; 2],
            messages: Messages::default(),
            staged: [false; 2],
            publishing: [None; 2],
            seen: Seen::default(),
        }]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        Step::candidates(world, steps);
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = *world;
        self.take(&mut next, step)?;
        self.forget(&mut next);
        next.runners.sort_unstable();
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        promises::all()
    }
}
