//! What is known of a doubtful apply. All of it was recorded; no sandbox is asked.

use serde::Serialize;
use stackship_domain::ids::{RunId, StateVersionId};
use stackship_domain::run::{DoubtReason, RecoveryResolution, StagedState, Status};
use stackship_domain::{Actor, Permission, Sha256Digest, Timestamp};
use stackship_projections::RunReview;
use stackship_projections::run_review::{RecoveryDecision, RecoveryReview};
use stackship_runner_protocol::{ApplyEnd, PhaseResult};
use stackship_store::attempts::{self, AttemptRow};
use stackship_store::states::{self, StateVersionRow};
use stackship_workflow::recovery::{self, RecoveryError};
use utoipa::ToSchema;

use crate::auth::{InRun, RunRead};
use crate::v1::runs::evidence::{PredecessorView, predecessor};
use crate::v1::runs::view::phases::AttemptView;
use crate::v1::schema;
use crate::{ApiError, App};

/// A run as an operator has to judge it.
#[derive(Serialize, ToSchema)]
pub(super) struct RecoveryEvidence {
    /// Which run.
    #[schema(value_type = String)]
    run: RunId,
    /// Where it stands.
    #[schema(schema_with = schema::status)]
    status: Status,
    /// Why nobody can say what the apply did; null when it never was in doubt.
    doubt: Option<DoubtView>,
    /// The try that applied.
    attempt: Option<AttemptView>,
    /// When `tofu apply` was about to start: before this nothing can have happened.
    #[schema(value_type = Option<String>, format = DateTime)]
    tofu_started_at: Option<Timestamp>,
    /// Where it ran and how isolated, as its runner reported it; null when no report came.
    #[schema(value_type = Option<Object>)]
    sandbox: Option<serde_json::Value>,
    /// The newest state that the apply left; it can be adopted.
    staged_state: Option<StateVersionView>,
    /// Whether an `errored.tfstate` was kept.
    has_errored_state: bool,
    /// The state that the plan was made against; null when there was none.
    predecessor_state: Option<PredecessorView>,
    /// The workspace's state now; null when there is none.
    workspace_state: Option<StateVersionView>,
    /// What can be decided.
    choices: Choices,
    /// What an operator decided.
    resolved: Option<ResolvedView>,
}

/// Why an apply is in doubt.
#[derive(Serialize, ToSchema)]
struct DoubtView {
    /// In one word.
    #[schema(schema_with = schema::doubt_reason)]
    reason: DoubtReason,
    /// In one sentence.
    detail: String,
    /// Since when.
    #[schema(schema_with = schema::time)]
    since: Timestamp,
}

/// A state version.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::v1::runs) struct StateVersionView {
    /// Which one.
    #[schema(value_type = String)]
    version: StateVersionId,
    /// Its serial.
    serial: i64,
    /// Its lineage.
    lineage: String,
    /// SHA-256 of its exact bytes.
    #[schema(value_type = Option<String>)]
    sha256: Option<Sha256Digest>,
}

/// What can be decided.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::v1::runs) struct Choices {
    /// The staged state becomes the workspace's state.
    pub(in crate::v1::runs) adopt: Choice,
    /// Nothing had changed.
    pub(in crate::v1::runs) no_change: Choice,
}

/// One decision.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::v1::runs) struct Choice {
    /// Whether the run and its workspace would take it now; the permissions are another question.
    pub(in crate::v1::runs) possible: bool,
    /// The code with which it would be refused now.
    refused_with: Option<String>,
    /// What it would do.
    effect: String,
    /// The permissions it takes.
    permissions: Vec<String>,
}

/// What an operator decided.
#[derive(Serialize, ToSchema)]
struct ResolvedView {
    /// How.
    #[schema(schema_with = resolution)]
    resolution: &'static str,
    /// Who.
    #[schema(value_type = String)]
    by: Actor,
    /// When.
    #[schema(schema_with = schema::time)]
    at: Timestamp,
    /// Why, in the person's words.
    reason: String,
}

const ADOPTED: &str = "adopt_emergency_state";
const NO_CHANGE: &str = "declare_no_change";

pub(in crate::v1::runs) fn resolution() -> utoipa::openapi::ObjectBuilder {
    schema::one_of([ADOPTED, NO_CHANGE])
}

/// The name of a resolution on this wire.
pub(in crate::v1::runs) const fn resolution_name(resolution: &RecoveryResolution) -> &'static str {
    match resolution {
        RecoveryResolution::AdoptEmergencyState { .. } => ADOPTED,
        RecoveryResolution::DeclareNoChange => NO_CHANGE,
    }
}

/// Everything that was recorded about the doubt of a run.
pub(super) async fn read(app: &App, may: &InRun<RunRead>) -> Result<RecoveryEvidence, ApiError> {
    let (organization, run) = (may.run.organization, may.run.id);
    let review = app.views.review(organization, run).await?;
    let mut review = review.ok_or(ApiError::Behind { run })?;
    let attempt = review.apply.attempts.pop();
    let rows = attempts::of_run(&app.store.pool, run).await?;
    let row = rows
        .into_iter()
        .find(|row| attempt.as_ref().is_some_and(|attempt| attempt.id == row.id));
    let head = states::current(&app.store, organization, may.workspace.id).await?;
    let staged = review.apply.emergency.take();
    let has_errored_state = staged
        .as_ref()
        .is_some_and(|kept| kept.errored_state_object.is_some());
    let staged = staged.and_then(|kept| kept.staged);
    let choices = choices(app, may, staged.as_ref(), head.as_ref()).await?;
    Ok(RecoveryEvidence {
        run,
        status: review.status,
        predecessor_state: planned_against(&review),
        resolved: review
            .recovery
            .as_mut()
            .and_then(|recovery| recovery.resolved.take())
            .map(Into::into),
        doubt: review.recovery.map(Into::into),
        attempt: attempt.map(Into::into),
        tofu_started_at: row.as_ref().and_then(|row| row.tofu_started_at),
        sandbox: row.and_then(sandbox),
        staged_state: staged.map(Into::into),
        has_errored_state,
        workspace_state: head.map(Into::into),
        choices,
    })
}

/// What can be decided about the doubt, and what each decision would do.
pub(in crate::v1::runs) async fn choices(
    app: &App,
    may: &InRun<RunRead>,
    staged: Option<&StagedState>,
    head: Option<&StateVersionRow>,
) -> Result<Choices, ApiError> {
    Ok(Choices {
        adopt: adopt(app, may, staged).await?,
        no_change: no_change(app, may, head).await?,
    })
}

pub(in crate::v1::runs) fn planned_against(review: &RunReview) -> Option<PredecessorView> {
    let plan = review.plan.record.as_ref()?;
    predecessor(&plan.predecessor)
}

/// Only an apply whose end a runner saw has one.
fn sandbox(row: AttemptRow) -> Option<serde_json::Value> {
    match serde_json::from_value(row.result?).ok()? {
        PhaseResult::Apply {
            end: ApplyEnd::Exited { sandbox, .. },
        } => Some(sandbox),
        PhaseResult::Apply {
            end: ApplyEnd::NotStarted { .. } | ApplyEnd::Killed { .. },
        }
        | PhaseResult::Plan { .. } => None,
    }
}

async fn adopt(
    app: &App,
    may: &InRun<RunRead>,
    staged: Option<&StagedState>,
) -> Result<Choice, ApiError> {
    let answer = recovery::could_adopt(&app.store, may.caller.actor(), may.run.id).await;
    let effect = match staged {
        Some(state) => format!(
            "State {} with serial {} becomes the workspace's state. The run ends as `recovered` and its \
             lock is released. The next plan shows what is missing.",
            state.version, state.serial
        ),
        None => "The apply left no state that could be adopted.".to_owned(),
    };
    let permissions = &[Permission::RunRecover, Permission::StateRecover];
    Choice::of(answer, effect, permissions)
}

async fn no_change(
    app: &App,
    may: &InRun<RunRead>,
    head: Option<&StateVersionRow>,
) -> Result<Choice, ApiError> {
    let by = may.caller.actor();
    let answer = recovery::could_declare_no_change(&app.store, by, may.run.id).await;
    let kept = match head {
        Some(state) => format!("The workspace keeps state {}", state.id),
        None => "The workspace stays without a state".to_owned(),
    };
    let effect = format!(
        "{kept}. The run ends as `recovered` and its lock is released. Whatever the apply has made is \
         not in the state: the next plan offers to make it again."
    );
    Choice::of(answer, effect, &[Permission::RunRecover])
}

impl Choice {
    /// A refusal is part of the answer; a failure is not.
    fn of(
        answer: Result<(), RecoveryError>,
        effect: String,
        permissions: &[Permission],
    ) -> Result<Self, ApiError> {
        let refused_with = match answer.map_err(ApiError::from) {
            Ok(()) => None,
            Err(refusal @ (ApiError::Run(_) | ApiError::Workspace(_) | ApiError::Recovery(_))) => {
                Some(refusal.code().to_owned())
            }
            Err(failure) => return Err(failure),
        };
        Ok(Self {
            possible: refused_with.is_none(),
            refused_with,
            effect,
            permissions: permissions.iter().map(ToString::to_string).collect(),
        })
    }
}

impl From<RecoveryReview> for DoubtView {
    fn from(recovery: RecoveryReview) -> Self {
        Self {
            reason: recovery.doubt.reason,
            detail: recovery.doubt.detail,
            since: recovery.since,
        }
    }
}

impl From<StagedState> for StateVersionView {
    fn from(state: StagedState) -> Self {
        Self {
            version: state.version,
            serial: state.serial,
            lineage: state.lineage,
            sha256: Some(state.digest),
        }
    }
}

impl From<StateVersionRow> for StateVersionView {
    fn from(state: StateVersionRow) -> Self {
        Self {
            version: state.id,
            serial: state.serial,
            lineage: state.lineage,
            sha256: state.sha256,
        }
    }
}

impl From<RecoveryDecision> for ResolvedView {
    fn from(decision: RecoveryDecision) -> Self {
        Self {
            resolution: resolution_name(&decision.resolution),
            by: decision.by,
            at: decision.at,
            reason: decision.reason,
        }
    }
}
