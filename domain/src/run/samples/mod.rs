//! One valid value of everything, for tests here and in other rooms: the test states what differs.
//! Not part of the machine; hidden from the documentation.

mod commands;
mod events;
mod runs;

pub use commands::one_command_of_each;
pub use events::{events_with_more, one_event_of_each};
pub use runs::one_run_of_each;

use uuid::Uuid;

use super::{
    Approval, Attempt, Counts, DenyingPolicies, Doubt, DoubtReason, Evidence, Facts, Hold,
    PinnedPolicySet, Pins, PlanChanges, PlanFailure, PlanRecord, PolicyErrorCode, PolicyOutcome,
    PolicyPins, PolicyResult, Predecessor, Publication, Run, RunKind, Source, SourceKind,
    StagedState, Standing, TerminalReason, Warning,
};
use crate::ids::{
    AttemptId, ConfigurationVersionId, Id, InputSnapshotId, ObjectId, OrganizationId, PolicySetId,
    ProjectId, RunnerId, StateVersionId, UserId, WorkspaceId,
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
            policies: PolicyPins::default(),
        },
    }
}

/// What a run pins in a workspace with policies.
pub fn judged_facts() -> Facts {
    Facts {
        pins: Pins {
            policies: PolicyPins::new(vec![pinned_policies()]),
            ..facts().pins
        },
        ..facts()
    }
}

/// One version of a policy set.
pub fn pinned_policies() -> PinnedPolicySet {
    PinnedPolicySet {
        set: id::<PolicySetId>(16),
        name: "baseline".to_owned(),
        version: 2,
        bundle: Sha256Digest::of(b"bundle"),
        object: id::<ObjectId>(17),
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
        plan_diff: Sha256Digest::of(b"plan diff"),
        policy_input: Some(Sha256Digest::of(b"policy input")),
        policy_input_doubts: 0,
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
        plan_bytes: 4,
        plan_json_bytes: 9,
        plan_object: id::<ObjectId>(11),
        plan_json_object: id::<ObjectId>(12),
        plan_diff_object: id::<ObjectId>(14),
        policy_input_object: Some(id::<ObjectId>(15)),
        lock_file_object: None,
        sandbox: serde_json::json!({"driver": "bubblewrap"}),
    }
}

/// A policy result with this outcome.
pub fn policy(outcome: PolicyOutcome) -> PolicyResult {
    PolicyResult {
        outcome,
        digest: Sha256Digest::of(outcome.as_str().as_bytes()),
        bundle: facts().pins.policies.digest(),
        engine: "regorus/0.14.1".to_owned(),
        features: vec!["std".to_owned()],
        policies: 3,
        denying: DenyingPolicies {
            advisory: 0,
            soft_mandatory: u32::from(outcome == PolicyOutcome::SoftFailed),
            hard_mandatory: u32::from(outcome == PolicyOutcome::HardFailed),
        },
        denials: u64::from(matches!(
            outcome,
            PolicyOutcome::SoftFailed | PolicyOutcome::HardFailed
        )),
        warnings: 0,
        error_code: (outcome == PolicyOutcome::Error).then_some(PolicyErrorCode::PolicyCrashed),
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

/// What a run is told whose predecessor failed half-way.
pub fn warning() -> Warning {
    Warning::EmergencyStateNotAdopted {
        run: id(98),
        state: staged().version,
        serial: staged().serial,
    }
}

/// What adopting [`staged`] publishes.
pub fn adopted() -> Publication {
    Publication {
        version: staged().version,
        serial: staged().serial,
        digest: staged().digest,
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
    run_with(facts(), Hold::Held(fence()), standing)
}

/// A born run with these facts, this hold and this standing.
pub fn run_with(facts: Facts, hold: Hold, standing: Standing) -> Run {
    Run::Born {
        facts: Box::new(facts),
        hold,
        standing: Box::new(standing),
    }
}
