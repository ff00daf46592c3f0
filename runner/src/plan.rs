//! The plan phase: `init`, a look at the backend, `plan`; then the plan as JSON, in a sandbox of its own.

use std::time::Duration;

use async_trait::async_trait;
use stackship_domain::run::TerminalReason;
use stackship_domain::variable::PlanOptions;
use stackship_plan_diff::Summary;
use stackship_runner_protocol::{
    ArtifactKind, InputName, InputRef, PLAN_BYTES_MAX, PlanEnd, PlanJsonFacts, StoredArtifact,
};
use stackship_sandbox::{
    Artifact, LaunchError, Outcome, Presence, ReceivedArtifact, Step, StepExit,
};

use crate::attempt::{Attempt, Finish};
use crate::backend;
use crate::control_plane::CallError;
use crate::dependencies::bundle_digest;
use crate::inputs::{InputError, Inputs};
use crate::inspect::{self, Inspected, PROVIDERS, REDACT, Subject};
use crate::session::{
    Ended, Fault, Gate, Halt, Interruption, Session, SessionError, digest_of, fault, file_of,
    sandbox_evidence,
};
use crate::workdir::{PLAN_FILE, VARIABLES_ARGUMENT, Workdir, WorkdirError, artifact};

const PLAN: &str = "plan";
/// The detail when nothing of a plan can be shown.
const NOT_REDACTED: &str =
    "What may be shown of the plan could not be told from its JSON; the log says why.";
/// What a plan's log says before it lists what the plan file holds.
const STATEMENT_HEAD: &str = "StackShip read the saved plan in a sandbox of its own. An approval is for what follows, \
     whatever is printed above:";
/// The longest between an interrupt of a plan and its kill. OpenTofu looks for an interrupt only before
/// it turns to a resource or a provider: an expression is computed to its end, however long that takes.
/// A plan has written nothing that could be lost, so the grace of an apply is not spent on one; this is
/// enough for providers to end what they opened.
const INTERRUPT_GRACE_MAX: Duration = Duration::from_secs(5);
/// Exit codes of `tofu plan -detailed-exitcode` that come with a plan.
const PLANNED_CODES: [i32; 2] = [0, 2];

/// Executes the phase. An error means that something could not be fetched or stored.
pub(crate) async fn run(attempt: &mut Attempt<'_>) -> Result<Finish<PlanEnd>, InputError> {
    let failed = |reason, detail: String| Ok(Finish::Result(PlanEnd::Failed { reason, detail }));
    let inputs = attempt.inputs;
    if let Some(name) = inputs.first_difference(attempt.lease) {
        return failed(TerminalReason::PlanRefused, pinned_difference(name));
    }
    let tofu = match attempt.tools.directory(attempt.lease.tofu_version).await {
        Ok(tofu) => tofu,
        Err(error) => return failed(TerminalReason::SandboxUnavailable, attempt.sentence(&error)),
    };
    let workdir = match Workdir::new(attempt.settings, attempt.lease, inputs, tofu) {
        Ok(workdir) => workdir,
        Err(error @ WorkdirError::LeadsOut) => {
            return failed(TerminalReason::PlanRefused, attempt.sentence(&error));
        }
        Err(error @ WorkdirError::Mirror(_)) => {
            return failed(TerminalReason::SandboxUnavailable, attempt.sentence(&error));
        }
    };
    let spec = specification(&workdir, inputs, attempt.lease.phase_seconds_max);
    let gate = PlanGate {
        workdir: &workdir,
        hostname: &attempt.settings.hostname,
        lease: attempt.lease,
    };
    let session = Session {
        settings: attempt.settings,
        driver: attempt.driver,
        control_plane: attempt.control_plane,
        lease: attempt.lease,
        gate: &gate,
        can_hand_back: true,
    };
    match session.run(spec, attempt.log, attempt.orders).await {
        Ok(ended) => Ok(finish(attempt, &workdir, ended).await?),
        Err(SessionError::Interrupted(why)) => Ok(interrupted(why)),
        Err(SessionError::Launch(LaunchError::Spec(error))) => {
            failed(TerminalReason::PlanRefused, attempt.sentence(&error))
        }
        Err(SessionError::Launch(error)) => {
            failed(TerminalReason::SandboxUnavailable, attempt.sentence(&error))
        }
    }
}

fn specification(
    workdir: &Workdir<'_>,
    inputs: &Inputs,
    seconds_max: u32,
) -> stackship_sandbox::SandboxSpec {
    let mut spec = workdir.specification();
    spec.limits.interrupt_grace = spec.limits.interrupt_grace.min(INTERRUPT_GRACE_MAX);
    // Before anything of the configuration runs in the plan: its code could put another package into the
    // place of one, with a hash that a lock file of its own lists too.
    let after_init = spec.steps.len() - 1;
    spec.steps.insert(after_init, inspect::pack_step(workdir));
    let arguments = arguments(&inputs.pinned.options);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    spec.steps.push(Step {
        continue_on: PLANNED_CODES.to_vec(),
        ..workdir.tofu(PLAN, &arguments, Duration::from_secs(seconds_max.into()))
    });
    spec.artifacts.push(Artifact {
        name: PLAN.to_owned(),
        path: PLAN_FILE.to_owned(),
        bytes_max: PLAN_BYTES_MAX,
        after: PLAN.to_owned(),
        presence: Presence::Required,
    });
    spec
}

fn arguments(options: &PlanOptions) -> Vec<String> {
    let fixed = [
        "plan",
        "-input=false",
        "-no-color",
        "-lock=false",
        "-detailed-exitcode",
        VARIABLES_ARGUMENT,
    ];
    let mut arguments: Vec<String> = fixed.map(str::to_owned).to_vec();
    arguments.push(format!("-out={PLAN_FILE}"));
    if options.skip_refresh {
        arguments.push("-refresh=false".to_owned());
    }
    if options.refresh_only {
        arguments.push("-refresh-only".to_owned());
    }
    arguments.extend(
        options
            .target_addresses
            .iter()
            .map(|address| format!("-target={address}")),
    );
    arguments.extend(
        options
            .replace_addresses
            .iter()
            .map(|address| format!("-replace={address}")),
    );
    arguments
}

struct PlanGate<'a> {
    workdir: &'a Workdir<'a>,
    hostname: &'a str,
    lease: &'a stackship_runner_protocol::Lease,
}

#[async_trait]
impl Gate for PlanGate<'_> {
    async fn open(&self, received: &[ReceivedArtifact]) -> Result<(), Halt> {
        backend::check(
            file_of(received, artifact::BACKEND),
            self.hostname,
            self.lease,
        )
        .map_err(|refusal| Halt::Refused {
            part: None,
            detail: refusal.to_string(),
        })?;
        match self.workdir.first_changed(received) {
            None => Ok(()),
            Some(name) => Err(Halt::Refused {
                part: None,
                detail: format!("`tofu init` changed `{name}`, which is not the configuration's."),
            }),
        }
    }
}

const fn interrupted(why: Interruption) -> Finish<PlanEnd> {
    match why {
        Interruption::Cancel => Finish::Result(PlanEnd::Stopped),
        Interruption::Lost => Finish::Lost,
        Interruption::ShutDown => Finish::HandBack,
    }
}

async fn finish(
    attempt: &mut Attempt<'_>,
    workdir: &Workdir<'_>,
    ended: Ended,
) -> Result<Finish<PlanEnd>, CallError> {
    if let Some(finish) = unfinished(attempt, &ended) {
        return Ok(finish);
    }
    let outcome = &ended.outcome;
    let (Some(plan), Some(providers)) = (outcome.artifact(PLAN), outcome.artifact(PROVIDERS))
    else {
        return Ok(incomplete());
    };
    let subject = Subject {
        plan,
        lock_file: outcome.artifact(artifact::LOCK_FILE),
        providers,
    };
    let inspected = match inspect::inspect(attempt, workdir, &subject).await {
        Ok(inspected) => inspected,
        Err(SessionError::Interrupted(why)) => return Ok(interrupted(why)),
        Err(SessionError::Launch(error)) => {
            return Ok(Finish::Result(PlanEnd::Failed {
                reason: TerminalReason::SandboxUnavailable,
                detail: attempt.sentence(&error),
            }));
        }
    };
    if let Some(finish) = unfinished(attempt, &inspected) {
        return Ok(finish);
    }
    planned(attempt, outcome, &inspected.outcome).await
}

/// How the phase ends when a sandbox did not come to its own end; `None` when it did.
fn unfinished(attempt: &Attempt<'_>, ended: &Ended) -> Option<Finish<PlanEnd>> {
    match (&ended.halt, ended.interrupted) {
        (Some(Halt::Refused { detail, .. }), _) => {
            let (reason, detail) = (TerminalReason::PlanRefused, attempt.plain(detail));
            return Some(Finish::Result(PlanEnd::Failed { reason, detail }));
        }
        (Some(Halt::Lost), _) => return Some(Finish::Lost),
        (Some(Halt::Canceled), _) => return Some(Finish::Result(PlanEnd::Stopped)),
        (None, Some(why)) => return Some(interrupted(why)),
        (None, None) => {}
    }
    let failed = |reason, detail: &str| PlanEnd::Failed {
        reason,
        detail: attempt.plain(detail),
    };
    Some(Finish::Result(match fault(&ended.outcome)? {
        Fault::Step { name, .. } if &*name == REDACT => {
            failed(TerminalReason::PlanFailed, NOT_REDACTED)
        }
        Fault::Step { name, exit } => {
            failed(TerminalReason::PlanFailed, &step_sentence(&name, exit))
        }
        Fault::Refused { detail, .. } => failed(TerminalReason::PlanRefused, &detail),
        Fault::Limit { detail } => failed(TerminalReason::PlanLimitExceeded, detail),
        Fault::Lost { detail } => PlanEnd::SandboxLost {
            detail: detail.to_owned(),
        },
        Fault::Stopped { .. } => PlanEnd::SandboxLost {
            detail: "The sandbox was killed.".to_owned(),
        },
    }))
}

fn incomplete() -> Finish<PlanEnd> {
    Finish::Result(PlanEnd::SandboxLost {
        detail: "The sandbox ended without everything it must bring.".to_owned(),
    })
}

/// Stores what came out, all of it at the same time.
async fn planned(
    attempt: &mut Attempt<'_>,
    outcome: &Outcome,
    inspected: &Outcome,
) -> Result<Finish<PlanEnd>, CallError> {
    let exit = outcome.step(PLAN).map(|report| report.exit);
    let files = (
        outcome.artifact(PLAN),
        Inspected::of(inspected),
        outcome.artifact(artifact::MODULES),
    );
    let (Some(StepExit::Code(exit_code)), (Some(plan), Some(inspected), Some(modules))) =
        (exit, files)
    else {
        return Ok(incomplete());
    };
    let Some(summary) = inspected.summary().await.map_err(CallError::File)? else {
        return Ok(incomplete());
    };
    let Some(statement) = statement(inspected.diff).await? else {
        return Ok(incomplete());
    };
    attempt.log.state(&statement);
    let lock_file = outcome.artifact(artifact::LOCK_FILE);
    let dependencies =
        bundle_digest(lock_file.map(digest_of), modules.path()).map_err(CallError::File)?;
    let (plan, plan_json, plan_diff, policy_input, lock_file) = tokio::try_join!(
        store(attempt, ArtifactKind::Plan, plan),
        store(attempt, ArtifactKind::PlanJson, inspected.json),
        store(attempt, ArtifactKind::PlanDiff, inspected.diff),
        store_if_any(attempt, ArtifactKind::PolicyInput, inspected.policy_input),
        store_if_any(attempt, ArtifactKind::LockFile, lock_file),
    )?;
    Ok(Finish::Result(PlanEnd::Planned {
        exit_code,
        json: PlanJsonFacts {
            counts: summary.counts,
            errored: summary.errored,
            doubtful: doubtful(&summary),
        },
        plan,
        plan_json,
        plan_diff,
        policy_input,
        lock_file,
        dependencies,
        sandbox: sandbox_evidence(attempt.settings, attempt.lease, outcome),
    }))
}

/// How a plan's log ends: with what the plan file holds, told by nothing that ran while it was made. Its
/// code could write anything above, also what looks like a plan.
async fn statement(diff: &ReceivedArtifact) -> Result<Option<String>, CallError> {
    let bytes = tokio::fs::read(diff.path())
        .await
        .map_err(CallError::File)?;
    let outline = stackship_plan_diff::outline(&bytes).ok();
    Ok(outline.map(|outline| format!("\n{STATEMENT_HEAD}\n\n{outline}")))
}

/// Of how much policies see nothing. A plan that OpenTofu did not complete is doubtful as a whole.
fn doubtful(summary: &Summary) -> u64 {
    let counted = u64::try_from(summary.doubtful).unwrap_or(u64::MAX);
    counted.max(u64::from(!summary.complete))
}

async fn store_if_any(
    attempt: &Attempt<'_>,
    kind: ArtifactKind,
    file: Option<&ReceivedArtifact>,
) -> Result<Option<StoredArtifact>, CallError> {
    match file {
        None => Ok(None),
        Some(file) => store(attempt, kind, file).await.map(Some),
    }
}

pub(crate) async fn store(
    attempt: &Attempt<'_>,
    kind: ArtifactKind,
    file: &ReceivedArtifact,
) -> Result<StoredArtifact, CallError> {
    let what = InputRef {
        sha256: digest_of(file),
        bytes: file.bytes(),
    };
    attempt
        .control_plane
        .store(&attempt.hold, kind, file.path(), &what)
        .await
}

/// How a step ended, for a person.
pub(crate) fn step_sentence(name: &str, exit: StepExit) -> String {
    match exit {
        StepExit::Code(code) => {
            format!("`tofu {name}` ended with exit code {code}; its log says why.")
        }
        StepExit::Signal(signal) => format!("`tofu {name}` was ended by signal {signal}."),
        StepExit::NotStarted => format!("`tofu {name}` could not be started."),
    }
}

/// What was fetched is not what the run pinned.
pub(crate) fn pinned_difference(name: InputName) -> String {
    format!("The bytes of `{}` are not the pinned ones.", name.as_str())
}
