//! The rules. Each command has its own function, and each function names every standing it accepts;
//! what is left is refused with where the run stands.

use super::{
    ApplyReport, Approval, Command, Doubt, DoubtReason, Event, Evidence, EvidencePart, Facts, Hold,
    LossReason, NewRun, OVERRIDE_SECONDS_MAX, PLAN_ATTEMPTS_MAX, PlanChanges, PlanRecord,
    PolicyOutcome, PolicyResult, Refusal, Run, RunKind, StagedState, Standing, TerminalReason,
};
use crate::ids::AttemptId;
use crate::{Actor, Fence, Sha256Digest, Timestamp};

type Decision = Result<Vec<Event>, Refusal>;

/// A born run, taken apart for the rules.
struct Born<'a> {
    facts: &'a Facts,
    hold: Hold,
    standing: &'a Standing,
}

impl Run {
    /// Answers a command with the events that follow from it, or says why none do. An empty list
    /// means that the command had been carried out before: saying it again is harmless.
    pub fn decide(&self, command: Command) -> Decision {
        let name = command.name();
        let born = match (self, command) {
            (Self::Unborn, Command::Create(new)) => return create(*new),
            (Self::Unborn, _) => return Err(Refusal::NoSuchRun),
            (Self::Born { .. }, Command::Create(_)) => return Err(Refusal::AlreadyCreated),
            (
                Self::Born {
                    facts,
                    hold,
                    standing,
                },
                command,
            ) => (
                Born {
                    facts,
                    hold: *hold,
                    standing,
                },
                command,
            ),
        };
        let (born, command) = born;
        match command {
            Command::Create(_) => Err(Refusal::AlreadyCreated),
            Command::GrantLock { fence } => born.grant_lock(fence),
            Command::StartPlan { attempt } => match born.standing {
                Standing::Queued { .. } if born.hold == Hold::Waiting => Err(Refusal::LockNotHeld),
                Standing::Queued { .. } => Ok(vec![Event::PlanStarted { attempt }]),
                Standing::Planning {
                    attempt: current, ..
                } if *current == attempt => Ok(vec![]),
                other => Err(wrong(name, other)),
            },
            Command::LosePlan {
                attempt,
                reason,
                at,
            } => born.lose_plan(attempt, reason, at),
            Command::RecordPlan { attempt, plan } => {
                born.planning_attempt(name, attempt)?;
                Ok(vec![Event::PlanRecorded { plan: *plan }])
            }
            Command::FailPlan { attempt, failure } => {
                born.planning_attempt(name, attempt)?;
                Ok(vec![Event::PlanFailed { failure }])
            }
            Command::StopPlan { attempt, at } => born.stop_plan(attempt, at),
            Command::RequirePlanCredentials { attempt, detail } => {
                born.planning_attempt(name, attempt)?;
                Ok(vec![Event::PlanCredentialsMissing { detail }])
            }
            Command::StartPolicyCheck => match born.standing {
                Standing::Planned { .. } => Ok(vec![Event::PolicyCheckStarted]),
                Standing::PolicyChecking { .. } => Ok(vec![]),
                other => Err(wrong(name, other)),
            },
            Command::RecordPolicy {
                result,
                approval_expires_at,
            } => match born.standing {
                Standing::PolicyChecking { plan } => {
                    Ok(born.after_policy(plan, result, approval_expires_at))
                }
                other => Err(wrong(name, other)),
            },
            Command::OverridePolicy {
                by,
                result,
                reason,
                at,
                expires_at,
                approval_expires_at,
            } => {
                let window = OverrideWindow {
                    at,
                    expires_at,
                    approval_expires_at,
                };
                born.override_policy(by, result, reason, window)
            }
            Command::Approve { by, binding, at } => born.approve(Approval { binding, by, at }),
            Command::Discard { by, reason, at } => match born.standing {
                Standing::AwaitingApproval { .. } | Standing::OverrideRequired { .. } => {
                    Ok(vec![Event::RunDiscarded { by, reason, at }])
                }
                Standing::Ended(super::Ending::Discarded { by: earlier }) if *earlier == by => {
                    Ok(vec![])
                }
                other => Err(wrong(name, other)),
            },
            Command::Expire { at } => match born.standing {
                Standing::AwaitingApproval { expires_at, .. } if at < *expires_at => {
                    Err(Refusal::ApprovalNotExpired)
                }
                Standing::AwaitingApproval { .. } | Standing::OverrideRequired { .. } => {
                    Ok(vec![Event::ApprovalExpired { at }])
                }
                other => Err(wrong(name, other)),
            },
            Command::StartApply {
                attempt,
                fence,
                binding,
                at,
            } => born.start_apply(attempt, fence, binding, at),
            Command::HandBackApply { attempt, at } => born.hand_back_apply(attempt, at),
            Command::RecordApply {
                attempt,
                fence,
                report,
                at,
            } => {
                born.current_fence(fence)?;
                born.record_apply(attempt, *report, at)
            }
            Command::LoseApply {
                attempt,
                reason,
                emergency,
            } => born.lose_apply(attempt, reason, emergency),
            Command::ResolveRecovery {
                by,
                resolution,
                reason,
                at,
            } => match born.standing {
                Standing::RecoveryRequired { .. } if reason.trim().is_empty() => {
                    Err(Refusal::ReasonMissing)
                }
                Standing::RecoveryRequired { .. } => Ok(vec![Event::RecoveryResolved {
                    by,
                    resolution,
                    reason,
                    at,
                }]),
                other => Err(wrong(name, other)),
            },
            Command::Cancel { by, reason, at } => born.cancel(by, reason, at),
            Command::Supersede { by, at } => match born.standing {
                Standing::Queued { .. } | Standing::Planning { .. }
                    if born.facts.kind == RunKind::Speculative =>
                {
                    Ok(vec![Event::RunSuperseded { by, at }])
                }
                other => Err(wrong(name, other)),
            },
            Command::Fail { failure } => match born.standing {
                Standing::Queued { .. }
                | Standing::Planned { .. }
                | Standing::PolicyChecking { .. } => Ok(vec![Event::RunFailed {
                    reason: failure.reason,
                    detail: failure.detail,
                }]),
                other => Err(wrong(name, other)),
            },
        }
    }
}

fn wrong(command: &'static str, standing: &Standing) -> Refusal {
    Refusal::WrongStatus {
        command,
        status: standing.status(),
    }
}

fn create(new: NewRun) -> Decision {
    if new.auto_apply {
        return Err(Refusal::AutoApply);
    }
    if new.destroy {
        return Err(Refusal::DestroyMode);
    }
    Ok(vec![Event::RunQueued {
        facts: new.facts,
        auto_apply: false,
    }])
}

struct OverrideWindow {
    at: Timestamp,
    expires_at: Timestamp,
    approval_expires_at: Timestamp,
}

impl Born<'_> {
    fn grant_lock(&self, fence: Fence) -> Decision {
        match (self.hold, self.standing) {
            (Hold::Waiting, Standing::Queued { .. }) => Ok(vec![Event::LockGranted { fence }]),
            (Hold::Held(current), _) if current == fence => Ok(vec![]),
            (Hold::Held(current), _) => Err(Refusal::StaleFence {
                presented: fence,
                current,
            }),
            (Hold::NotNeeded | Hold::Waiting, other) => Err(wrong("grant_lock", other)),
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

    /// The run is planning (also while it is being canceled) in exactly this try.
    fn planning_attempt(&self, command: &'static str, attempt: AttemptId) -> Result<(), Refusal> {
        match self.standing {
            Standing::Planning {
                attempt: current, ..
            } if current.id == attempt => Ok(()),
            Standing::Planning { .. } => Err(Refusal::StaleAttempt),
            other => Err(wrong(command, other)),
        }
    }

    fn lose_plan(&self, attempt: AttemptId, reason: LossReason, at: Timestamp) -> Decision {
        match self.standing {
            Standing::Planning {
                attempt: current, ..
            }
            | Standing::PlanCanceling {
                attempt: current, ..
            } if current.id != attempt => Err(Refusal::StaleAttempt),
            Standing::Planning { attempts_lost, .. } => {
                let lost = Event::PlanAttemptLost { attempt, reason };
                if attempts_lost + 1 < PLAN_ATTEMPTS_MAX {
                    return Ok(vec![lost]);
                }
                let detail =
                    format!("{PLAN_ATTEMPTS_MAX} attempts to plan lost their runner ({reason}).");
                Ok(vec![
                    lost,
                    Event::RunFailed {
                        reason: TerminalReason::PlanAttemptsExhausted,
                        detail,
                    },
                ])
            }
            Standing::PlanCanceling {
                by, reason: why, ..
            } => Ok(vec![Event::RunCanceled {
                by: *by,
                reason: why.clone(),
                at,
            }]),
            other => Err(wrong("lose_plan", other)),
        }
    }

    fn stop_plan(&self, attempt: AttemptId, at: Timestamp) -> Decision {
        match self.standing {
            Standing::PlanCanceling {
                attempt: current, ..
            } if current.id != attempt => Err(Refusal::StaleAttempt),
            // Whatever the plan still found, nothing was applied: the cancel holds.
            Standing::PlanCanceling { by, reason, .. } => Ok(vec![Event::RunCanceled {
                by: *by,
                reason: reason.clone(),
                at,
            }]),
            other => Err(wrong("stop_plan", other)),
        }
    }

    fn after_policy(
        &self,
        plan: &PlanRecord,
        result: PolicyResult,
        approval_expires_at: Timestamp,
    ) -> Vec<Event> {
        let outcome = result.outcome;
        let evidence = self.evidence(plan, &result);
        let evaluated = Event::PolicyEvaluated {
            result,
            approval_expires_at,
        };
        let failed = |reason: TerminalReason| Event::RunFailed {
            reason,
            detail: reason.sentence().to_owned(),
        };
        match (outcome, self.facts.kind, plan.changes) {
            (PolicyOutcome::HardFailed, _, _) => {
                vec![evaluated, failed(TerminalReason::PolicyDenied)]
            }
            (PolicyOutcome::Error, _, _) => vec![evaluated, failed(TerminalReason::PolicyError)],
            (PolicyOutcome::Pass | PolicyOutcome::SoftFailed, RunKind::Speculative, _) => {
                vec![evaluated, Event::SpeculativeRunFinished]
            }
            (PolicyOutcome::SoftFailed, RunKind::PlanAndApply, _) => vec![evaluated],
            (PolicyOutcome::Pass, RunKind::PlanAndApply, PlanChanges::None) => {
                vec![evaluated, Event::RunFinishedWithoutChanges]
            }
            (PolicyOutcome::Pass, RunKind::PlanAndApply, PlanChanges::Some) => {
                vec![evaluated, ask(evidence, approval_expires_at)]
            }
        }
    }

    fn evidence(&self, plan: &PlanRecord, policy: &PolicyResult) -> Evidence {
        Evidence {
            plan: plan.plan,
            plan_json: plan.plan_json,
            policy: policy.digest,
            predecessor: plan.predecessor.clone(),
            dependencies: plan.dependencies,
            configuration: self.facts.pins.configuration,
            inputs: self.facts.pins.inputs,
            tofu_version: self.facts.pins.tofu_version,
        }
    }

    fn override_policy(
        &self,
        by: Actor,
        result: Sha256Digest,
        reason: String,
        window: OverrideWindow,
    ) -> Decision {
        let Standing::OverrideRequired { plan, policy, .. } = self.standing else {
            return Err(wrong("override_policy", self.standing));
        };
        if policy.digest != result {
            return Err(Refusal::StalePolicyResult);
        }
        if reason.trim().is_empty() {
            return Err(Refusal::ReasonMissing);
        }
        let lasts = window.expires_at.as_second() - window.at.as_second();
        if lasts <= 0 || lasts > OVERRIDE_SECONDS_MAX {
            return Err(Refusal::OverrideTime);
        }
        let overridden = Event::PolicyOverridden {
            by,
            result,
            reason,
            expires_at: window.expires_at,
        };
        let next = match plan.changes {
            PlanChanges::None => Event::RunFinishedWithoutChanges,
            PlanChanges::Some => ask(self.evidence(plan, policy), window.approval_expires_at),
        };
        Ok(vec![overridden, next])
    }

    fn approve(&self, approval: Approval) -> Decision {
        if self.facts.kind == RunKind::Speculative {
            return Err(Refusal::Speculative);
        }
        match self.standing {
            Standing::AwaitingApproval { evidence, .. }
                if evidence.binding() != approval.binding =>
            {
                Err(Refusal::StaleEvidence {
                    part: EvidencePart::Binding,
                })
            }
            Standing::AwaitingApproval { expires_at, .. } if approval.at >= *expires_at => {
                Err(Refusal::ApprovalExpired)
            }
            Standing::AwaitingApproval { .. } => Ok(vec![Event::RunApproved {
                by: approval.by,
                binding: approval.binding,
                at: approval.at,
            }]),
            Standing::Approved {
                approval: earlier, ..
            }
            | Standing::Applying {
                approval: earlier, ..
            }
            | Standing::ApplyCanceling {
                approval: earlier, ..
            }
            | Standing::Ended(super::Ending::Applied {
                approval: earlier, ..
            }) => approved_before(earlier, &approval),
            other => Err(wrong("approve", other)),
        }
    }

    fn start_apply(
        &self,
        attempt: super::Attempt,
        fence: Fence,
        binding: Sha256Digest,
        at: Timestamp,
    ) -> Decision {
        if self.facts.kind == RunKind::Speculative {
            return Err(Refusal::Speculative);
        }
        self.current_fence(fence)?;
        match self.standing {
            Standing::Approved { approval, .. } if approval.binding != binding => {
                Err(Refusal::StaleEvidence {
                    part: EvidencePart::Binding,
                })
            }
            Standing::Approved {
                override_expires_at: Some(until),
                ..
            } if at >= *until => Err(Refusal::OverrideExpired),
            Standing::Approved { .. } => Ok(vec![Event::ApplyStarted {
                attempt,
                fence,
                binding,
            }]),
            Standing::Applying {
                attempt: current, ..
            } if *current == attempt => Ok(vec![]),
            other => Err(wrong("start_apply", other)),
        }
    }

    fn hand_back_apply(&self, attempt: AttemptId, at: Timestamp) -> Decision {
        match self.standing {
            Standing::Applying {
                attempt: current, ..
            }
            | Standing::ApplyCanceling {
                attempt: current, ..
            } if current.id != attempt => Err(Refusal::StaleAttempt),
            Standing::Applying { .. } => Ok(vec![Event::ApplyHandedBack { attempt }]),
            Standing::ApplyCanceling { by, reason, .. } => Ok(vec![Event::RunCanceled {
                by: *by,
                reason: reason.clone(),
                at,
            }]),
            other => Err(wrong("hand_back_apply", other)),
        }
    }

    fn record_apply(&self, attempt: AttemptId, report: ApplyReport, at: Timestamp) -> Decision {
        match self.standing {
            Standing::Applying {
                attempt: current, ..
            }
            | Standing::ApplyCanceling {
                attempt: current, ..
            } if current.id != attempt => Err(Refusal::StaleAttempt),
            Standing::Applying { .. } => Ok(vec![Event::of_report(report)]),
            // OpenTofu was never started, so the cancel came in time; else what happened is told.
            Standing::ApplyCanceling { by, reason, .. } => match report {
                ApplyReport::NotStarted { .. } => Ok(vec![Event::RunCanceled {
                    by: *by,
                    reason: reason.clone(),
                    at,
                }]),
                ApplyReport::Failed { detail, emergency } => {
                    Ok(vec![interrupted(detail, emergency)])
                }
                told @ (ApplyReport::Published { .. } | ApplyReport::Doubt(_)) => {
                    Ok(vec![Event::of_report(told)])
                }
            },
            other => Err(wrong("record_apply", other)),
        }
    }

    fn lose_apply(
        &self,
        attempt: AttemptId,
        reason: LossReason,
        emergency: Option<StagedState>,
    ) -> Decision {
        match self.standing {
            Standing::Applying {
                attempt: current, ..
            }
            | Standing::ApplyCanceling {
                attempt: current, ..
            } if current.id != attempt => Err(Refusal::StaleAttempt),
            Standing::Applying { .. } | Standing::ApplyCanceling { .. } => {
                let reason = match reason {
                    LossReason::LeaseExpired | LossReason::HandedBack => DoubtReason::LeaseLost,
                    LossReason::SandboxLost => DoubtReason::SandboxLost,
                };
                let detail = "The runner was lost while it applied.".to_owned();
                Ok(vec![Event::RecoveryRequired {
                    doubt: Doubt {
                        reason,
                        detail,
                        emergency,
                        errored_state_object: None,
                    },
                }])
            }
            other => Err(wrong("lose_apply", other)),
        }
    }

    fn cancel(&self, by: Actor, reason: Option<String>, at: Timestamp) -> Decision {
        match self.standing {
            Standing::Queued { .. }
            | Standing::Planned { .. }
            | Standing::PolicyChecking { .. }
            | Standing::OverrideRequired { .. }
            | Standing::AwaitingApproval { .. }
            | Standing::Approved { .. } => Ok(vec![Event::RunCanceled { by, reason, at }]),
            Standing::Planning { .. } | Standing::Applying { .. } => {
                Ok(vec![Event::CancelRequested { by, reason, at }])
            }
            Standing::PlanCanceling { by: earlier, .. }
            | Standing::ApplyCanceling { by: earlier, .. }
            | Standing::Ended(super::Ending::Canceled { by: Some(earlier) })
                if *earlier == by =>
            {
                Ok(vec![])
            }
            other => Err(wrong("cancel", other)),
        }
    }
}

/// Puts the question to a person.
fn ask(evidence: Evidence, expires_at: Timestamp) -> Event {
    Event::ApprovalRequested {
        binding: evidence.binding(),
        evidence,
        expires_at,
    }
}

/// The same person saying the same thing again is harmless; the tofu CLI repeats a lost answer.
fn approved_before(earlier: &Approval, now: &Approval) -> Decision {
    if earlier.binding != now.binding {
        return Err(Refusal::StaleEvidence {
            part: EvidencePart::Binding,
        });
    }
    if earlier.by == now.by {
        Ok(vec![])
    } else {
        Err(Refusal::AlreadyApproved { by: earlier.by })
    }
}

/// An apply that was asked to stop and then reported an error: nobody knows what it left undone.
fn interrupted(detail: String, emergency: Option<StagedState>) -> Event {
    let doubt = Doubt {
        reason: DoubtReason::Interrupted,
        detail,
        emergency,
        errored_state_object: None,
    };
    Event::RecoveryRequired { doubt }
}
