//! The policy phase: the plan of a run is judged by the policies that the run has pinned.
//!
//! Nothing that goes wrong with a policy, a bundle or the plan's redacted form is a pass: it is a result
//! like any other, with the outcome `error` and one finding that says why. Only a database or a store
//! of objects that does not answer leaves the question open, and then it is asked again.

mod input;
mod report;

use std::sync::Arc;
use std::time::{Duration, Instant};

use stackship_domain::Timestamp;
use stackship_domain::ids::RunId;
use stackship_domain::run::{Facts, PinnedPolicySet, PlanRecord, PolicyErrorCode, PolicyResult};
use stackship_policy::{
    AttachedBundle, Bundle, Context, EVALUATIONS_AT_ONCE_MAX, Evaluation, Evaluator,
    RESULT_BYTES_MAX,
};
use stackship_store::objects::{NewObject, ObjectKind};
use stackship_store::phase_logs::{self, AppendOutcome, Chunk, LogPhase};
use stackship_store::records::policy_sets;
use stackship_store::{Store, StoreError};
use tokio::sync::Semaphore;

use crate::StepError;

/// The most evaluations of one run that its log tells of: each but the last was lost with its server.
const EVALUATIONS_LOGGED_MAX: u32 = 16;
/// What stands before every one of them but the first.
const AGAIN: &str = "\nEvaluated again: the server was lost before the result was recorded.\n";

/// How long an evaluation that cannot even be started is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How many times at most.
    pub starts_max: u32,
    /// How long after the first try the second one comes; each further pause is twice as long.
    pub first_pause: Duration,
    /// The longest pause.
    pub pause_max: Duration,
}

impl Default for Patience {
    /// A minute and a half on a machine that has no room for one more process.
    fn default() -> Self {
        Self {
            starts_max: 8,
            first_pause: Duration::from_secs(1),
            pause_max: Duration::from_secs(30),
        }
    }
}

/// Judges plans. Cheap to clone; clones share the bound on evaluations at once, which also bounds how
/// many policy inputs are held in memory.
#[derive(Debug, Clone)]
pub struct Checker {
    evaluator: Evaluator,
    places: Arc<Semaphore>,
    patience: Patience,
}

impl Checker {
    /// A checker with the usual patience.
    pub fn new(evaluator: Evaluator) -> Self {
        Self::with_patience(evaluator, Patience::default())
    }

    /// The same with another patience.
    pub fn with_patience(evaluator: Evaluator, patience: Patience) -> Self {
        Self {
            evaluator,
            places: Arc::new(Semaphore::new(EVALUATIONS_AT_ONCE_MAX)),
            patience,
        }
    }

    /// Judges the plan of a run by the policies it has pinned, stores the result, and tells of it in the
    /// phase's log. Nothing is recorded yet. `evaluated_at` is what policies take for now: the same in
    /// every evaluation of a run, so that one that is repeated says the same.
    pub(crate) async fn judge(
        &self,
        store: &Store,
        subject: &Subject<'_>,
        evaluated_at: Timestamp,
    ) -> Result<PolicyResult, StepError> {
        let _place = self
            .places
            .acquire()
            .await
            .expect("the places are never closed");
        let began = Instant::now();
        let evaluation = self.evaluation(store, subject, evaluated_at).await?;
        let result = stored(store, subject, &evaluation).await?;
        let text = report::text(&evaluation, subject.pinned(), began.elapsed());
        write_log(store, subject.run, &text).await?;
        Ok(result)
    }

    async fn evaluation(
        &self,
        store: &Store,
        subject: &Subject<'_>,
        evaluated_at: Timestamp,
    ) -> Result<Evaluation, StepError> {
        let mut context = Context {
            run: subject.run,
            plan: subject.plan.plan,
            redacted_plan: subject.plan.policy_input,
            policy_input: None,
            evaluated_at,
        };
        let asked = async {
            let attached = bundles(store, subject).await?;
            let input = input::read(store, subject, &attached, evaluated_at).await?;
            context.policy_input = Some(stackship_domain::Sha256Digest::of(&input));
            self.asked(&attached, &input, context).await
        };
        match asked.await {
            Ok(evaluation) => Ok(evaluation),
            Err(Stop::Step(error)) => Err(error),
            Err(Stop::Unusable { code, detail }) => {
                let bundles: Vec<_> = subject.pinned().iter().map(|set| set.bundle).collect();
                Ok(Evaluation::not_asked(context, &bundles, code, &detail))
            }
        }
    }

    /// Asks the policies, again and again while the machine has no room for one more process.
    async fn asked(
        &self,
        attached: &[AttachedBundle],
        input: &[u8],
        context: Context,
    ) -> Result<Evaluation, Stop> {
        let mut pause = self.patience.first_pause;
        let mut starts = 1;
        loop {
            match self.evaluator.evaluate(attached, input, context).await {
                Ok(evaluation) => return Ok(evaluation),
                Err(error) if starts >= self.patience.starts_max => {
                    let detail = format!("{error} (tried {starts} times)");
                    return Err(Stop::unusable(PolicyErrorCode::PolicyUnavailable, detail));
                }
                Err(error) => {
                    tracing::warn!(run.id = %context.run, error = %error, starts, "Policies could not be evaluated yet");
                }
            }
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2).min(self.patience.pause_max);
            starts += 1;
        }
    }
}

/// What is judged.
pub(crate) struct Subject<'a> {
    pub(crate) run: RunId,
    pub(crate) facts: &'a Facts,
    pub(crate) plan: &'a PlanRecord,
}

impl Subject<'_> {
    fn pinned(&self) -> &[PinnedPolicySet] {
        self.facts.pins.policies.sets()
    }
}

/// Why policies are not asked.
enum Stop {
    /// They cannot be, and that is the result.
    Unusable {
        code: PolicyErrorCode,
        detail: String,
    },
    /// Something does not answer; ask again later.
    Step(StepError),
}

impl Stop {
    fn unusable(code: PolicyErrorCode, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self::Unusable { code, detail }
    }

    /// What is stored and cannot be read is a result; what does not answer is not.
    fn of_store(error: StoreError, code: PolicyErrorCode, what: &str) -> Self {
        match error {
            StoreError::Object(_) | StoreError::Inconsistent { .. } => {
                tracing::error!(error = %error, what, "What a policy evaluation needs cannot be read");
                Self::unusable(code, format!("{what} cannot be read"))
            }
            error => Self::Step(error.into()),
        }
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Step(error.into())
    }
}

/// The pinned bundles, read back. Whether each is the pinned one is looked at by the evaluator.
async fn bundles(store: &Store, subject: &Subject<'_>) -> Result<Vec<AttachedBundle>, Stop> {
    let code = PolicyErrorCode::PolicyBundle;
    let mut attached = Vec::new();
    for pinned in subject.pinned() {
        let what = format!(
            "version {} of the policy set `{}`",
            pinned.version, pinned.name
        );
        let bytes = policy_sets::content(store, subject.facts.organization, pinned.object)
            .await
            .map_err(|error| Stop::of_store(error, code, &what))?;
        let bundle = Bundle::from_stored(&bytes)
            .map_err(|error| Stop::unusable(code, format!("{what}: {error}")))?;
        if bundle.digest() != pinned.bundle {
            return Err(Stop::unusable(
                code,
                format!("{what} is not what was pinned"),
            ));
        }
        attached.push(AttachedBundle {
            pinned: pinned.bundle,
            bundle,
        });
    }
    Ok(attached)
}

async fn stored(
    store: &Store,
    subject: &Subject<'_>,
    evaluation: &Evaluation,
) -> Result<PolicyResult, StepError> {
    let object = NewObject {
        organization: subject.facts.organization,
        workspace: Some(subject.facts.workspace),
        kind: ObjectKind::PolicyResult,
        bytes_max: RESULT_BYTES_MAX as u64,
    };
    let stored = store
        .objects
        .put_bytes(object, &evaluation.to_bytes())
        .await?;
    Ok(PolicyResult {
        outcome: evaluation.outcome,
        digest: stored.sha256,
        bundle: evaluation.bundle_digest,
        engine: evaluation.engine.clone(),
        features: evaluation.features.clone(),
        policies: evaluation.policies_count(),
        denying: evaluation.denying(),
        denials: evaluation.denials(),
        warnings: evaluation.warnings(),
        error_code: evaluation.error_code,
        object: stored.id,
    })
}

/// Adds what one evaluation found to the log. One that is repeated does not erase what an earlier one
/// said: that may have been read already.
async fn write_log(store: &Store, run: RunId, text: &str) -> Result<(), StoreError> {
    for attempt_number in 1..=EVALUATIONS_LOGGED_MAX {
        let again = if attempt_number == 1 { "" } else { AGAIN };
        let text = format!("{again}{text}");
        let chunk = Chunk {
            attempt_number,
            sequence: 0,
            bytes: text.as_bytes(),
        };
        match phase_logs::append(store, run, LogPhase::Policy, chunk).await? {
            AppendOutcome::Stored { .. } | AppendOutcome::Full => return Ok(()),
            AppendOutcome::Repeated | AppendOutcome::Gap { .. } => {}
        }
    }
    tracing::warn!(run.id = %run, "The log of a policy check tells of no more evaluations");
    Ok(())
}
