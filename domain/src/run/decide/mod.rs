//! The rules. Each command has its own function, and each function names every standing it accepts;
//! what is left is refused with where the run stands.

mod apply;
mod approval;
mod cancel;
mod plan;
mod policy;
mod queue;
mod recovery;

use super::{Approval, Command, Event, Facts, Hold, Refusal, Run, Standing, TerminalReason};
use crate::{Actor, Fence};

type Decision = Result<Vec<Event>, Refusal>;

/// A born run, taken apart for the rules, and the name of what is asked of it.
struct Born<'a> {
    facts: &'a Facts,
    hold: Hold,
    standing: &'a Standing,
    command: &'static str,
}

impl Run {
    /// Answers a command with the events that follow from it, or says why none do. An empty list
    /// means that the command had been carried out before: saying it again is harmless.
    pub fn decide(&self, command: Command) -> Decision {
        match (self, command) {
            (Self::Unborn, Command::Create(new)) => queue::create(*new),
            (Self::Unborn, _) => Err(Refusal::NoSuchRun),
            (
                Self::Born {
                    facts,
                    hold,
                    standing,
                },
                command,
            ) => Born {
                facts,
                hold: *hold,
                standing,
                command: command.name(),
            }
            .decide(command),
        }
    }
}

impl Born<'_> {
    /// Longer than most functions because it is the list of all commands.
    fn decide(&self, command: Command) -> Decision {
        match command {
            Command::Create(_) => Err(Refusal::AlreadyCreated),
            Command::GrantLock { fence, warnings } => self.grant_lock(fence, warnings),
            Command::StartPlan { attempt } => self.start_plan(attempt),
            Command::LosePlan {
                attempt,
                reason,
                at,
            } => self.lose_plan(attempt, reason, at),
            Command::RecordPlan { attempt, plan } => self.record_plan(attempt, *plan),
            Command::FailPlan { attempt, failure } => self.fail_plan(attempt, failure),
            Command::StopPlan { attempt, at } => self.stop_plan(attempt, at),
            Command::RequirePlanCredentials { attempt, detail } => {
                self.require_plan_credentials(attempt, detail)
            }
            Command::StartPolicyCheck => self.start_policy_check(),
            Command::RecordPolicy {
                result,
                approval_expires_at,
            } => self.record_policy(result, approval_expires_at),
            Command::OverridePolicy {
                by,
                result,
                reason,
                at,
                expires_at,
                approval_expires_at,
            } => {
                let window = policy::OverrideWindow {
                    at,
                    expires_at,
                    approval_expires_at,
                };
                self.override_policy(by, result, reason, window)
            }
            Command::Approve { by, binding, at } => self.approve(&Approval { binding, by, at }),
            Command::Discard { by, reason, at } => self.discard(by, reason, at),
            Command::Expire { at } => self.expire(at),
            Command::StartApply {
                attempt,
                fence,
                binding,
                at,
            } => self.start_apply(attempt, fence, binding, at),
            Command::HandBackApply { attempt, at } => self.hand_back_apply(attempt, at),
            Command::RecordApply {
                attempt,
                fence,
                report,
                at,
            } => self.record_apply(attempt, fence, *report, at),
            Command::LoseApply {
                attempt,
                reason,
                emergency,
            } => self.lose_apply(attempt, reason, emergency),
            Command::ResolveRecovery {
                by,
                resolution,
                reason,
                at,
            } => self.resolve_recovery(by, resolution, reason, at),
            Command::Cancel { by, reason, at } => self.cancel(by, reason, at),
            Command::Supersede { by, at } => self.supersede(by, at),
            Command::Fail { failure } => self.fail(failure),
        }
    }

    /// No, and where the run stands.
    const fn wrong_status(&self) -> Refusal {
        Refusal::WrongStatus {
            command: self.command,
            status: self.standing.status(),
        }
    }

    /// The fence a late writer presented is the one this run holds.
    fn current_fence(&self, presented: Fence) -> Result<(), Refusal> {
        match self.hold {
            Hold::Held(current) if current == presented => Ok(()),
            Hold::Held(current) => Err(Refusal::StaleFence { presented, current }),
            Hold::NotNeeded | Hold::Waiting => Err(Refusal::LockNotHeld),
        }
    }

    /// What is a person's to decide is decided by nobody else.
    fn person(&self, by: Actor) -> Result<(), Refusal> {
        if by.is_person() {
            Ok(())
        } else {
            Err(Refusal::PersonRequired {
                command: self.command,
            })
        }
    }
}

/// A reason that counts for nothing when it is blank.
fn reason_given(reason: &str) -> Result<(), Refusal> {
    if reason.trim().is_empty() {
        Err(Refusal::ReasonMissing)
    } else {
        Ok(())
    }
}

/// A failure that is reported before an apply has a reason that says so.
const fn failure_before_apply(reason: TerminalReason) -> Result<(), Refusal> {
    if reason.is_failure_before_apply() {
        Ok(())
    } else {
        Err(Refusal::NotAFailure { reason })
    }
}
