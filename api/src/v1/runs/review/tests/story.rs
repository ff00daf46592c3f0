//! A run to which things happen, told by its own rules.

use stackship_domain::ids::RunId;
use stackship_domain::run::samples::{self, at, id};
use stackship_domain::run::{
    ApplyReport, Command, Counts, Facts, NewRun, PlanFailure, PlanRecord, PolicyOutcome,
    RecoveryResolution, Run, RunKind, TerminalReason,
};
use stackship_projections::{Recorded, RunReview};

/// A run to which commands happen, one every ten seconds.
pub(super) struct Story {
    run: Run,
    review: Option<RunReview>,
    sequence: i64,
}

impl Story {
    pub(super) fn of(facts: Facts) -> Self {
        let mut story = Self {
            run: Run::default(),
            review: None,
            sequence: 0,
        };
        story.take(Command::Create(Box::new(NewRun {
            facts,
            auto_apply: false,
            destroy: false,
        })));
        story
    }

    fn take(&mut self, command: Command) {
        let events = self.run.decide(command).unwrap();
        assert!(!events.is_empty(), "a command of a story does something");
        for event in events {
            self.run.evolve(&event);
            self.sequence += 1;
            let recorded = Recorded {
                event,
                sequence: self.sequence,
                recorded_at: at(10 * self.sequence),
                actor: samples::reviewer(),
            };
            match &mut self.review {
                Some(review) => review.take(&recorded),
                none => *none = RunReview::begin(id::<RunId>(1000), &recorded),
            }
        }
    }

    pub(super) fn and(mut self, commands: impl IntoIterator<Item = Command>) -> Self {
        commands.into_iter().for_each(|command| self.take(command));
        self
    }

    pub(super) fn review(self) -> RunReview {
        self.review.unwrap()
    }
}

pub(super) fn queued() -> Story {
    Story::of(samples::facts())
}

pub(super) fn planning() -> Story {
    let (fence, attempt) = (samples::fence(), samples::attempt(1));
    let warnings = Vec::new();
    queued().and([
        Command::GrantLock { fence, warnings },
        Command::StartPlan { attempt },
    ])
}

pub(super) fn record(plan: PlanRecord) -> Command {
    Command::RecordPlan {
        attempt: samples::attempt(1).id,
        plan: Box::new(plan),
    }
}

pub(super) fn judged(outcome: PolicyOutcome) -> Command {
    Command::RecordPolicy {
        result: samples::policy(outcome),
        approval_expires_at: at(3600),
    }
}

pub(super) fn checking(plan: PlanRecord) -> Story {
    planning().and([record(plan), Command::StartPolicyCheck])
}

pub(super) fn asking() -> Story {
    checking(destroying()).and([judged(PolicyOutcome::Pass)])
}

pub(super) fn asking_harmlessly() -> Story {
    checking(samples::plan()).and([judged(PolicyOutcome::Pass)])
}

/// A plan that destroys something.
pub(super) fn destroying() -> PlanRecord {
    PlanRecord {
        counts: Counts {
            destroy: 1,
            ..samples::plan().counts
        },
        ..samples::plan()
    }
}

pub(super) fn approved() -> Story {
    let (by, binding) = (samples::reviewer(), samples::evidence().binding());
    asking().and([Command::Approve {
        by,
        binding,
        at: at(60),
    }])
}

pub(super) fn applying() -> Story {
    approved().and([Command::StartApply {
        attempt: samples::attempt(1),
        fence: samples::fence(),
        binding: samples::evidence().binding(),
        at: at(90),
    }])
}

pub(super) fn reported(report: ApplyReport) -> Story {
    applying().and([Command::RecordApply {
        attempt: samples::attempt(1).id,
        fence: samples::fence(),
        report: Box::new(report),
        at: at(120),
    }])
}

pub(super) fn applied() -> Story {
    let publication = samples::publication();
    reported(ApplyReport::Published { publication })
}

pub(super) fn apply_failed() -> Story {
    reported(ApplyReport::Failed {
        detail: "tofu apply ended with exit code 1.".to_owned(),
        emergency: Some(samples::staged()),
    })
}

pub(super) fn in_doubt() -> Story {
    reported(ApplyReport::Doubt(samples::doubt()))
}

pub(super) fn resolved(resolution: RecoveryResolution) -> Story {
    in_doubt().and([Command::ResolveRecovery {
        by: samples::reviewer(),
        resolution,
        reason: "Checked by hand.".to_owned(),
        at: at(200),
    }])
}

pub(super) fn cancel() -> Command {
    Command::Cancel {
        by: samples::reviewer(),
        reason: Some("Not needed.".to_owned()),
        at: at(50),
    }
}

pub(super) fn supersede() -> Command {
    Command::Supersede {
        by: id::<RunId>(99),
        at: at(50),
    }
}

pub(super) fn discard() -> Command {
    Command::Discard {
        by: samples::reviewer(),
        reason: Some("Not today.".to_owned()),
        at: at(60),
    }
}

pub(super) fn fail_plan(reason: TerminalReason) -> Command {
    Command::FailPlan {
        attempt: samples::attempt(1).id,
        failure: PlanFailure {
            reason,
            ..samples::failure()
        },
    }
}

pub(super) fn overridden() -> Command {
    Command::OverridePolicy {
        by: samples::reviewer(),
        result: samples::policy(PolicyOutcome::SoftFailed).digest,
        reason: "Agreed in review.".to_owned(),
        at: at(40),
        expires_at: at(3640),
        approval_expires_at: at(7200),
    }
}

pub(super) fn speculative() -> Story {
    let attempt = samples::attempt(1);
    Story::of(Facts {
        kind: RunKind::Speculative,
        ..samples::facts()
    })
    .and([
        Command::StartPlan { attempt },
        record(samples::plan()),
        Command::StartPolicyCheck,
    ])
}
