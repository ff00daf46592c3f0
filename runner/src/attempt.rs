//! One lease, from its start to its report.

use std::sync::Arc;
use std::time::Duration;

use stackship_domain::run::{Phase, TerminalReason};
use stackship_runner_protocol::{
    ApplyEnd, ApprovedPlan, DETAIL_CHARS_MAX, Lease, PhaseResult, PlanEnd,
};
use stackship_sandbox::SandboxDriver;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::control_plane::{CallError, ControlPlane, Hold};
use crate::heartbeat::Heart;
use crate::inputs::{Approved, Fetcher, InputError, Inputs, attempt_directory};
use crate::logs::{PhaseLog, Secrets, StreamLog, ship};
use crate::session::Orders;
use crate::tools::Tools;
use crate::{RunnerSettings, apply, plan, variables};

/// How long to wait after the first failed try to report; doubled after each.
const REPORT_AFTER: Duration = Duration::from_millis(50);
/// The longest pause between two tries to report.
const REPORT_AFTER_MAX: Duration = Duration::from_secs(5);

/// What a log begins with when masking cannot know every form of every secret.
const LARGE_SECRETS: &str = "(the run's secrets are very large: of some, only the plain text is masked here, not what is made of it by encoding)";

/// How executing a phase ended for the runner.
pub(crate) enum Finish<E> {
    /// There is something to report.
    Result(E),
    /// Nothing was done that another runner could not do again.
    HandBack,
    /// The lease is lost: nobody takes a report.
    Lost,
}

impl<E> Finish<E> {
    fn map<T>(self, into: impl FnOnce(E) -> T) -> Finish<T> {
        match self {
            Self::Result(end) => Finish::Result(into(end)),
            Self::HandBack => Finish::HandBack,
            Self::Lost => Finish::Lost,
        }
    }
}

/// What every attempt of a runner shares.
pub(crate) struct Shared {
    pub(crate) settings: RunnerSettings,
    pub(crate) driver: Arc<dyn SandboxDriver>,
    pub(crate) control_plane: Arc<ControlPlane>,
    pub(crate) tools: Tools,
    /// The runner shuts down.
    pub(crate) stop: CancellationToken,
    /// Its grace is over.
    pub(crate) force: CancellationToken,
}

/// One attempt while its phase is executed.
pub(crate) struct Attempt<'a> {
    pub(crate) settings: &'a RunnerSettings,
    pub(crate) driver: &'a dyn SandboxDriver,
    pub(crate) control_plane: &'a Arc<ControlPlane>,
    pub(crate) tools: &'a Tools,
    pub(crate) lease: &'a Lease,
    pub(crate) hold: Hold,
    pub(crate) inputs: &'a Inputs,
    pub(crate) log: &'a mut PhaseLog,
    pub(crate) orders: &'a mut Orders,
    secrets: &'a Secrets,
    directory: &'a TempDir,
}

impl Attempt<'_> {
    /// Fetches what was approved.
    pub(crate) async fn approved(&self, approved: &ApprovedPlan) -> Result<Approved, InputError> {
        fetcher(self.control_plane, &self.hold, self.directory)
            .approved(approved)
            .await
    }

    /// An error and its causes as a detail.
    pub(crate) fn sentence(&self, error: &dyn std::error::Error) -> String {
        self.plain(&with_causes(error))
    }

    /// A text as a detail: free of secrets, on one line, and not too long.
    pub(crate) fn plain(&self, text: &str) -> String {
        let (mut stream, mut out) = (StreamLog::new(self.secrets), String::new());
        stream.write(text.as_bytes(), &mut out);
        stream.finish(&mut out);
        out.trim_end()
            .replace('\n', " ")
            .chars()
            .take(DETAIL_CHARS_MAX)
            .collect()
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Executes a lease and reports how it ended.
pub(crate) async fn execute(shared: &Shared, lease: Lease) {
    tracing::info!(run.id = %lease.run, attempt.id = %lease.attempt, attempt.number = lease.number,
        phase = %lease.phase, "An attempt of run `{}` began", lease.run);
    let heart = Heart::start(Arc::clone(&shared.control_plane), &lease);
    let hold = Hold::of(&lease);
    let finish = match prepare(shared, &hold).await {
        Ok((directory, inputs)) => perform(shared, &lease, &heart, &directory, &inputs).await,
        Err(InputError::Call(CallError::Lost)) => Finish::Lost,
        Err(error) => Finish::Result(not_performed(lease.phase, &error)),
    };
    match finish {
        Finish::Result(result) => report(shared, &hold, &heart, &result).await,
        Finish::HandBack => {
            if let Err(error) = shared.control_plane.hand_back(&hold).await {
                tracing::warn!(error = %error, attempt.id = %hold.attempt, "An attempt could not be handed back");
            }
        }
        Finish::Lost => {
            tracing::warn!(run.id = %lease.run, attempt.id = %lease.attempt, "An attempt lost its lease");
        }
    }
}

async fn prepare(shared: &Shared, hold: &Hold) -> Result<(TempDir, Inputs), InputError> {
    let directory = attempt_directory(&shared.settings.work_directory)?;
    let inputs = fetcher(&shared.control_plane, hold, &directory)
        .inputs()
        .await?;
    Ok((directory, inputs))
}

fn fetcher<'a>(
    control_plane: &'a ControlPlane,
    hold: &'a Hold,
    directory: &'a TempDir,
) -> Fetcher<'a> {
    Fetcher {
        control_plane,
        hold,
        directory,
    }
}

/// Executes the phase with its log. The log is complete before anything is reported.
async fn perform(
    shared: &Shared,
    lease: &Lease,
    heart: &Heart,
    directory: &TempDir,
    inputs: &Inputs,
) -> Finish<PhaseResult> {
    let hold = Hold::of(lease);
    let secrets = variables::secrets(&inputs.pinned.variables, lease);
    let (sender, queue) = mpsc::unbounded_channel();
    let shipper = ship(
        Arc::clone(&shared.control_plane),
        hold.clone(),
        queue,
        heart.lost.clone(),
    );
    let mut log = PhaseLog::new(&secrets, sender);
    if secrets.lacks_forms() {
        log.note(LARGE_SECRETS);
    }
    let mut orders = Orders {
        control_plane: heart.orders.clone(),
        stop: shared.stop.clone(),
        force: shared.force.clone(),
    };
    let mut attempt = Attempt {
        settings: &shared.settings,
        driver: &*shared.driver,
        control_plane: &shared.control_plane,
        tools: &shared.tools,
        lease,
        hold,
        inputs,
        log: &mut log,
        orders: &mut orders,
        secrets: &secrets,
        directory,
    };
    let result = match lease.phase {
        Phase::Plan => plan::run(&mut attempt)
            .await
            .map(|finish| finish.map(|end| PhaseResult::Plan { end })),
        Phase::Apply => apply::run(&mut attempt)
            .await
            .map(|finish| finish.map(|end| PhaseResult::Apply { end })),
    };
    if let Ok(Finish::Result(result)) = &result
        && let Some(why) = stopped_by_runner(result)
    {
        tracing::warn!(run.id = %lease.run, attempt.id = %lease.attempt, "A phase was not carried out: {why}");
        log.state(&format!("\nError: {why}\n"));
    }
    drop(log);
    tracing::debug!(attempt.id = %lease.attempt, "The phase of an attempt is over; its log is being sent to the end");
    shipper.flushed().await;
    match result {
        Ok(finish) => finish,
        Err(InputError::Call(CallError::Lost)) => Finish::Lost,
        Err(error) => Finish::Result(not_performed(lease.phase, &error)),
    }
}

/// Why the runner stopped a phase, where nothing that ran in it has printed the reason. Whoever follows
/// the log in a terminal sees nothing else of the run.
fn stopped_by_runner(result: &PhaseResult) -> Option<&str> {
    match result {
        PhaseResult::Plan {
            end: PlanEnd::Failed { reason, detail },
        } if *reason != TerminalReason::PlanFailed => Some(detail),
        PhaseResult::Apply {
            end: ApplyEnd::NotStarted { detail, .. },
        } => Some(detail),
        _ => None,
    }
}

/// The runner could not fetch or store what the phase needs, and the phase's own step had no effect.
fn not_performed(phase: Phase, error: &InputError) -> PhaseResult {
    let detail: String = with_causes(error).chars().take(DETAIL_CHARS_MAX).collect();
    match (phase, error) {
        (Phase::Apply, _) => PhaseResult::Apply {
            end: ApplyEnd::NotStarted { part: None, detail },
        },
        (Phase::Plan, InputError::Snapshot(_)) => PhaseResult::Plan {
            end: PlanEnd::Failed {
                reason: TerminalReason::PlanRefused,
                detail,
            },
        },
        (Phase::Plan, _) => PhaseResult::Plan {
            end: PlanEnd::SandboxLost { detail },
        },
    }
}

/// Reports until it is taken, refused or nobody waits for it any more.
async fn report(shared: &Shared, hold: &Hold, heart: &Heart, result: &PhaseResult) {
    let mut pause = REPORT_AFTER;
    loop {
        match shared.control_plane.report(hold, result).await {
            Ok(()) => {
                tracing::debug!(attempt.id = %hold.attempt, "A result was taken");
                return;
            }
            Err(error) if error.may_pass() => {
                tracing::warn!(error = %error, attempt.id = %hold.attempt, "A result was not taken; saying it again");
            }
            Err(error) => {
                tracing::error!(error = %error, attempt.id = %hold.attempt, "A result was refused");
                return;
            }
        }
        tokio::select! {
            () = heart.lost.cancelled() => {
                tracing::error!(attempt.id = %hold.attempt, "The lease was lost before a result was taken");
                return;
            }
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(REPORT_AFTER_MAX),
        }
    }
}
