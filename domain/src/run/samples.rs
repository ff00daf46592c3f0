//! One valid value of everything, for tests here and in other rooms: the test states what differs.
//! Not part of the machine; hidden from the documentation.

use uuid::Uuid;

use super::{
    ApplyReport, Approval, Attempt, Command, Counts, Doubt, DoubtReason, Ending, Event, Evidence,
    Facts, Hold, LossReason, NewRun, Pins, PlanChanges, PlanFailure, PlanRecord, PolicyOutcome,
    PolicyResult, Predecessor, Publication, RecoveryResolution, Run, RunKind, Source, SourceKind,
    StagedState, Standing, TerminalReason,
};
use crate::ids::{
    AttemptId, ConfigurationVersionId, Id, InputSnapshotId, ObjectId, OrganizationId, ProjectId,
    RunId, RunnerId, StateVersionId, UserId, WorkspaceId,
};
use crate::{Actor, Fence, Sha256Digest, Timestamp};

/// The `number`-th id of a kind.
pub fn id<T: Id>(number: u128) -> T {
    T::from_uuid(Uuid::from_u128(number))
}

/// A time, in seconds after a fixed moment.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).expect("a second in this century")
}

/// The person who decides in most samples.
pub fn reviewer() -> Actor {
    Actor::User(id::<UserId>(7))
}

/// The fence that a sample run holds.
pub const fn fence() -> Fence {
    Fence::from_stored(5)
}

/// What a plan-and-apply run pins.
pub fn facts() -> Facts {
    Facts {
        organization: id::<OrganizationId>(1),
        project: id::<ProjectId>(2),
        workspace: id::<WorkspaceId>(3),
        kind: RunKind::PlanAndApply,
        source: Source::plain(SourceKind::Api),
        message: "Grow the network".to_owned(),
        created_by: Actor::User(id::<UserId>(6)),
        created_at: at(0),
        configuration_version: id::<ConfigurationVersionId>(4),
        input_snapshot: id::<InputSnapshotId>(5),
        withheld_variables: vec![],
        working_directory: String::new(),
        pins: Pins {
            configuration: Sha256Digest::of(b"configuration"),
            inputs: Sha256Digest::of(b"inputs"),
            tofu_version: "1.12.6".parse().expect("a version"),
            region: "local".to_owned(),
            platform: "linux_amd64".to_owned(),
        },
    }
}

/// What a speculative run pins.
pub fn speculative_facts() -> Facts {
    Facts {
        kind: RunKind::Speculative,
        ..facts()
    }
}

/// The `number`-th try.
pub fn attempt(number: u32) -> Attempt {
    Attempt {
        id: id::<AttemptId>(100 + u128::from(number)),
        number,
        runner: id::<RunnerId>(9),
    }
}

/// A plan that changes something.
pub fn plan() -> PlanRecord {
    PlanRecord {
        plan: Sha256Digest::of(b"plan"),
        plan_json: Sha256Digest::of(b"plan json"),
        dependencies: Sha256Digest::of(b"dependencies"),
        predecessor: Predecessor::Version {
            id: id::<StateVersionId>(10),
            serial: 3,
            digest: Sha256Digest::of(b"state"),
        },
        changes: PlanChanges::Some,
        counts: Counts {
            create: 2,
            change: 1,
            ..Counts::default()
        },
        plan_object: id::<ObjectId>(11),
        plan_json_object: id::<ObjectId>(12),
        lock_file_object: None,
        sandbox: serde_json::json!({"driver": "bubblewrap"}),
    }
}

/// A policy result with this outcome.
pub fn policy(outcome: PolicyOutcome) -> PolicyResult {
    PolicyResult {
        outcome,
        digest: Sha256Digest::of(outcome.as_str().as_bytes()),
        bundle: Sha256Digest::of(b"bundle"),
        engine: "none".to_owned(),
        policies: 0,
        object: id::<ObjectId>(15),
    }
}

/// The evidence of [`plan`] after a passing policy.
pub fn evidence() -> Evidence {
    Evidence {
        plan: plan().plan,
        plan_json: plan().plan_json,
        policy: policy(PolicyOutcome::Pass).digest,
        predecessor: plan().predecessor,
        dependencies: plan().dependencies,
        configuration: facts().pins.configuration,
        inputs: facts().pins.inputs,
        tofu_version: facts().pins.tofu_version,
    }
}

/// The reviewer's approval of [`evidence`].
pub fn approval() -> Approval {
    Approval {
        binding: evidence().binding(),
        by: reviewer(),
        at: at(60),
    }
}

/// A published successor.
pub fn publication() -> Publication {
    Publication {
        version: id::<StateVersionId>(13),
        serial: 4,
        digest: Sha256Digest::of(b"successor"),
    }
}

/// A staged state.
pub fn staged() -> StagedState {
    StagedState {
        version: id::<StateVersionId>(14),
        serial: 4,
        lineage: "6d6f2a52-2b0a-4f2c-9d1e-000000000000".to_owned(),
        digest: Sha256Digest::of(b"partial"),
    }
}

/// A doubtful apply.
pub fn doubt() -> Doubt {
    Doubt {
        reason: DoubtReason::LeaseLost,
        detail: "The runner was lost while it applied.".to_owned(),
        emergency: Some(staged()),
        errored_state_object: None,
    }
}

/// A failed plan.
pub fn failure() -> PlanFailure {
    PlanFailure {
        reason: TerminalReason::PlanFailed,
        detail: "tofu plan ended with exit code 1.".to_owned(),
    }
}

/// A born run with this standing.
pub fn run(standing: Standing) -> Run {
    Run::Born {
        facts: Box::new(facts()),
        hold: Hold::Held(fence()),
        standing: Box::new(standing),
    }
}

/// A run in every standing there is, each with a name for the reviewed table.
pub fn one_run_of_each() -> Vec<(&'static str, Run)> {
    let queued = |facts: Facts, hold: Hold| Run::Born {
        facts: Box::new(facts),
        hold,
        standing: Box::new(Standing::Queued { attempts_lost: 0 }),
    };
    let ended = |ending: Ending| run(Standing::Ended(ending));
    vec![
        ("unborn", Run::Unborn),
        (
            "queued, waiting for the lock",
            queued(facts(), Hold::Waiting),
        ),
        ("queued, lock held", queued(facts(), Hold::Held(fence()))),
        (
            "queued, speculative",
            queued(speculative_facts(), Hold::NotNeeded),
        ),
        (
            "planning",
            run(Standing::Planning {
                attempt: attempt(1),
                attempts_lost: 0,
            }),
        ),
        (
            "planning, last attempt",
            run(Standing::Planning {
                attempt: attempt(1),
                attempts_lost: 2,
            }),
        ),
        (
            "canceling a plan",
            run(Standing::PlanCanceling {
                attempt: attempt(1),
                by: reviewer(),
                reason: None,
                requested_at: at(50),
            }),
        ),
        ("planned", run(Standing::Planned { plan: plan() })),
        (
            "policy_checking",
            run(Standing::PolicyChecking { plan: plan() }),
        ),
        (
            "policy_checking, no changes",
            run(Standing::PolicyChecking {
                plan: PlanRecord {
                    changes: PlanChanges::None,
                    ..plan()
                },
            }),
        ),
        (
            "policy_checking, speculative",
            Run::Born {
                facts: Box::new(speculative_facts()),
                hold: Hold::NotNeeded,
                standing: Box::new(Standing::PolicyChecking { plan: plan() }),
            },
        ),
        (
            "override_required",
            run(Standing::OverrideRequired {
                plan: plan(),
                policy: policy(PolicyOutcome::SoftFailed),
                expires_at: at(3600),
                override_expires_at: None,
            }),
        ),
        (
            "awaiting_approval",
            run(Standing::AwaitingApproval {
                plan: plan(),
                evidence: evidence(),
                expires_at: at(3600),
                override_expires_at: None,
            }),
        ),
        (
            "approved",
            run(Standing::Approved {
                plan: plan(),
                evidence: evidence(),
                approval: approval(),
                override_expires_at: None,
            }),
        ),
        (
            "approved, override expired",
            run(Standing::Approved {
                plan: plan(),
                evidence: evidence(),
                approval: approval(),
                override_expires_at: Some(at(61)),
            }),
        ),
        (
            "applying",
            run(Standing::Applying {
                plan: plan(),
                evidence: evidence(),
                approval: approval(),
                attempt: attempt(1),
                override_expires_at: None,
            }),
        ),
        (
            "canceling an apply",
            run(Standing::ApplyCanceling {
                plan: plan(),
                evidence: evidence(),
                approval: approval(),
                attempt: attempt(1),
                by: reviewer(),
                reason: None,
                requested_at: at(50),
            }),
        ),
        (
            "recovery_required",
            run(Standing::RecoveryRequired {
                evidence: evidence(),
                doubt: doubt(),
            }),
        ),
        (
            "applied",
            ended(Ending::Applied {
                publication: publication(),
                approval: approval(),
            }),
        ),
        ("no_changes", ended(Ending::NoChanges)),
        ("speculative_finished", ended(Ending::SpeculativeFinished)),
        (
            "failed",
            ended(Ending::Failed {
                reason: TerminalReason::PlanFailed,
                emergency: None,
            }),
        ),
        ("discarded", ended(Ending::Discarded { by: reviewer() })),
        ("expired", ended(Ending::Expired)),
        (
            "canceled",
            ended(Ending::Canceled {
                by: Some(reviewer()),
            }),
        ),
        (
            "plan_credentials_required",
            ended(Ending::PlanCredentialsRequired),
        ),
        (
            "recovered",
            ended(Ending::Recovered {
                resolution: RecoveryResolution::DeclareNoChange,
                by: reviewer(),
            }),
        ),
    ]
}

/// Every command, each with a name for the reviewed table.
pub fn one_command_of_each() -> Vec<(&'static str, Command)> {
    let by = reviewer();
    let new = |auto_apply: bool, destroy: bool| {
        Command::Create(Box::new(NewRun {
            facts: facts(),
            auto_apply,
            destroy,
        }))
    };
    let record_policy = |outcome: PolicyOutcome| Command::RecordPolicy {
        result: policy(outcome),
        approval_expires_at: at(3600),
    };
    let record_apply = |report: ApplyReport| Command::RecordApply {
        attempt: attempt(1).id,
        fence: fence(),
        report: Box::new(report),
        at: at(120),
    };
    vec![
        ("create", new(false, false)),
        ("create, auto-apply", new(true, false)),
        ("create, destroy", new(false, true)),
        ("grant lock", Command::GrantLock { fence: fence() }),
        (
            "grant lock, newer fence",
            Command::GrantLock {
                fence: fence().next(),
            },
        ),
        (
            "start plan",
            Command::StartPlan {
                attempt: attempt(1),
            },
        ),
        (
            "lose plan",
            Command::LosePlan {
                attempt: attempt(1).id,
                reason: LossReason::LeaseExpired,
                at: at(30),
            },
        ),
        (
            "record plan",
            Command::RecordPlan {
                attempt: attempt(1).id,
                plan: Box::new(plan()),
            },
        ),
        (
            "record plan, stale attempt",
            Command::RecordPlan {
                attempt: attempt(2).id,
                plan: Box::new(plan()),
            },
        ),
        (
            "fail plan",
            Command::FailPlan {
                attempt: attempt(1).id,
                failure: failure(),
            },
        ),
        (
            "stop plan",
            Command::StopPlan {
                attempt: attempt(1).id,
                at: at(30),
            },
        ),
        (
            "require plan credentials",
            Command::RequirePlanCredentials {
                attempt: attempt(1).id,
                detail: "No profile.".to_owned(),
            },
        ),
        ("start policy check", Command::StartPolicyCheck),
        ("record policy, pass", record_policy(PolicyOutcome::Pass)),
        (
            "record policy, soft failed",
            record_policy(PolicyOutcome::SoftFailed),
        ),
        (
            "record policy, hard failed",
            record_policy(PolicyOutcome::HardFailed),
        ),
        ("record policy, error", record_policy(PolicyOutcome::Error)),
        (
            "override policy",
            Command::OverridePolicy {
                by,
                result: policy(PolicyOutcome::SoftFailed).digest,
                reason: "Agreed in review.".to_owned(),
                at: at(40),
                expires_at: at(3640),
                approval_expires_at: at(3600),
            },
        ),
        (
            "approve",
            Command::Approve {
                by,
                binding: evidence().binding(),
                at: at(60),
            },
        ),
        (
            "approve, other evidence",
            Command::Approve {
                by,
                binding: Sha256Digest::of(b"other"),
                at: at(60),
            },
        ),
        (
            "approve, too late",
            Command::Approve {
                by,
                binding: evidence().binding(),
                at: at(3600),
            },
        ),
        (
            "approve, another person",
            Command::Approve {
                by: Actor::User(id::<UserId>(8)),
                binding: evidence().binding(),
                at: at(60),
            },
        ),
        (
            "discard",
            Command::Discard {
                by,
                reason: Some("Not today.".to_owned()),
                at: at(60),
            },
        ),
        ("expire, too early", Command::Expire { at: at(60) }),
        ("expire", Command::Expire { at: at(3600) }),
        (
            "start apply",
            Command::StartApply {
                attempt: attempt(1),
                fence: fence(),
                binding: evidence().binding(),
                at: at(90),
            },
        ),
        (
            "start apply, stale fence",
            Command::StartApply {
                attempt: attempt(1),
                fence: Fence::from_stored(4),
                binding: evidence().binding(),
                at: at(90),
            },
        ),
        (
            "start apply, other binding",
            Command::StartApply {
                attempt: attempt(1),
                fence: fence(),
                binding: Sha256Digest::of(b"other"),
                at: at(90),
            },
        ),
        (
            "hand back apply",
            Command::HandBackApply {
                attempt: attempt(1).id,
                at: at(95),
            },
        ),
        (
            "record apply, published",
            record_apply(ApplyReport::Published {
                publication: publication(),
            }),
        ),
        (
            "record apply, not started",
            record_apply(ApplyReport::NotStarted {
                part: Some(super::EvidencePart::Plan),
                detail: "The plan file differs.".to_owned(),
            }),
        ),
        (
            "record apply, failed",
            record_apply(ApplyReport::Failed {
                detail: "tofu apply ended with exit code 1.".to_owned(),
                emergency: Some(staged()),
            }),
        ),
        (
            "record apply, doubt",
            record_apply(ApplyReport::Doubt(doubt())),
        ),
        (
            "lose apply",
            Command::LoseApply {
                attempt: attempt(1).id,
                reason: LossReason::LeaseExpired,
                emergency: Some(staged()),
            },
        ),
        (
            "resolve recovery",
            Command::ResolveRecovery {
                by,
                resolution: RecoveryResolution::DeclareNoChange,
                reason: "Checked by hand.".to_owned(),
                at: at(200),
            },
        ),
        (
            "cancel",
            Command::Cancel {
                by,
                reason: None,
                at: at(50),
            },
        ),
        (
            "supersede",
            Command::Supersede {
                by: id::<RunId>(99),
                at: at(50),
            },
        ),
        (
            "fail",
            Command::Fail {
                failure: PlanFailure {
                    reason: TerminalReason::SandboxUnavailable,
                    detail: "No sandbox.".to_owned(),
                },
            },
        ),
    ]
}

/// Every event there is.
pub fn one_event_of_each() -> Vec<Event> {
    let by = reviewer();
    vec![
        Event::RunQueued {
            facts: facts(),
            auto_apply: false,
        },
        Event::LockGranted { fence: fence() },
        Event::PlanStarted {
            attempt: attempt(1),
        },
        Event::PlanAttemptLost {
            attempt: attempt(1).id,
            reason: LossReason::LeaseExpired,
        },
        Event::PlanRecorded { plan: plan() },
        Event::PlanFailed { failure: failure() },
        Event::PlanCredentialsMissing {
            detail: "No profile.".to_owned(),
        },
        Event::PolicyCheckStarted,
        Event::PolicyEvaluated {
            result: policy(PolicyOutcome::Pass),
            approval_expires_at: at(3600),
        },
        Event::PolicyOverridden {
            by,
            result: policy(PolicyOutcome::SoftFailed).digest,
            reason: "Agreed in review.".to_owned(),
            expires_at: at(3640),
        },
        Event::ApprovalRequested {
            binding: evidence().binding(),
            evidence: evidence(),
            expires_at: at(3600),
        },
        Event::RunApproved {
            by,
            binding: evidence().binding(),
            at: at(60),
        },
        Event::RunDiscarded {
            by,
            reason: Some("Not today.".to_owned()),
            at: at(60),
        },
        Event::ApprovalExpired { at: at(3600) },
        Event::ApplyStarted {
            attempt: attempt(1),
            fence: fence(),
            binding: evidence().binding(),
        },
        Event::ApplyHandedBack {
            attempt: attempt(1).id,
        },
        Event::ApplySucceeded {
            publication: publication(),
        },
        Event::ApplyFailed {
            reason: TerminalReason::ApplyFailed,
            detail: "tofu apply ended with exit code 1.".to_owned(),
            emergency: Some(staged()),
        },
        Event::RecoveryRequired { doubt: doubt() },
        Event::RecoveryResolved {
            by,
            resolution: RecoveryResolution::AdoptEmergencyState {
                publication: publication(),
            },
            reason: "Checked by hand.".to_owned(),
            at: at(200),
        },
        Event::CancelRequested {
            by,
            reason: None,
            at: at(50),
        },
        Event::RunCanceled {
            by,
            reason: None,
            at: at(50),
        },
        Event::RunSuperseded {
            by: id::<RunId>(99),
            at: at(50),
        },
        Event::RunFinishedWithoutChanges,
        Event::SpeculativeRunFinished,
        Event::RunFailed {
            reason: TerminalReason::PolicyDenied,
            detail: "Denied.".to_owned(),
        },
    ]
}
