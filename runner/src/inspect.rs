//! What a plan says, printed by OpenTofu in a fresh sandbox that has no network and holds nothing but
//! the plan file, the lock file, the provider packages and the values that must not be shown. There
//! it is also made into what people and policies may see: values of a plan are read nowhere else.
//!
//! Code of the configuration's choosing runs while a plan is made, as the same user and with the same
//! files. It could make a later step in that sandbox print another plan than the file holds, and that
//! other plan is what people and policies would judge. Here nothing of it is left: the bytes of plan
//! and lock file are the ones whose digests are recorded, and the provider packages were taken before
//! anything of the configuration ran in the plan.

use std::time::Duration;

use async_trait::async_trait;
use stackship_plan_diff::Summary;
use stackship_runner_protocol::{PLAN_DIFF_BYTES_MAX, PLAN_JSON_BYTES_MAX, POLICY_INPUT_BYTES_MAX};
use stackship_sandbox::spec::{HOST_BINARY, WORKSPACE_DIR};
use stackship_sandbox::{
    Artifact, Digest, Environment, Input, InputSource, Limits, Network, Outcome, Placement,
    Presence, ReceivedArtifact, SandboxSpec, Stdout, Step,
};

use crate::attempt::Attempt;
use crate::redact::{self, PLAN_DIFF_FILE, PLAN_JSON_FILE, POLICY_INPUT_FILE, SECRETS_FILE};
use crate::session::{Ended, Gate, Halt, Session, SessionError};
use crate::variables;
use crate::workdir::{OWN_DIR, PLAN_FILE, Workdir, own_file};

/// The step that prints the plan.
const SHOW: &str = "show";
/// The step that makes of it what may be seen.
pub(crate) const REDACT: &str = "redact";
/// The plan as JSON.
const PLAN_JSON: &str = "plan_json";
/// What people may see.
const PLAN_DIFF: &str = "plan_diff";
/// What policies see.
const POLICY_INPUT: &str = "policy_input";
/// What was counted on the way.
const SUMMARY: &str = "plan_summary";
/// The longest summary, in bytes.
const SUMMARY_BYTES_MAX: u64 = 4 * 1024;
/// The provider packages on their way from one sandbox to the other; empty when there are none.
pub(crate) const PROVIDERS: &str = "provider_packages";
/// The largest provider packages, in bytes; a workspace directory holds no more.
const PROVIDERS_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// For packing or unpacking the provider packages.
const PACK_TIME_MAX: Duration = Duration::from_mins(5);
/// For `tofu show`.
const SHOW_TIME_MAX: Duration = Duration::from_mins(5);
/// For making of the plan's JSON what may be seen.
const REDACT_TIME_MAX: Duration = Duration::from_mins(5);
/// What the documents made here may take together.
const DOCUMENTS_BYTES_MAX: u64 = PLAN_JSON_BYTES_MAX + PLAN_DIFF_BYTES_MAX + POLICY_INPUT_BYTES_MAX;
/// Where the packages lie before they are unpacked.
const PROVIDERS_FILE: &str = "/tmp/stackship/providers.tar";

/// Packs what `init` installed; a package of a mirror stays a link into the mirror.
const PACK_SCRIPT: &str = "[ ! -d .terraform/providers ] || tar -C .terraform -cf - providers";
/// Unpacks it, when there is any, and makes room for the documents.
const UNPACK_SCRIPT: &str = "mkdir -p .terraform && if [ -s /tmp/stackship/providers.tar ]; then \
     tar -C .terraform --no-same-owner -xf /tmp/stackship/providers.tar; fi && \
     rm /tmp/stackship/providers.tar";
/// Prints the plan into a file: it leaves, and the next step reads it.
const SHOW_SCRIPT: &str =
    "exec /opt/tofu/tofu show -json /tmp/stackship/plan.bin >/tmp/stackship/plan.json";

/// The step of the plan's sandbox that brings the provider packages out.
pub(crate) fn pack_step(workdir: &Workdir<'_>) -> Step {
    Step {
        stdout: Stdout::Artifact {
            name: PROVIDERS.to_owned(),
            bytes_max: PROVIDERS_BYTES_MAX,
        },
        ..workdir.shell("pack", PACK_SCRIPT, PACK_TIME_MAX)
    }
}

/// What is inspected, as it came out of the plan's sandbox.
pub(crate) struct Subject<'a> {
    pub(crate) plan: &'a ReceivedArtifact,
    pub(crate) lock_file: Option<&'a ReceivedArtifact>,
    pub(crate) providers: &'a ReceivedArtifact,
}

/// What came out of an inspection.
pub(crate) struct Inspected<'a> {
    pub(crate) json: &'a ReceivedArtifact,
    pub(crate) diff: &'a ReceivedArtifact,
    /// Absent when it would be longer than it may.
    pub(crate) policy_input: Option<&'a ReceivedArtifact>,
    summary: &'a ReceivedArtifact,
}

impl<'a> Inspected<'a> {
    /// Everything that an inspection brings out, if it came to its end.
    pub(crate) fn of(outcome: &'a Outcome) -> Option<Self> {
        Some(Self {
            json: outcome.artifact(PLAN_JSON)?,
            diff: outcome.artifact(PLAN_DIFF)?,
            policy_input: outcome.artifact(POLICY_INPUT),
            summary: outcome.artifact(SUMMARY)?,
        })
    }

    /// The summary; `None` when it cannot be read or belongs to other documents.
    pub(crate) async fn summary(&self) -> std::io::Result<Option<Summary>> {
        let bytes = tokio::fs::read(self.summary.path()).await?;
        let summary = serde_json::from_slice::<Summary>(&bytes).ok();
        Ok(summary.filter(|summary| summary.has_policy_input == self.policy_input.is_some()))
    }
}

/// Prints the plan as JSON, and makes of it what people and policies may see.
pub(crate) async fn inspect(
    attempt: &mut Attempt<'_>,
    workdir: &Workdir<'_>,
    subject: &Subject<'_>,
) -> Result<Ended, SessionError> {
    let session = Session {
        settings: attempt.settings,
        driver: attempt.driver,
        control_plane: attempt.control_plane,
        lease: attempt.lease,
        gate: &NoGate,
        can_hand_back: true,
    };
    let spec = specification(attempt, workdir, subject);
    session.run(spec, attempt.log, attempt.orders).await
}

fn specification(
    attempt: &Attempt<'_>,
    workdir: &Workdir<'_>,
    subject: &Subject<'_>,
) -> SandboxSpec {
    let lock_file = subject.lock_file.map(|file| {
        received(
            "lock_file",
            file,
            &format!("{WORKSPACE_DIR}/.terraform.lock.hcl"),
        )
    });
    let secrets = variables::sensitive_values(&attempt.inputs.pinned.variables);
    let secrets = serde_json::to_vec(&secrets).expect("a list of texts is JSON");
    let inputs = [
        received("plan", subject.plan, PLAN_FILE),
        received("providers", subject.providers, PROVIDERS_FILE),
        own_file(&own_path(SECRETS_FILE), secrets),
    ];
    let network = Network {
        gateway: false,
        egress: false,
    };
    let mut environment = Environment::base(network);
    environment.set("CHECKPOINT_DISABLE", "1");
    environment.set("TF_IN_AUTOMATION", "1");
    let here = |step: Step| Step {
        environment: environment.clone(),
        directory: WORKSPACE_DIR.to_owned(),
        ..step
    };
    SandboxSpec {
        name: format!("{}-show", attempt.lease.attempt),
        directories: workdir.directories(),
        inputs: inputs.into_iter().chain(lock_file).collect(),
        steps: vec![
            here(workdir.shell("unpack", UNPACK_SCRIPT, PACK_TIME_MAX)),
            here(workdir.shell(SHOW, SHOW_SCRIPT, SHOW_TIME_MAX)),
            here(redact_step(workdir)),
        ],
        artifacts: artifacts(),
        limits: limits(&attempt.settings.limits),
        network,
    }
}

fn redact_step(workdir: &Workdir<'_>) -> Step {
    let argv = [HOST_BINARY, redact::ARGUMENT, OWN_DIR].map(str::to_owned);
    Step {
        stdout: Stdout::Artifact {
            name: SUMMARY.to_owned(),
            bytes_max: SUMMARY_BYTES_MAX,
        },
        ..workdir.step(REDACT, argv.to_vec(), REDACT_TIME_MAX)
    }
}

fn artifacts() -> Vec<Artifact> {
    let document = |name: &str, file: &str, after: &str, bytes_max, presence| Artifact {
        name: name.to_owned(),
        path: own_path(file),
        bytes_max,
        after: after.to_owned(),
        presence,
    };
    let (must, may) = (Presence::Required, Presence::Optional);
    vec![
        document(PLAN_JSON, PLAN_JSON_FILE, SHOW, PLAN_JSON_BYTES_MAX, must),
        document(PLAN_DIFF, PLAN_DIFF_FILE, REDACT, PLAN_DIFF_BYTES_MAX, must),
        document(
            POLICY_INPUT,
            POLICY_INPUT_FILE,
            REDACT,
            POLICY_INPUT_BYTES_MAX,
            may,
        ),
    ]
}

/// The documents lie beside what was there before, as far as the memory in which all of it lies allows.
fn limits(usual: &Limits) -> Limits {
    let room = usual.memory_bytes.saturating_sub(usual.workspace_bytes);
    let wanted = usual.tmp_bytes.saturating_add(DOCUMENTS_BYTES_MAX);
    Limits {
        total_time: PACK_TIME_MAX + SHOW_TIME_MAX + REDACT_TIME_MAX,
        tmp_bytes: wanted.min(room).max(usual.tmp_bytes),
        ..*usual
    }
}

fn own_path(file: &str) -> String {
    format!("{OWN_DIR}/{file}")
}

/// The bytes that came out of the first sandbox go into the second by their digest.
fn received(name: &str, file: &ReceivedArtifact, path: &str) -> Input {
    let expected: Digest = file.digest();
    Input {
        name: name.to_owned(),
        source: InputSource::File(file.path().to_owned()),
        expected: Some(expected),
        placement: Placement::File {
            path: path.to_owned(),
            mode: 0o600,
        },
    }
}

/// An inspection has no pause.
struct NoGate;

#[async_trait]
impl Gate for NoGate {
    async fn open(&self, _received: &[ReceivedArtifact]) -> Result<(), Halt> {
        Err(Halt::Refused {
            part: None,
            detail: "An inspection does not pause.".to_owned(),
        })
    }
}
