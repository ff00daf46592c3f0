//! Each rule in words: given events, when a command comes, then these events follow or this refusal.

mod apply;
mod creation;
mod plan;
mod policy;
mod workspace_lock;

use stackship_domain::run::samples::{self, at, attempt};
use stackship_domain::run::{Command, Event, NewRun, PolicyOutcome, Refusal, Run, Status};
use stackship_domain::{Actor, Fence};

/// A run with a history, made by commands alone.
#[derive(Debug, Clone)]
pub struct Given {
    pub run: Run,
    pub log: Vec<Event>,
}

impl Given {
    pub fn nothing() -> Self {
        Self {
            run: Run::Unborn,
            log: Vec::new(),
        }
    }

    pub fn created() -> Self {
        Self::nothing().and(Command::Create(Box::new(NewRun {
            facts: samples::facts(),
            auto_apply: false,
            destroy: false,
        })))
    }

    pub fn speculative() -> Self {
        Self::nothing().and(Command::Create(Box::new(NewRun {
            facts: samples::speculative_facts(),
            auto_apply: false,
            destroy: false,
        })))
    }

    pub fn locked() -> Self {
        Self::created().and(Command::GrantLock {
            fence: samples::fence(),
            warnings: Vec::new(),
        })
    }

    pub fn planning(self, number: u32) -> Self {
        self.and(Command::StartPlan {
            attempt: attempt(number),
        })
    }

    pub fn planned(self) -> Self {
        self.and(Command::RecordPlan {
            attempt: attempt(1).id,
            plan: Box::new(samples::plan()),
        })
    }

    pub fn evaluated(self, outcome: PolicyOutcome) -> Self {
        self.and(Command::StartPolicyCheck)
            .and(record_policy(outcome))
    }

    pub fn awaiting_approval() -> Self {
        Self::locked()
            .planning(1)
            .planned()
            .evaluated(PolicyOutcome::Pass)
    }

    pub fn override_required() -> Self {
        Self::locked()
            .planning(1)
            .planned()
            .evaluated(PolicyOutcome::SoftFailed)
    }

    pub fn approved() -> Self {
        Self::awaiting_approval().and(approve(samples::reviewer()))
    }

    pub fn applying() -> Self {
        Self::approved().and(start_apply(1, samples::fence()))
    }

    /// The command is carried out.
    pub fn and(mut self, command: Command) -> Self {
        let name = command.name();
        let events = match self.run.decide(command) {
            Ok(events) => events,
            Err(refusal) => panic!("`{name}` was refused: {refusal}"),
        };
        for event in events {
            self.run.evolve(&event);
            self.log.push(event);
        }
        self
    }

    pub fn refuses(&self, command: Command) -> Refusal {
        match self.run.decide(command) {
            Err(refusal) => refusal,
            Ok(events) => panic!("not refused: {events:?}"),
        }
    }

    /// The command was carried out before, and saying it again is harmless.
    pub fn shrugs_at(&self, command: Command) {
        assert_eq!(self.run.decide(command), Ok(vec![]));
    }

    pub fn status(&self) -> Status {
        self.run.status().expect("the run was created")
    }

    pub fn last(&self) -> &Event {
        self.log.last().expect("something happened")
    }
}

pub fn record_policy(outcome: PolicyOutcome) -> Command {
    Command::RecordPolicy {
        result: samples::policy(outcome),
        approval_expires_at: at(3600),
    }
}

pub fn approve(by: Actor) -> Command {
    Command::Approve {
        by,
        binding: samples::evidence().binding(),
        at: at(60),
    }
}

pub fn start_apply(number: u32, fence: Fence) -> Command {
    Command::StartApply {
        attempt: attempt(number),
        fence,
        binding: samples::evidence().binding(),
        at: at(90),
    }
}

pub fn cancel() -> Command {
    Command::Cancel {
        by: samples::reviewer(),
        reason: None,
        at: at(50),
    }
}
