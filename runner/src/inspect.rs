//! What a plan says, printed by OpenTofu in a fresh sandbox that has no network and holds nothing but
//! the plan file, the lock file and the provider packages.
//!
//! Code of the configuration's choosing runs while a plan is made, as the same user and with the same
//! files. It could make a later step in that sandbox print another plan than the file holds, and that
//! other plan is what people and policies would judge. Here nothing of it is left: the bytes of plan
//! and lock file are the ones whose digests are recorded, and the provider packages were taken before
//! anything of the configuration ran in the plan.

use std::time::Duration;

use async_trait::async_trait;
use stackship_runner_protocol::PLAN_JSON_BYTES_MAX;
use stackship_sandbox::spec::WORKSPACE_DIR;
use stackship_sandbox::{
    Digest, Environment, Input, InputSource, Limits, Network, Outcome, Placement, ReceivedArtifact,
    SandboxSpec, Stdout, Step,
};

use crate::attempt::Attempt;
use crate::session::{Ended, Gate, Halt, Session, SessionError};
use crate::workdir::{PLAN_FILE, Workdir};

/// The plan as JSON.
pub(crate) const PLAN_JSON: &str = "plan_json";
/// The provider packages on their way from one sandbox to the other; empty when there are none.
pub(crate) const PROVIDERS: &str = "provider_packages";
/// The largest provider packages, in bytes; a workspace directory holds no more.
const PROVIDERS_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// For packing or unpacking the provider packages.
const PACK_TIME_MAX: Duration = Duration::from_mins(5);
/// For `tofu show`.
const SHOW_TIME_MAX: Duration = Duration::from_mins(5);
/// Where the packages lie before they are unpacked.
const PROVIDERS_FILE: &str = "/tmp/stackship/providers.tar";

/// Packs what `init` installed; a package of a mirror stays a link into the mirror.
const PACK_SCRIPT: &str = "[ ! -d .terraform/providers ] || tar -C .terraform -cf - providers";
/// Unpacks it, when there is any.
const UNPACK_SCRIPT: &str = "mkdir -p .terraform && if [ -s /tmp/stackship/providers.tar ]; then \
     tar -C .terraform --no-same-owner -xf /tmp/stackship/providers.tar; fi";

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

/// Prints the plan as JSON.
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
    let inputs = [
        received("plan", subject.plan, PLAN_FILE),
        received("providers", subject.providers, PROVIDERS_FILE),
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
            Step {
                stdout: Stdout::Artifact {
                    name: PLAN_JSON.to_owned(),
                    bytes_max: PLAN_JSON_BYTES_MAX,
                },
                ..here(workdir.tofu("show", &["show", "-json", PLAN_FILE], SHOW_TIME_MAX))
            },
        ],
        artifacts: Vec::new(),
        limits: Limits {
            total_time: PACK_TIME_MAX + SHOW_TIME_MAX,
            ..attempt.settings.limits
        },
        network,
    }
}

/// The plan as JSON, if the inspection came to its end.
pub(crate) fn plan_json(outcome: &Outcome) -> Option<&ReceivedArtifact> {
    outcome.artifact(PLAN_JSON)
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
