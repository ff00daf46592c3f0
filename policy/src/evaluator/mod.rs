//! The parent's side: starts the limited process, and makes a result of whatever happens to it.

mod judge;
mod process;
mod set;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::helper::CPU_SECONDS_MAX;
use crate::wire::{REQUEST_BYTES_MAX, Reply, Request, Source, Task};
use crate::{Bundle, BundleError, Context, ErrorCode, Evaluation};

pub use process::NotStarted;
pub use set::AttachedBundle;

use judge::{Failed, claim};
use process::Ended;
use set::Set;

/// Most limited processes at once; each may use a gibibyte and a processor.
pub const EVALUATIONS_AT_ONCE_MAX: usize = 2;
/// Most uploads that are checked at once: a place stays free for the runs.
pub const CHECKS_AT_ONCE_MAX: usize = 1;
/// Most uploads that wait for their check.
pub const CHECKS_WAITING_MAX: usize = 16;
/// How long the policies of one run may take together.
const EVALUATION_MAX: Duration = Duration::from_secs(5);
/// How long the limited process may live.
const WALL_MAX: Duration = Duration::from_secs(20);

/// How much one evaluation may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Processor time, in whole seconds; at most [`CPU_SECONDS_MAX`].
    pub cpu_seconds: u64,
    /// How long the policies may take together. The engine looks at the clock between its steps, so
    /// one long step can exceed this.
    pub evaluation: Duration,
    /// How long the limited process may live.
    pub wall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpu_seconds: CPU_SECONDS_MAX,
            evaluation: EVALUATION_MAX,
            wall: WALL_MAX,
        }
    }
}

/// Evaluates policies, each time in a process of its own. Cheap to clone; clones share the bound on
/// processes at once.
#[derive(Debug, Clone)]
pub struct Evaluator {
    program: Arc<PathBuf>,
    limits: Limits,
    places: Arc<Semaphore>,
    checks: Arc<Checks>,
}

/// Uploads wait in a line of their own, which has an end.
#[derive(Debug)]
struct Checks {
    line: Semaphore,
    at_work: Semaphore,
}

impl Checks {
    fn new() -> Self {
        Self {
            line: Semaphore::new(CHECKS_WAITING_MAX + CHECKS_AT_ONCE_MAX),
            at_work: Semaphore::new(CHECKS_AT_ONCE_MAX),
        }
    }
}

impl Evaluator {
    /// An evaluator that starts `program`, whose `main` calls
    /// [`run_helper_if_asked`](crate::run_helper_if_asked) first.
    pub fn new(program: PathBuf) -> Self {
        Self::with_limits(program, Limits::default())
    }

    /// The same with other limits.
    pub fn with_limits(program: PathBuf, limits: Limits) -> Self {
        Self {
            program: Arc::new(program),
            limits,
            places: Arc::new(Semaphore::new(EVALUATIONS_AT_ONCE_MAX)),
            checks: Arc::new(Checks::new()),
        }
    }

    /// Whether every policy of a bundle, disabled ones included, loads and can be evaluated on an
    /// empty plan within the limits.
    pub async fn validate(&self, bundle: &Bundle) -> Result<(), BundleError> {
        let _in_line = self
            .checks
            .line
            .try_acquire()
            .map_err(|_| NotStarted::busy())?;
        let at_work = self.checks.at_work.acquire().await;
        let _at_work = at_work.map_err(|_| NotStarted::closed())?;
        let policies = &bundle.manifest().policies;
        let source = |policy| Source::of(0, bundle, policy);
        let request = self.request(
            Task::Validate,
            vec![bundle.data().map(str::to_owned)],
            policies.iter().map(source).collect(),
        );
        let failed = match self.ask(&request, &[]).await? {
            Ok(Reply::Valid {}) => return Ok(()),
            Ok(_) => Failed::malformed(None),
            Err(failed) => failed,
        };
        let policy = failed.policy.and_then(|position| policies.get(position));
        let file = policy.map_or("manifest.json", |policy| policy.file.as_str());
        let file = file.to_owned();
        Err(match failed.code {
            ErrorCode::PolicyError => BundleError::Policy {
                file,
                detail: failed.detail,
            },
            ErrorCode::PolicyTimeout
            | ErrorCode::PolicyCrashed
            | ErrorCode::PolicyInput
            | ErrorCode::PolicyBundle
            | ErrorCode::PolicyUnavailable => BundleError::TooCostly {
                file,
                detail: failed.detail,
            },
        })
    }

    /// Evaluates the attached bundles over the redacted policy input.
    ///
    /// Whatever the policies do is an evaluation. An error means that none of them was started: ask
    /// again later.
    pub async fn evaluate(
        &self,
        attached: &[AttachedBundle],
        input: &[u8],
        context: Context,
    ) -> Result<Evaluation, NotStarted> {
        let set = Set::new(attached);
        if let Err(failed) = set.check(input, &context) {
            return Ok(set.failed(context, &failed));
        }
        let sources = set.sources();
        if sources.is_empty() {
            return Ok(set.evaluated(context, &[], &[]));
        }
        let request = self.request(Task::Evaluate, set.data(), sources);
        Ok(match self.ask(&request, input).await? {
            Ok(Reply::Evaluated { counts, findings }) => match set.accepts(&counts, &findings) {
                Ok(()) => set.evaluated(context, &counts, &findings),
                Err(failed) => set.failed(context, &failed),
            },
            Ok(_) => set.failed(context, &Failed::malformed(None)),
            Err(failed) => set.failed(context, &failed),
        })
    }

    fn request(&self, task: Task, data: Vec<Option<String>>, policies: Vec<Source>) -> Request {
        let evaluation_ms = self.limits.evaluation.as_millis();
        Request {
            task,
            evaluation_ms: u64::try_from(evaluation_ms).unwrap_or(u64::MAX),
            data,
            policies,
        }
    }

    async fn ask(
        &self,
        request: &Request,
        input: &[u8],
    ) -> Result<Result<Reply, Failed>, NotStarted> {
        let bytes = serde_json::to_vec(request).expect("a request has only texts and numbers");
        if bytes.len() > REQUEST_BYTES_MAX {
            return Ok(Err(Failed::error(
                "the attached bundles are too large together",
            )));
        }
        let _place = self
            .places
            .acquire()
            .await
            .map_err(|_| NotStarted::closed())?;
        let ended: Ended = process::run(&self.program, &self.limits, &bytes, input).await?;
        Ok(claim(&ended, request.policies.len()))
    }
}

impl Source {
    fn of(position: usize, bundle: &Bundle, policy: &crate::bundle::Policy) -> Self {
        let text = bundle.file(&policy.file);
        Self {
            bundle: position,
            package: policy.package(),
            file: policy.file.clone(),
            text: text
                .expect("a bundle has the file of each of its policies")
                .to_owned(),
        }
    }
}
