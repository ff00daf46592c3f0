//! The apply phase: everything that was approved is fetched and digested again, part by part; only
//! then, and only while the lease holds and nobody asked to stop, is `tofu apply` started.

use std::time::Duration;

use async_trait::async_trait;
use stackship_domain::Sha256Digest;
use stackship_domain::run::{Evidence, EvidencePart, Predecessor};
use stackship_runner_protocol::{
    ApplyEnd, ApprovedPlan, ArtifactKind, Heartbeat, Lease, PLAN_BYTES_MAX, STATE_BYTES_MAX,
    StoredArtifact,
};
use stackship_sandbox::{Artifact, Presence, ReceivedArtifact, SandboxSpec, StepExit};

use crate::attempt::{Attempt, Finish};
use crate::backend;
use crate::control_plane::{CallError, ControlPlane, CurrentState, Hold};
use crate::dependencies::bundle_digest;
use crate::inputs::{Approved, InputError, Inputs};
use crate::kept_states;
use crate::plan::{step_sentence, store};
use crate::session::{
    Ended, Fault, Gate, Halt, Interruption, Session, SessionError, digest_of, fault, file_of,
    sandbox_evidence,
};
use crate::workdir::{
    PLAN_FILE, VARIABLES_ARGUMENT, Workdir, after_init, artifact, input, is_unchanged, step,
    verified_file,
};

const APPLY: &str = "apply";
const ERRORED_STATE: &str = "errored_state";

/// Executes the phase. An error means that something could not be fetched, and that
/// `tofu apply` was never started.
pub(crate) async fn run(attempt: &mut Attempt<'_>) -> Result<Finish<ApplyEnd>, InputError> {
    let Some(approved) = &attempt.lease.approved else {
        return Ok(not_started(
            None,
            "The lease holds no approved plan.".to_owned(),
        ));
    };
    let (inputs, files) = (attempt.inputs, attempt.approved(approved).await?);
    let actual = Actual {
        lease: attempt.lease,
        inputs,
        files: &files,
    };
    // Before any sandbox: what differs already needs none.
    if let Some(part) = actual.first_difference(approved, approved.evidence.dependencies) {
        return Ok(differs(part));
    }
    let tofu = match attempt.tools.directory(attempt.lease.tofu_version).await {
        Ok(tofu) => tofu,
        Err(error) => {
            return Ok(not_started(
                Some(EvidencePart::TofuVersion),
                attempt.sentence(&error),
            ));
        }
    };
    let workdir = match Workdir::new(attempt.settings, attempt.lease, inputs, tofu) {
        Ok(workdir) => workdir,
        Err(error) => return Ok(not_started(None, attempt.sentence(&error))),
    };
    let workdir = workdir.with_lock_file(files.lock_file.as_ref());
    let spec = specification(&workdir, &files, attempt.lease.phase_seconds_max);
    let gate = ApplyGate {
        workdir: &workdir,
        hostname: &attempt.settings.hostname,
        control_plane: attempt.control_plane,
        hold: &attempt.hold,
        approved,
        actual: &actual,
    };
    let session = Session {
        settings: attempt.settings,
        driver: attempt.driver,
        control_plane: attempt.control_plane,
        lease: attempt.lease,
        gate: &gate,
        can_hand_back: false,
    };
    match session.run(spec, attempt.log, attempt.orders).await {
        Ok(ended) => Ok(finish(attempt, ended).await),
        Err(SessionError::Interrupted(why)) => Ok(interrupted(why)),
        Err(SessionError::Launch(error)) => Ok(not_started(None, attempt.sentence(&error))),
    }
}

fn specification(workdir: &Workdir<'_>, files: &Approved, seconds_max: u32) -> SandboxSpec {
    let mut spec = workdir.specification();
    spec.inputs
        .push(verified_file(input::PLAN, &files.plan, PLAN_FILE));
    let arguments = [
        "apply",
        "-input=false",
        "-no-color",
        "-lock=false",
        VARIABLES_ARGUMENT,
        PLAN_FILE,
    ];
    spec.steps
        .push(workdir.tofu(APPLY, &arguments, Duration::from_secs(seconds_max.into())));
    spec.artifacts.push(after_init(
        artifact::APPROVED_PLAN,
        PLAN_FILE,
        PLAN_BYTES_MAX,
    ));
    spec.artifacts.push(Artifact {
        name: ERRORED_STATE.to_owned(),
        path: workdir.path("errored.tfstate"),
        bytes_max: STATE_BYTES_MAX,
        after: APPLY.to_owned(),
        presence: Presence::Optional,
    });
    spec
}

/// What is really here, by digests computed from the bytes.
struct Actual<'a> {
    lease: &'a Lease,
    inputs: &'a Inputs,
    files: &'a Approved,
}

impl Actual<'_> {
    /// The part in which this is not what was approved.
    fn first_difference(
        &self,
        approved: &ApprovedPlan,
        dependencies: Sha256Digest,
    ) -> Option<EvidencePart> {
        let evidence = Evidence {
            plan: self.files.plan.sha256,
            plan_json: self.files.plan_json.sha256,
            policy: self.files.policy_result.sha256,
            predecessor: self.lease.predecessor.clone(),
            dependencies,
            configuration: self.inputs.configuration.sha256,
            inputs: self.inputs.snapshot.sha256,
            tofu_version: self.lease.tofu_version,
        };
        let lock_file = self.files.lock_file.as_ref().map(|file| file.sha256);
        let leased = approved.lock_file.as_ref().map(|file| file.sha256);
        let by_part = approved.evidence.first_difference(&evidence);
        by_part
            .or((lock_file != leased).then_some(EvidencePart::Dependencies))
            .or((evidence.binding() != approved.binding).then_some(EvidencePart::Binding))
    }
}

struct ApplyGate<'a> {
    workdir: &'a Workdir<'a>,
    hostname: &'a str,
    control_plane: &'a ControlPlane,
    hold: &'a Hold,
    approved: &'a ApprovedPlan,
    actual: &'a Actual<'a>,
}

#[async_trait]
impl Gate for ApplyGate<'_> {
    async fn open(&self, received: &[ReceivedArtifact]) -> Result<(), Halt> {
        let refused = |part, detail: String| Halt::Refused { part, detail };
        backend::check(
            file_of(received, artifact::BACKEND),
            self.hostname,
            self.actual.lease,
        )
        .map_err(|refusal| refused(None, refusal.to_string()))?;
        if !is_unchanged(received, artifact::APPROVED_PLAN, self.approved.plan.sha256) {
            return Err(refused(
                Some(EvidencePart::Plan),
                difference(EvidencePart::Plan),
            ));
        }
        if self.workdir.first_changed(received).is_some() {
            return Err(refused(
                Some(EvidencePart::Inputs),
                difference(EvidencePart::Inputs),
            ));
        }
        let found = |name: &str| received.iter().find(|artifact| artifact.name() == name);
        let lock_file = found(artifact::LOCK_FILE).map(digest_of);
        let modules =
            found(artifact::MODULES).map(|modules| bundle_digest(lock_file, modules.path()));
        let Some(Ok(dependencies)) = modules else {
            return Err(refused(
                Some(EvidencePart::Dependencies),
                "The dependencies could not be listed.".to_owned(),
            ));
        };
        if let Some(part) = self.actual.first_difference(self.approved, dependencies) {
            return Err(refused(Some(part), difference(part)));
        }
        let current = self
            .control_plane
            .current_state(self.actual.lease)
            .await
            .map_err(unknown)?;
        if !is_predecessor(&self.actual.lease.predecessor, current) {
            return Err(refused(
                Some(EvidencePart::Predecessor),
                difference(EvidencePart::Predecessor),
            ));
        }
        self.announce().await
    }
}

impl ApplyGate<'_> {
    /// From the answer on, the attempt cannot be handed back.
    async fn announce(&self) -> Result<(), Halt> {
        let beat = Heartbeat {
            tofu_started: true,
            wait_ms: 0,
        };
        let call = || self.control_plane.heartbeat(self.hold, &beat);
        let answer = self.hold.retry(call).await;
        if answer.map_err(unknown)?.cancel {
            Err(Halt::Canceled)
        } else {
            Ok(())
        }
    }
}

/// Whoever cannot be asked has not agreed.
fn unknown(error: CallError) -> Halt {
    match error {
        CallError::Lost => Halt::Lost,
        other => Halt::Refused {
            part: None,
            detail: format!("The control plane could not be asked: {other}."),
        },
    }
}

/// State versions never change, so the id and serial tell the bytes.
fn is_predecessor(predecessor: &Predecessor, current: Option<CurrentState>) -> bool {
    match (predecessor, current) {
        (Predecessor::None, None) => true,
        (Predecessor::Version { id, serial, .. }, Some(current)) => {
            *id == current.id && *serial == current.serial
        }
        (Predecessor::None, Some(_)) | (Predecessor::Version { .. }, None) => false,
    }
}

fn difference(part: EvidencePart) -> String {
    format!("`{part}` is not what was approved; nothing was applied.")
}

fn differs(part: EvidencePart) -> Finish<ApplyEnd> {
    not_started(Some(part), difference(part))
}

fn not_started(part: Option<EvidencePart>, detail: String) -> Finish<ApplyEnd> {
    Finish::Result(ApplyEnd::NotStarted { part, detail })
}

fn interrupted(why: Interruption) -> Finish<ApplyEnd> {
    match why {
        Interruption::Cancel => canceled(),
        Interruption::Lost => Finish::Lost,
        Interruption::ShutDown => Finish::HandBack,
    }
}

fn canceled() -> Finish<ApplyEnd> {
    not_started(
        None,
        "A cancel was asked for before `tofu apply` was started.".to_owned(),
    )
}

async fn finish(attempt: &Attempt<'_>, ended: Ended) -> Finish<ApplyEnd> {
    if !ended.has_passed {
        return before_start(attempt, &ended);
    }
    let errored_state = match ended.outcome.artifact(ERRORED_STATE) {
        None => None,
        Some(file) => match store(attempt, ArtifactKind::ErroredState, file).await {
            Ok(stored) => Some(stored),
            Err(error) => {
                tracing::error!(error = %error, run.id = %attempt.lease.run, "An errored.tfstate could not be stored");
                let lease = attempt.lease;
                kept_states::keep(
                    &attempt.settings.work_directory,
                    lease.run,
                    lease.attempt,
                    file.path(),
                );
                // Without it, an exit code alone would say less than what is known to be missing.
                let detail =
                    "OpenTofu left an errored.tfstate that could not be stored.".to_owned();
                let seen = ended.seen;
                return Finish::Result(ApplyEnd::Killed {
                    limit_exceeded: false,
                    detail,
                    seen,
                    errored_state: None,
                });
            }
        },
    };
    Finish::Result(after_start(attempt, ended, errored_state))
}

fn before_start(attempt: &Attempt<'_>, ended: &Ended) -> Finish<ApplyEnd> {
    match (&ended.halt, ended.interrupted) {
        (Some(Halt::Refused { part, detail }), _) => {
            return not_started(*part, attempt.plain(detail));
        }
        (Some(Halt::Lost), _) => return Finish::Lost,
        (Some(Halt::Canceled), _) => return canceled(),
        (None, Some(why)) => return interrupted(why),
        (None, None) => {}
    }
    match fault(&ended.outcome) {
        // The backend is the one of the plan, so what `init` has left to stumble over are modules and
        // providers that are not the approved ones, or not to be had.
        Some(Fault::Step { name, exit }) if *name == *step::INIT => not_started(
            Some(EvidencePart::Dependencies),
            format!(
                "{} The approved dependencies could not be installed.",
                step_sentence(&name, exit)
            ),
        ),
        Some(Fault::Step { name, exit }) => not_started(None, step_sentence(&name, exit)),
        Some(Fault::Refused { input, detail }) => {
            not_started(input.as_deref().and_then(part_of), attempt.plain(&detail))
        }
        Some(Fault::Limit { detail } | Fault::Lost { detail }) => {
            not_started(None, detail.to_owned())
        }
        Some(Fault::Stopped { .. }) | None => not_started(
            None,
            "The sandbox ended before `tofu apply` was started.".to_owned(),
        ),
    }
}

fn part_of(name: &str) -> Option<EvidencePart> {
    match name {
        input::CONFIGURATION => Some(EvidencePart::Configuration),
        input::PLAN => Some(EvidencePart::Plan),
        input::LOCK_FILE => Some(EvidencePart::Dependencies),
        _ => None,
    }
}

/// From here on anything may have been changed: only an exit code of `tofu apply` itself says how it
/// went, and everything else says that nobody knows.
fn after_start(
    attempt: &Attempt<'_>,
    ended: Ended,
    errored_state: Option<StoredArtifact>,
) -> ApplyEnd {
    let Ended {
        outcome,
        interrupted,
        seen,
        ..
    } = ended;
    let fault = fault(&outcome);
    let exit = outcome.step(APPLY).map(|report| report.exit);
    let ended_by_itself = matches!(
        fault,
        None | Some(Fault::Step { .. } | Fault::Stopped { forced: false })
    );
    if let (Some(StepExit::Code(exit_code)), true) = (exit, ended_by_itself) {
        let sandbox = sandbox_evidence(attempt.settings, attempt.lease, &outcome);
        return ApplyEnd::Exited {
            exit_code,
            interrupted: interrupted.is_some(),
            seen,
            errored_state,
            sandbox,
        };
    }
    let (limit_exceeded, detail) = match fault {
        Some(Fault::Limit { detail }) => (true, detail.to_owned()),
        Some(Fault::Lost { detail }) => (false, detail.to_owned()),
        Some(Fault::Step { name, exit }) => (false, step_sentence(&name, exit)),
        Some(Fault::Refused { detail, .. }) => (false, attempt.plain(&detail)),
        Some(Fault::Stopped { .. }) => (
            false,
            "`tofu apply` did not end within the grace after an interrupt.".to_owned(),
        ),
        None => (
            false,
            "The sandbox ended without an exit code of `tofu apply`.".to_owned(),
        ),
    };
    ApplyEnd::Killed {
        limit_exceeded,
        detail,
        seen,
        errored_state,
    }
}
