//! What planned, judged and applied the run, by name and version, and every attempt (S-REV-14). Of what
//! runners report only what is named here is passed on (S-REV-17).

use serde::Serialize;
use serde_json::Value;
use stackship_domain::Timestamp;
use stackship_domain::ids::{AttemptId, RunnerId};
use stackship_domain::run::Phase;
use stackship_projections::RunReview;
use stackship_projections::run_review::{AttemptReview, AttemptStatus};
use stackship_runner_protocol::{ApplyEnd, PhaseResult, PlanEnd};
use stackship_store::attempts::{AttemptRow, CloseCause};
use utoipa::ToSchema;

use super::known::Known;
use crate::v1::runs::view::phases::attempt_status;
use crate::v1::schema;

/// The longest name or version that is taken from a runner's report.
const REPORTED_CHARS_MAX: usize = 100;

/// What planned, judged and applied the run.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EvidenceFacts {
    /// The workflow that carried the run.
    workflow_id: Known<String>,
    /// Which definition of the workflow.
    workflow_definition: Known<String>,
    /// The build of the workflow.
    workflow_build: Known<String>,
    /// The pinned OpenTofu release.
    tofu_version: Known<String>,
    /// The release of the runner that planned.
    runner_release: Known<String>,
    /// The base profile of the sandbox that planned.
    sandbox_base_profile: Known<String>,
    /// The protocol that the runner spoke when it planned.
    runner_protocol: Known<String>,
    /// The policy engine and its version.
    policy_engine: Known<String>,
    /// Every attempt, in the order in which they were begun.
    attempts: Vec<AttemptFacts>,
}

/// One numbered try at a phase.
#[derive(Debug, Serialize, ToSchema)]
struct AttemptFacts {
    /// Its id.
    #[schema(value_type = String)]
    id: AttemptId,
    /// Its phase.
    #[schema(schema_with = phase_name)]
    phase: Phase,
    /// Counts from 1 within its phase.
    number: u32,
    /// Who leased it.
    #[schema(value_type = String)]
    runner: RunnerId,
    /// The sandbox's id in its runner's log; not recorded when OpenTofu did not come to an end in it.
    sandbox_id: Known<String>,
    /// The sandbox's name; not recorded when OpenTofu did not come to an end in it.
    sandbox_name: Known<String>,
    /// Where it was to execute.
    region: Known<String>,
    /// Where it stands.
    #[schema(schema_with = attempt_status)]
    status: AttemptStatus,
    /// How it ended; not recorded as long as it has not.
    classification: Known<Classification>,
    /// When it began.
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Timestamp>,
    /// When it ended; null before.
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Timestamp>,
}

/// How an attempt ended, as it was reported or found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Classification {
    /// A plan was written.
    Planned,
    /// No plan was written.
    PlanFailed,
    /// The plan was stopped because somebody asked for it.
    PlanStopped,
    /// OpenTofu ended its apply with success.
    ApplySucceeded,
    /// OpenTofu ended its apply with an error.
    ApplyFailed,
    /// OpenTofu was interrupted while it applied.
    ApplyInterrupted,
    /// OpenTofu was never started.
    ApplyNotStarted,
    /// The apply was killed, or ended by a limit.
    ApplyKilled,
    /// The sandbox vanished.
    SandboxLost,
    /// The runner stopped renewing its lease.
    LeaseExpired,
    /// The runner gave it back before it did anything.
    HandedBack,
    /// The run ended before anybody took it.
    Withdrawn,
}

fn phase_name() -> utoipa::openapi::ObjectBuilder {
    schema::one_of(Phase::ALL.iter().map(|phase| phase.as_str()))
}

impl EvidenceFacts {
    pub(super) fn of(review: &RunReview, rows: &[AttemptRow]) -> Self {
        let sandbox = review.plan.record.as_ref().map(|plan| &plan.sandbox);
        let reported = |name| sandbox.map_or(Known::NotRecorded, |sandbox| reported(sandbox, name));
        let plans = review
            .plan
            .attempts
            .iter()
            .map(|tried| (Phase::Plan, tried));
        let applies = review
            .apply
            .attempts
            .iter()
            .map(|tried| (Phase::Apply, tried));
        Self {
            workflow_id: Known::NotRecorded,
            workflow_definition: Known::NotRecorded,
            workflow_build: Known::NotRecorded,
            tofu_version: Some(review.facts.pins.tofu_version.to_string()).into(),
            runner_release: reported("release"),
            sandbox_base_profile: reported("base_profile"),
            runner_protocol: reported("protocol"),
            policy_engine: review
                .policy
                .result
                .as_ref()
                .map(|result| result.engine.clone())
                .into(),
            attempts: plans
                .chain(applies)
                .map(|(phase, tried)| AttemptFacts::of(phase, tried, rows))
                .collect(),
        }
    }
}

/// One text of a report whose form nobody has promised.
fn reported(report: &Value, name: &str) -> Known<String> {
    match report.get(name) {
        None | Some(Value::Null) => Known::NotRecorded,
        Some(Value::String(text)) if text.chars().count() <= REPORTED_CHARS_MAX => {
            Some(text.clone()).into()
        }
        Some(_) => Known::Unavailable,
    }
}

impl AttemptFacts {
    fn of(phase: Phase, tried: &AttemptReview, rows: &[AttemptRow]) -> Self {
        let row = rows.iter().find(|row| row.id == tried.id);
        let result = row.and_then(|row| row.result.clone());
        let result = result.map(serde_json::from_value::<PhaseResult>);
        let sandbox = |name| match &result {
            None => Known::NotRecorded,
            Some(Err(_)) => Known::Unavailable,
            Some(Ok(result)) => {
                sandbox(result).map_or(Known::NotRecorded, |told| reported(told, name))
            }
        };
        Self {
            id: tried.id,
            phase,
            number: tried.number,
            runner: tried.runner,
            sandbox_id: sandbox("id"),
            sandbox_name: sandbox("name"),
            region: row.map(|row| row.offer.region.clone()).into(),
            status: tried.status,
            classification: row.map_or(Known::NotRecorded, |row| {
                classification(row.close_cause, result.as_ref())
            }),
            started_at: tried.times.started_at,
            ended_at: tried.times.ended_at,
        }
    }
}

/// What a runner told of the sandbox in which OpenTofu came to an end.
fn sandbox(result: &PhaseResult) -> Option<&Value> {
    match result {
        PhaseResult::Plan {
            end: PlanEnd::Planned { sandbox, .. },
        }
        | PhaseResult::Apply {
            end: ApplyEnd::Exited { sandbox, .. },
        } => Some(sandbox),
        PhaseResult::Plan { .. } | PhaseResult::Apply { .. } => None,
    }
}

fn classification(
    cause: Option<CloseCause>,
    result: Option<&Result<PhaseResult, serde_json::Error>>,
) -> Known<Classification> {
    let closed = match (cause, result) {
        (None, _) | (Some(CloseCause::Result), None) => return Known::NotRecorded,
        (Some(CloseCause::Result), Some(Err(_))) => return Known::Unavailable,
        (Some(CloseCause::Result), Some(Ok(result))) => of_result(result),
        (Some(CloseCause::LeaseExpired), _) => Classification::LeaseExpired,
        (Some(CloseCause::HandedBack), _) => Classification::HandedBack,
        (Some(CloseCause::Withdrawn), _) => Classification::Withdrawn,
    };
    Some(closed).into()
}

const fn of_result(result: &PhaseResult) -> Classification {
    match result {
        PhaseResult::Plan { end } => match end {
            PlanEnd::Planned { .. } => Classification::Planned,
            PlanEnd::Failed { .. } => Classification::PlanFailed,
            PlanEnd::Stopped => Classification::PlanStopped,
            PlanEnd::SandboxLost { .. } => Classification::SandboxLost,
        },
        PhaseResult::Apply { end } => match end {
            ApplyEnd::Exited {
                interrupted: true, ..
            } => Classification::ApplyInterrupted,
            ApplyEnd::Exited { exit_code: 0, .. } => Classification::ApplySucceeded,
            ApplyEnd::Exited { .. } => Classification::ApplyFailed,
            ApplyEnd::NotStarted { .. } => Classification::ApplyNotStarted,
            ApplyEnd::Killed { .. } => Classification::ApplyKilled,
        },
    }
}
