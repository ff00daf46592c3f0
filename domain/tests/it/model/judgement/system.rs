//! What can happen to a plan that is judged. Each step is one commit, or one evaluation that ends.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard};

use stackship_domain::run::samples;
use stackship_domain::run::{Hold, PlanChanges, PlanRecord, Run, Standing, Status};
use stateright::{Model, Property};

use super::asks::{Ask, Mark, View};
use super::promises;
use super::world::{HalfDays, Said, Verdict, World};
use crate::model::arena::{Arena, Ref};
use crate::model::rules::Rules;

/// How often a runner may take the apply: the second time after it was handed back.
const APPLY_ATTEMPTS: [u32; 2] = [1, 2];
/// None at all, a half day, a whole one, and more than may be.
const OVERRIDES_LAST: [HalfDays; 4] = [
    HalfDays::NONE,
    HalfDays::new(1),
    HalfDays::DAY,
    HalfDays::new(3),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// A process that evaluated the plan has its result.
    Evaluate(Verdict),
    HalfADayPasses,
    Ask(Ask),
}

/// What the run answered; refusals are no answer.
#[derive(Debug, Clone)]
pub struct Answer {
    after: Ref,
    marks: Arc<[Mark]>,
}

#[derive(Debug)]
struct Answers {
    runs: Arena<Run, View>,
    known: HashMap<(Ref, HalfDays, Ask), Option<Answer>>,
    /// What a run does not refuse, and what would make a difference.
    taken: HashMap<(Ref, HalfDays), Arc<[Ask]>>,
}

#[derive(Debug)]
pub struct Judged<R> {
    answers: Mutex<Answers>,
    rules: PhantomData<R>,
}

impl<R: Rules> Judged<R> {
    pub fn new() -> Self {
        Self {
            answers: Mutex::new(Answers {
                runs: Arena::new(View::of),
                known: HashMap::new(),
                taken: HashMap::new(),
            }),
            rules: PhantomData,
        }
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().expect("nobody panics with the answers")
    }

    pub fn view(&self, world: &World) -> View {
        self.answers().runs.view(world.run)
    }

    /// Where the run would stand then; `None` when it refuses.
    pub fn after(&self, world: &World, ask: Ask) -> Option<View> {
        let run = self.ask(world, ask)?.after;
        Some(self.view(&World { run, ..*world }))
    }

    fn ask(&self, world: &World, ask: Ask) -> Option<Answer> {
        let mut answers = self.answers();
        let question = (world.run, world.now, ask);
        if let Some(known) = answers.known.get(&question) {
            return known.clone();
        }
        let before = answers.runs.get(world.run);
        let answer = R::run(&before, ask.command(world.now)).ok().map(|events| {
            let mut after = Run::clone(&before);
            for event in &events {
                after.evolve(event);
            }
            Answer {
                after: answers.runs.intern(after),
                marks: events.iter().filter_map(Mark::of).collect(),
            }
        });
        answers.known.insert(question, answer.clone());
        answer
    }

    /// Everything is asked of every run at every time, and each once.
    fn taken(&self, world: &World) -> Arc<[Ask]> {
        let question = (world.run, world.now);
        let known = self.answers().taken.get(&question).cloned();
        known.unwrap_or_else(|| {
            let differs = |ask: &Ask| {
                let answer = self.ask(world, *ask);
                answer.is_some_and(|answer| answer.after != world.run || !answer.marks.is_empty())
            };
            let taken: Arc<[Ask]> = asks().filter(differs).collect();
            self.answers().taken.insert(question, Arc::clone(&taken));
            taken
        })
    }

    /// Processes evaluate while the check is due; what they find may come much later.
    fn evaluate(&self, world: &mut World, verdict: Verdict) -> Option<()> {
        let due = self.view(world).status == Status::PolicyChecking;
        let free = world.evaluated.iter_mut().find(|found| found.is_none());
        *free.filter(|_| due)? = Some(verdict);
        world.evaluated.sort_unstable();
        Some(())
    }

    fn take(&self, world: &mut World, step: Step) -> Option<()> {
        match step {
            Step::Evaluate(verdict) => self.evaluate(world, verdict),
            Step::HalfADayPasses => {
                // No rule looks at a time before there is a result.
                world.said.result?;
                world.now = world.now.next()?;
                Some(())
            }
            Step::Ask(ask) => {
                let answer = self.ask(world, ask)?;
                world.run = answer.after;
                for mark in &*answer.marks {
                    mark.tell(world);
                }
                Some(())
            }
        }
    }
}

/// Whatever may be asked of a run here, by people who saw any result.
fn asks() -> impl Iterator<Item = Ask> {
    let about = |of| {
        OVERRIDES_LAST
            .map(|lasts| Ask::Override { of, lasts })
            .into_iter()
            .chain(APPLY_ATTEMPTS.map(|number| Ask::StartApply { number, under: of }))
            .chain([Ask::Record(of), Ask::Approve { of }])
    };
    let ends = |number| [Ask::HandBack { number }, Ask::Applied { number }];
    [Ask::StartCheck, Ask::Discard, Ask::Cancel, Ask::Lapse]
        .into_iter()
        .chain(Verdict::ALL.into_iter().flat_map(about))
        .chain(APPLY_ATTEMPTS.into_iter().flat_map(ends))
}

/// Runs whose plan was just recorded: one that changes something, one that does not, and a
/// speculative one.
fn planned() -> [Run; 3] {
    let plan = samples::plan;
    let no_changes = PlanRecord {
        changes: PlanChanges::None,
        ..plan()
    };
    [
        samples::run(Standing::Planned { plan: plan() }),
        samples::run(Standing::Planned { plan: no_changes }),
        samples::run_with(
            samples::speculative_facts(),
            Hold::NotNeeded,
            Standing::Planned { plan: plan() },
        ),
    ]
}

impl<R: Rules> Model for Judged<R> {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let mut answers = self.answers();
        let world = |run| World {
            run: answers.runs.intern(run),
            now: HalfDays::NONE,
            evaluated: [None; 2],
            said: Said::default(),
            begun: None,
        };
        planned().into_iter().map(world).collect()
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        steps.push(Step::HalfADayPasses);
        steps.extend(Verdict::ALL.map(Step::Evaluate));
        let taken = self.taken(world);
        let said = |ask: &Ask| match ask {
            Ask::Record(verdict) => world.evaluated.contains(&Some(*verdict)),
            _ => true,
        };
        steps.extend(taken.iter().copied().filter(said).map(Step::Ask));
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = *world;
        self.take(&mut next, step)?;
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        promises::all()
    }
}
