//! Leases and what they pin.

use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use stackship_domain::ids::{Id, ObjectId, StateVersionId};
use stackship_domain::run::{Evidence, Phase, Predecessor};
use stackship_domain::variable::{
    InputSnapshot, InputVariable, PlanOptions, SnapshotSchema, VariableCategory,
};
use stackship_domain::{Sha256Digest, canonical};
use stackship_runner_protocol::{
    ApprovedPlan, InputName, InputRef, Lease, PhaseResult, PlanEnd, Secret, StoredArtifact,
};
use uuid::Uuid;

use super::control_plane::ControlPlane;

static MINTED: AtomicU64 = AtomicU64::new(1);

/// An id that no other test has.
pub fn fresh<T: Id>() -> T {
    T::from_uuid(Uuid::from_u128(
        MINTED.fetch_add(1, Ordering::Relaxed).into(),
    ))
}

/// A packed configuration.
pub fn slug(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive
            .append_data(&mut header, path, text.as_bytes())
            .unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

pub fn text_variable(
    key: &str,
    value: &str,
    category: VariableCategory,
    sensitive: bool,
) -> InputVariable {
    InputVariable {
        key: key.to_owned(),
        value: value.to_owned(),
        category,
        hcl: false,
        sensitive,
    }
}

pub fn snapshot(variables: Vec<InputVariable>) -> InputSnapshot {
    InputSnapshot {
        schema: SnapshotSchema::V1,
        working_directory: String::new(),
        variables,
        withheld: Vec::new(),
        options: PlanOptions::default(),
    }
}

/// One run of a workspace: the same pins for its plan and its apply.
#[derive(Clone)]
pub struct Pinned {
    pub configuration: Vec<u8>,
    pub snapshot: InputSnapshot,
    pub plan: Lease,
}

fn reference(bytes: &[u8]) -> InputRef {
    InputRef {
        sha256: Sha256Digest::of(bytes),
        bytes: bytes.len() as u64,
    }
}

impl Pinned {
    /// A run over a configuration with these files, without variables.
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self::with(files, snapshot(Vec::new()))
    }

    pub fn with(files: &[(&str, &str)], snapshot: InputSnapshot) -> Self {
        let configuration = slug(files);
        let plan = Lease {
            attempt: fresh(),
            number: 1,
            runner: fresh(),
            run: fresh(),
            phase: Phase::Plan,
            organization: fresh(),
            organization_name: "acme".parse().unwrap(),
            workspace: fresh(),
            workspace_name: "net".parse().unwrap(),
            fence: None,
            lease_token: Secret::new("ssl_the-lease-token".to_owned()),
            run_token: Secret::new("ssx_the-plan-token".to_owned()),
            lease_seconds: 30,
            tofu_version: "1.12.6".parse().unwrap(),
            configuration: reference(&configuration),
            snapshot: reference(&canonical::to_bytes(&snapshot).unwrap()),
            predecessor: Predecessor::None,
            approved: None,
            phase_seconds_max: 300,
        };
        Self {
            configuration,
            snapshot,
            plan,
        }
    }

    /// The next run of the same workspace.
    pub fn again(&self, files: &[(&str, &str)], control_plane: &ControlPlane) -> Self {
        let mut next = Self::with(files, self.snapshot.clone());
        next.plan.workspace = self.plan.workspace;
        next.plan.organization = self.plan.organization;
        next.plan.predecessor = control_plane.published();
        next
    }

    /// Hands the pinned bytes to the control plane.
    pub fn pin(&self, control_plane: &ControlPlane) {
        control_plane.input(InputName::Configuration, self.configuration.clone());
        control_plane.input(
            InputName::Snapshot,
            canonical::to_bytes(&self.snapshot).unwrap(),
        );
    }

    /// The apply of an approved plan, with its inputs handed to the control plane.
    pub fn apply(&self, planned: &PhaseResult, control_plane: &ControlPlane) -> Lease {
        let PhaseResult::Plan {
            end:
                PlanEnd::Planned {
                    plan,
                    plan_json,
                    lock_file,
                    dependencies,
                    ..
                },
        } = planned
        else {
            panic!("no plan: {planned:?}\n{}", control_plane.log());
        };
        let policy = b"{\"outcome\":\"pass\"}".to_vec();
        let evidence = Evidence {
            plan: plan.sha256,
            plan_json: plan_json.sha256,
            policy: Sha256Digest::of(&policy),
            predecessor: self.plan.predecessor.clone(),
            dependencies: *dependencies,
            configuration: self.plan.configuration.sha256,
            inputs: self.plan.snapshot.sha256,
            tofu_version: self.plan.tofu_version,
        };
        let of = |stored: &StoredArtifact| InputRef {
            sha256: stored.sha256,
            bytes: stored.bytes,
        };
        let approved = ApprovedPlan {
            binding: evidence.binding(),
            evidence,
            plan: of(plan),
            plan_json: of(plan_json),
            policy_result: reference(&policy),
            lock_file: lock_file.as_ref().map(of),
        };
        control_plane.input(InputName::Plan, control_plane.object(plan.object));
        control_plane.input(InputName::PlanJson, control_plane.object(plan_json.object));
        control_plane.input(InputName::PolicyResult, policy);
        if let Some(lock_file) = lock_file {
            control_plane.input(InputName::LockFile, control_plane.object(lock_file.object));
        }
        Lease {
            attempt: fresh(),
            phase: Phase::Apply,
            approved: Some(approved),
            run_token: Secret::new("ssx_the-apply-token".to_owned()),
            ..self.plan.clone()
        }
    }
}

pub fn fresh_object() -> ObjectId {
    fresh()
}

pub fn fresh_state() -> StateVersionId {
    fresh()
}
