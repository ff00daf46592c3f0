//! One thing wrong at a time.

use stackship_domain::run::samples::{self, at};
use stackship_domain::run::{
    Command, Event, PlanChanges, PolicyOutcome, PolicyResult, Refusal, Run, Standing, Status,
};

use super::world::Verdict;
use crate::model::asks::standing;
use crate::model::rules::Rules;

type Decision = Result<Vec<Event>, Refusal>;

/// Decides as if another result had been found.
fn with_result(
    run: &Run,
    mut command: Command,
    change: impl FnOnce(&mut PolicyResult),
) -> Decision {
    if let Command::RecordPolicy { result, .. } = &mut command {
        change(result);
    }
    run.decide(command)
}

/// Decides as if the result had another outcome.
fn taken_for(run: &Run, command: Command, is: PolicyOutcome, taken_for: PolicyOutcome) -> Decision {
    with_result(run, command, |result| {
        if result.outcome == is {
            result.outcome = taken_for;
        }
    })
}

/// Who overrides a hard denial is not stopped.
#[derive(Debug)]
pub struct HardIsSoft;

impl Rules for HardIsSoft {
    fn run(run: &Run, command: Command) -> Decision {
        let (is, taken) = (PolicyOutcome::HardFailed, PolicyOutcome::SoftFailed);
        taken_for(run, command, is, taken)
    }
}

/// Policies that died have found nothing, so there is nothing against the plan.
#[derive(Debug)]
pub struct CrashPasses;

impl Rules for CrashPasses {
    fn run(run: &Run, command: Command) -> Decision {
        taken_for(run, command, PolicyOutcome::Error, PolicyOutcome::Pass)
    }
}

/// A soft denial is only told.
#[derive(Debug)]
pub struct SoftPasses;

impl Rules for SoftPasses {
    fn run(run: &Run, command: Command) -> Decision {
        taken_for(run, command, PolicyOutcome::SoftFailed, PolicyOutcome::Pass)
    }
}

/// What was evaluated is not compared with what is pinned.
#[derive(Debug)]
pub struct AnyPolicies;

impl Rules for AnyPolicies {
    fn run(run: &Run, command: Command) -> Decision {
        with_result(run, command, |result| {
            result.bundle = samples::facts().pins.policies.digest();
        })
    }
}

/// A result is taken whenever it comes, and nobody thinks of who overrode and approved the one before.
#[derive(Debug)]
pub struct ResultAfterResult;

impl Rules for ResultAfterResult {
    fn run(run: &Run, command: Command) -> Decision {
        let decided = matches!(
            run.status(),
            Some(Status::OverrideRequired | Status::AwaitingApproval | Status::Approved)
        );
        match command {
            Command::RecordPolicy {
                result,
                approval_expires_at,
            } if decided => Ok(vec![Event::PolicyEvaluated {
                result,
                approval_expires_at,
            }]),
            command => run.decide(command),
        }
    }
}

/// The result that a person saw is not compared.
#[derive(Debug)]
pub struct OverrideOfAnything;

impl Rules for OverrideOfAnything {
    fn run(run: &Run, command: Command) -> Decision {
        let Command::OverridePolicy { result: seen, .. } = command else {
            return run.decide(command);
        };
        // One of them is the recorded one, where there is one to override.
        let mut decision = Err(Refusal::StalePolicyResult);
        for known in Verdict::ALL {
            let mut command = command.clone();
            if let Command::OverridePolicy { result, .. } = &mut command {
                *result = known.digest();
            }
            decision = decision.or_else(|_| run.decide(command));
        }
        let mut events = decision?;
        for event in &mut events {
            if let Event::PolicyOverridden { result, .. } = event {
                *result = seen;
            }
        }
        Ok(events)
    }
}

/// An override lasts as long as somebody likes.
#[derive(Debug)]
pub struct OverrideForAsLongAsOneLikes;

impl Rules for OverrideForAsLongAsOneLikes {
    fn run(run: &Run, mut command: Command) -> Decision {
        let mut asked = None;
        if let Command::OverridePolicy {
            expires_at,
            at: now,
            ..
        } = &mut command
        {
            asked = Some(*expires_at);
            *expires_at = *now + jiff::SignedDuration::from_hours(12);
        }
        let mut events = run.decide(command)?;
        for event in &mut events {
            if let (Event::PolicyOverridden { expires_at, .. }, Some(asked)) = (event, asked) {
                *expires_at = asked;
            }
        }
        Ok(events)
    }
}

/// Nobody looks at the clock when an apply begins.
#[derive(Debug)]
pub struct OverrideOutlived;

impl Rules for OverrideOutlived {
    fn run(run: &Run, mut command: Command) -> Decision {
        if let Command::StartApply { at: now, .. } = &mut command {
            *now = at(0);
        }
        run.decide(command)
    }
}

/// What is approved counts for ever once it is.
#[derive(Debug)]
pub struct ApprovedForEver;

impl Rules for ApprovedForEver {
    fn run(run: &Run, command: Command) -> Decision {
        match (run.status(), &command) {
            (Some(Status::Approved), Command::Expire { .. }) => Ok(vec![]),
            _ => run.decide(command),
        }
    }
}

/// Where there is nothing to apply, nobody minds what policies say.
#[derive(Debug)]
pub struct NoChangesPass;

impl Rules for NoChangesPass {
    fn run(run: &Run, command: Command) -> Decision {
        let changes_nothing = matches!(
            standing(run),
            Some(Standing::PolicyChecking { plan })
                if plan.changes == PlanChanges::None
        );
        if changes_nothing {
            taken_for(run, command, PolicyOutcome::SoftFailed, PolicyOutcome::Pass)
        } else {
            run.decide(command)
        }
    }
}
