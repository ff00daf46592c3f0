//! Driving one sandbox: its events to the log, its pause to a check, orders from outside to it.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use stackship_domain::Sha256Digest;
use stackship_domain::run::EvidencePart;
use stackship_runner_protocol::{Lease, PROTOCOL, SeenState};
use stackship_sandbox::egress::{Decision, Egress};
use stackship_sandbox::{
    EndReason, Event, LaunchError, Outcome, ReceivedArtifact, Sandbox, SandboxDriver, SandboxSpec,
    StepExit,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::RunnerSettings;
use crate::control_plane::ControlPlane;
use crate::gateway::Gateway;
use crate::heartbeat::Order;
use crate::logs::PhaseLog;
use crate::workdir::{NO_CONFIGURATION, step};

/// What makes an attempt stop early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// Somebody asked for it.
    Cancel,
    /// The lease is lost.
    Lost,
    /// The runner shuts down.
    ShutDown,
}

/// What comes from outside while an attempt runs.
pub(crate) struct Orders {
    pub(crate) control_plane: watch::Receiver<Order>,
    /// The runner shuts down: what can be handed back stops.
    pub(crate) stop: CancellationToken,
    /// The runner's grace is over: everything stops.
    pub(crate) force: CancellationToken,
}

impl Orders {
    async fn next(&mut self, can_hand_back: bool) -> Interruption {
        let shut_down = if can_hand_back {
            &self.stop
        } else {
            &self.force
        };
        let order = self.control_plane.wait_for(|order| *order != Order::GoOn);
        tokio::select! {
            () = shut_down.cancelled() => Interruption::ShutDown,
            order = order => match order.map(|order| *order) {
                Ok(Order::Cancel | Order::GoOn) => Interruption::Cancel,
                Ok(Order::Lost) | Err(_) => Interruption::Lost,
            },
        }
    }
}

/// Why the check in the pause did not let the phase go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Halt {
    /// Something is not as it must be.
    Refused {
        part: Option<EvidencePart>,
        detail: String,
    },
    /// A cancel was asked for just then.
    Canceled,
    /// The lease is lost.
    Lost,
}

/// The check in the pause after `init`.
#[async_trait]
pub(crate) trait Gate: Send + Sync {
    /// Looks at what has come out so far. The phase's own step starts only after `Ok`.
    async fn open(&self, received: &[ReceivedArtifact]) -> Result<(), Halt>;
}

/// Why there was no session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error("the sandbox could not be launched")]
    Launch(#[from] LaunchError),
    #[error("the attempt was interrupted before its sandbox was up")]
    Interrupted(Interruption),
}

/// How a session ended.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) interrupted: Option<Interruption>,
    pub(crate) halt: Option<Halt>,
    /// Whether the gate was passed: from then on the phase's own step may have run.
    pub(crate) has_passed: bool,
    /// The newest state that went through the gateway.
    pub(crate) seen: Option<SeenState>,
}

/// What a session needs besides its specification.
pub(crate) struct Session<'a> {
    pub(crate) settings: &'a RunnerSettings,
    pub(crate) driver: &'a dyn SandboxDriver,
    pub(crate) control_plane: &'a Arc<ControlPlane>,
    pub(crate) lease: &'a Lease,
    pub(crate) gate: &'a dyn Gate,
    /// Whether the phase can be handed back after the gate.
    pub(crate) can_hand_back: bool,
}

impl Session<'_> {
    pub(crate) async fn run(
        &self,
        spec: SandboxSpec,
        log: &mut PhaseLog,
        orders: &mut Orders,
    ) -> Result<Ended, SessionError> {
        // A launch may wait for a place; an order that comes meanwhile needs no sandbox to obey it.
        let mut sandbox = tokio::select! {
            why = orders.next(true) => return Err(SessionError::Interrupted(why)),
            launched = self.driver.launch(spec) => launched?,
        };
        tracing::debug!(attempt.id = %self.lease.attempt, "The sandbox of an attempt is up");
        let (gateway, _servers) = self.serve(sandbox.as_mut());
        let control = sandbox.control();
        let (mut received, mut interrupted, mut halt, mut has_passed) =
            (Vec::new(), None, None, false);
        loop {
            let can_hand_back = self.can_hand_back || !has_passed;
            tokio::select! {
                event = sandbox.next_event() => match event {
                    None => break,
                    Some(Event::StepStarted { step }) => {
                        tracing::debug!(attempt.id = %self.lease.attempt, %step, "Step `{step}` began");
                    }
                    Some(Event::Log { stream, bytes, .. }) => log.write(stream, &bytes),
                    Some(Event::LogTruncated) => log.note("(more was written than is kept)"),
                    Some(Event::Artifact(artifact)) => received.push(artifact),
                    Some(Event::StepEnded(report)) => {
                        tracing::debug!(attempt.id = %self.lease.attempt, step = %report.step, "Step `{}` ended", report.step);
                        log.end_step();
                    }
                    Some(Event::Paused { .. }) => match self.gate.open(&received).await {
                        Ok(()) => {
                            has_passed = true;
                            control.proceed().await;
                        }
                        Err(why) => {
                            halt = Some(why);
                            control.kill().await;
                        }
                    },
                },
                why = orders.next(can_hand_back), if interrupted.is_none() && halt.is_none() => {
                    interrupted = Some(why);
                    // Before the gate nothing was done that would have to end well; a phase that can
                    // be handed back and whose result nobody waits for needs no good end either.
                    let ends_well = has_passed && (!self.can_hand_back || why == Interruption::Cancel);
                    if ends_well { control.interrupt().await } else { control.kill().await }
                }
            }
        }
        log.end_step();
        let outcome = sandbox.wait().await;
        gateway.finish().await;
        Ok(Ended {
            outcome,
            interrupted,
            halt,
            has_passed,
            seen: gateway.seen(),
        })
    }

    /// Serves the sandbox's two ways out until the returned set is dropped.
    fn serve(&self, sandbox: &mut dyn Sandbox) -> (Arc<Gateway>, JoinSet<()>) {
        let mut servers = JoinSet::new();
        let gateway = Arc::new(Gateway::new(Arc::clone(self.control_plane), self.lease));
        if let Some(listener) = sandbox.take_gateway() {
            servers.spawn(Arc::clone(&gateway).serve(listener));
        }
        if let (Some(listener), Some(policy)) = (sandbox.take_egress(), &self.settings.egress) {
            let run = self.lease.run;
            let report = move |decision: Decision| match (&decision.target, &decision.result) {
                (Some((host, port)), Ok(_)) => {
                    tracing::info!(run.id = %run, host, port, "Egress allowed");
                }
                (target, Err(refusal)) => {
                    tracing::info!(run.id = %run, ?target, %refusal, "Egress refused");
                }
                (None, Ok(_)) => {}
            };
            servers.spawn(Egress::new(policy.clone(), report).serve(listener));
        }
        (gateway, servers)
    }
}

/// Where and how isolated a phase ran, as evidence. The name is the attempt's, the id the one by which
/// this runner's log tells of the sandbox.
pub(crate) fn sandbox_evidence(
    settings: &RunnerSettings,
    lease: &Lease,
    outcome: &Outcome,
) -> serde_json::Value {
    let isolation = &outcome.isolation;
    serde_json::json!({
        "id": outcome.id,
        "name": lease.attempt,
        "driver": isolation.driver,
        "base_profile": isolation.base_profile,
        "cgroup": isolation.cgroup,
        "landlock": isolation.landlock,
        "region": settings.region,
        "release": env!("CARGO_PKG_VERSION"),
        "protocol": PROTOCOL,
        "peak_memory_bytes": outcome.peak_memory_bytes,
    })
}

/// How a sandbox ended other than by its steps, in one sentence free of secrets.
pub(crate) enum Fault {
    /// A step of the phase ended badly.
    Step { name: Arc<str>, exit: StepExit },
    /// The configuration or an input was refused.
    Refused {
        input: Option<Arc<str>>,
        detail: String,
    },
    /// A limit ended it.
    Limit { detail: &'static str },
    /// It vanished, or was not to be trusted any longer.
    Lost { detail: &'static str },
    /// It was stopped from outside.
    Stopped { forced: bool },
}

/// Sorts a sandbox's end; `None` when every step ended as it should. Texts that come from inside are
/// shown only where they name an entry of the person's own archive.
pub(crate) fn fault(outcome: &Outcome) -> Option<Fault> {
    let refused = |detail: &str| Fault::Refused {
        input: None,
        detail: detail.to_owned(),
    };
    Some(match &outcome.reason {
        EndReason::Exited => return None,
        EndReason::StepFailed { step, exit } if &**step == step::PREPARE => match exit {
            StepExit::Code(NO_CONFIGURATION) => {
                refused("The working directory holds no configuration.")
            }
            StepExit::NotStarted => refused("The working directory is not in the configuration."),
            StepExit::Code(_) | StepExit::Signal(_) => {
                refused("The working directory could not be prepared.")
            }
        },
        EndReason::StepFailed { step, exit } => Fault::Step {
            name: Arc::clone(step),
            exit: *exit,
        },
        EndReason::Timeout { .. } => Fault::Limit {
            detail: "It took longer than it may.",
        },
        EndReason::Oom => Fault::Limit {
            detail: "It used more memory than it may.",
        },
        EndReason::Pids => Fault::Limit {
            detail: "It started more processes than it may.",
        },
        EndReason::LogFlood => Fault::Limit {
            detail: "It wrote far more log than it may.",
        },
        EndReason::ArtifactTooLarge { .. } => Fault::Limit {
            detail: "A file it made is larger than it may be.",
        },
        EndReason::Canceled { forced } => Fault::Stopped { forced: *forced },
        EndReason::Killed => Fault::Stopped { forced: true },
        EndReason::Lost { .. } => Fault::Lost {
            detail: "The sandbox vanished.",
        },
        EndReason::Protocol { .. } => Fault::Lost {
            detail: "The sandbox broke its protocol.",
        },
        EndReason::HostFailure { .. } => Fault::Lost {
            detail: "The host could not keep what came out.",
        },
        EndReason::ArtifactMissing { .. } => {
            refused("A file that must be there is not, or is no regular file.")
        }
        EndReason::InputMismatch { name, .. } => Fault::Refused {
            input: Some(Arc::clone(name)),
            detail: format!("The bytes of `{name}` inside the sandbox are not the pinned ones."),
        },
        EndReason::InputRefused { name, reason } => Fault::Refused {
            input: Some(Arc::clone(name)),
            detail: format!("`{name}` was refused: {reason}"),
        },
    })
}

/// The digest of an artifact, in the domain's words.
pub(crate) fn digest_of(artifact: &ReceivedArtifact) -> Sha256Digest {
    Sha256Digest::from_bytes(*artifact.digest().as_bytes())
}

/// The file of the artifact of this name, if it came out.
pub(crate) fn file_of<'a>(received: &'a [ReceivedArtifact], name: &str) -> Option<&'a Path> {
    received
        .iter()
        .find(|artifact| artifact.name() == name)
        .map(ReceivedArtifact::path)
}
