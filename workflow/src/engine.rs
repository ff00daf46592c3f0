//! The loop: nudged by the log and by attempts, and looking at every unfinished run from time to
//! time anyway. Looking is safe to do twice and in several processes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stackship_domain::ids::{RunId, WorkspaceId};
use stackship_store::log::CommandError;
use stackship_store::notify::{Nudges, Topic};
use stackship_store::records::runs_record;
use stackship_store::{Store, attempts};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::StepError;
use crate::advance::{Due, advance, check_policies};
use crate::policy::Checker;

/// How often leases and deadlines are looked at.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// How often every unfinished run is looked at, in sweeps.
const SWEEPS_PER_FULL_LOOK: u32 = 5;
/// How many runs one page of a sweep names.
const SWEEP_PAGE: i64 = 500;
/// How many leases one sweep closes.
const EXPIRED_LEASES_MAX: i64 = 100;
/// How many runs are looked at at the same time.
const PARALLEL_LOOKS_MAX: usize = 8;

/// The workflow of this process.
#[derive(Clone)]
pub struct Engine {
    store: Store,
    nudges: Nudges,
    checker: Checker,
    stop: CancellationToken,
    looks: Arc<Semaphore>,
    /// Runs being looked at; `true` when another look is due after this one.
    busy: Arc<Mutex<HashMap<RunId, bool>>>,
    tasks: TaskTracker,
}

impl Engine {
    /// An engine over a store, this process's nudges, and whoever judges plans.
    pub fn new(store: Store, nudges: Nudges, checker: Checker) -> Self {
        Self {
            store,
            nudges,
            checker,
            stop: CancellationToken::new(),
            looks: Arc::new(Semaphore::new(PARALLEL_LOOKS_MAX)),
            busy: Arc::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// Works until `stop`, then ends the looks that are under way.
    pub async fn run(self, stop: CancellationToken) {
        let stop = &stop;
        let this = Self {
            stop: stop.clone(),
            ..self
        };
        let mut nudges = this.nudges.subscribe();
        let mut clock = tokio::time::interval(SWEEP_EVERY);
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut sweeps = 0_u32;
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                nudge = nudges.recv() => match nudge {
                    Ok(nudge) => this.nudged(nudge.topic, &nudge.subject).await,
                    Err(broadcast::error::RecvError::Lagged(missed)) => {
                        tracing::warn!(missed, "Nudges were missed; looking at every unfinished run");
                        this.sweep(true).await;
                    }
                    Err(broadcast::error::RecvError::Closed) => break,
                },
                _ = clock.tick() => {
                    this.sweep(sweeps.is_multiple_of(SWEEPS_PER_FULL_LOOK)).await;
                    sweeps = sweeps.wrapping_add(1);
                }
            }
        }
        this.tasks.close();
        this.tasks.wait().await;
    }

    async fn nudged(&self, topic: Topic, subject: &str) {
        match topic {
            Topic::Events | Topic::Attempts => {
                if let Ok(run) = subject.parse::<RunId>() {
                    self.look(run);
                } else if let Ok(workspace) = subject.parse::<WorkspaceId>() {
                    self.look_at_next(workspace).await;
                }
            }
            Topic::Logs | Topic::Projected => {}
        }
    }

    /// The lock of a workspace may be free: whose turn is it?
    async fn look_at_next(&self, workspace: WorkspaceId) {
        match self.store.workspaces.load(workspace).await {
            Ok((state, _)) if state.lock.is_none() => {
                if let Some(run) = state.queue.first() {
                    self.look(*run);
                }
            }
            Ok(_) => {}
            Err(error) => {
                tracing::error!(workspace.id = %workspace, error = %error, "A workspace could not be read");
            }
        }
    }

    async fn sweep(&self, full: bool) {
        if let Err(error) = self.try_sweep(full).await {
            metrics::counter!("stackship_workflow_sweep_failures_total").increment(1);
            tracing::error!(error = %error, "A sweep over unfinished runs failed; the next one tries again");
        }
    }

    async fn try_sweep(&self, full: bool) -> Result<(), StepError> {
        for run in attempts::expire(&self.store, EXPIRED_LEASES_MAX).await? {
            metrics::counter!("stackship_leases_expired_total").increment(1);
            tracing::warn!(run.id = %run, "A runner stopped renewing its lease");
            self.look(run);
        }
        if !full {
            return Ok(());
        }
        let mut after = None;
        let mut seen = HashSet::new();
        loop {
            let page = runs_record::unfinished(&self.store.pool, after, SWEEP_PAGE).await?;
            after = page.last().copied();
            for run in page {
                if seen.insert(run) {
                    self.look(run);
                }
            }
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Looks at a run soon; while it is being looked at, asks for one more look instead.
    fn look(&self, run: RunId) {
        {
            let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(again) = busy.get_mut(&run) {
                *again = true;
                return;
            }
            busy.insert(run, false);
        }
        let engine = self.clone();
        self.tasks
            .spawn(async move { while engine.look_once(run).await {} });
    }

    /// One look; whether another is due.
    async fn look_once(&self, run: RunId) -> bool {
        let due = self.advance(run).await;
        let again = due == Due::PolicyCheck && self.check_policies(run).await;
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        match busy.remove(&run) {
            Some(asked) if asked || again => {
                busy.insert(run, false);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Takes the steps that are due, beside few others.
    async fn advance(&self, run: RunId) -> Due {
        let Ok(_permit) = self.looks.acquire().await else {
            return Due::Nothing;
        };
        advance(&self.store, run).await.unwrap_or_else(|error| {
            failed(run, &error);
            Due::Nothing
        })
    }

    /// Judges a plan. That takes seconds, so it keeps no other run from being looked at, and a server
    /// that stops does not wait for it: the next one judges again. Returns whether it was done.
    async fn check_policies(&self, run: RunId) -> bool {
        let checked = check_policies(&self.store, &self.checker, run);
        let outcome = tokio::select! {
            () = self.stop.cancelled() => return false,
            outcome = checked => outcome,
        };
        match outcome {
            Ok(()) => true,
            // Somebody else moved the run meanwhile.
            Err(StepError::Run(CommandError::Refused(refusal))) => {
                tracing::debug!(run.id = %run, reason = %refusal, "A policy result was no longer wanted");
                true
            }
            Err(error) => {
                failed(run, &error);
                false
            }
        }
    }
}

fn failed(run: RunId, error: &StepError) {
    metrics::counter!("stackship_workflow_step_failures_total").increment(1);
    tracing::error!(run.id = %run, error = %error, "A step of run `{run}` failed; the next sweep tries again");
}
