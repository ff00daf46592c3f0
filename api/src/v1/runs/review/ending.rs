//! How the run ended: one sentence, its code, and what the failed phase wrote last (S-REV-11).

use serde::Serialize;
use stackship_domain::Timestamp;
use stackship_domain::ids::RunId;
use stackship_domain::run::{Status, TerminalReason};
use stackship_projections::RunReview;
use stackship_store::phase_logs::LogPhase;
use utoipa::ToSchema;

use super::known::Known;
use super::people::{Names, Person};
use crate::v1::schema;

/// How the run ended.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Ended {
    /// The code behind the sentence.
    #[schema(schema_with = schema::reason)]
    pub(super) reason: TerminalReason,
    /// One sentence for a person.
    sentence: &'static str,
    /// One sentence of detail, where there is one.
    detail: Option<String>,
    /// Who caused it.
    by: Person,
    /// Why, in a person's words.
    words: Option<String>,
    /// The run that took this run's place.
    #[schema(value_type = Option<String>)]
    superseded_by: Option<RunId>,
    /// When.
    #[schema(schema_with = schema::time)]
    at: Timestamp,
    /// The last lines of the phase that failed, at most 8; not recorded for every other end.
    log_tail: Known<LogTail>,
}

/// The last lines of a log.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(super) struct LogTail {
    /// Whose log it is.
    #[schema(schema_with = log_name)]
    pub(super) log: &'static str,
    /// The lines, as they stand in the log.
    pub(super) lines: Vec<String>,
}

fn log_name() -> utoipa::openapi::ObjectBuilder {
    schema::one_of([LogPhase::Plan, LogPhase::Apply].map(LogPhase::as_str))
}

impl Ended {
    pub(super) fn of(review: &RunReview, names: &Names, tail: Known<LogTail>) -> Option<Self> {
        let end = review.ended.as_ref()?;
        Some(Self {
            reason: end.reason,
            sentence: end.reason.sentence(),
            detail: end.detail.clone(),
            by: names.person(end.by),
            words: end.words.clone(),
            superseded_by: end.superseded_by,
            at: end.at,
            log_tail: tail,
        })
    }
}

/// The phase whose failure ended the run; `None` when no phase failed.
pub(super) fn failed_phase(review: &RunReview) -> Option<LogPhase> {
    let end = review
        .ended
        .as_ref()
        .filter(|_| review.status == Status::Failed)?;
    match end.reason {
        TerminalReason::PlanFailed
        | TerminalReason::PlanRefused
        | TerminalReason::PlanLimitExceeded
        | TerminalReason::SandboxUnavailable
        | TerminalReason::PlanAttemptsExhausted => Some(LogPhase::Plan),
        TerminalReason::ApplyRefused | TerminalReason::ApplyFailed => Some(LogPhase::Apply),
        TerminalReason::PolicyDenied
        | TerminalReason::PolicyError
        | TerminalReason::Applied
        | TerminalReason::NoChanges
        | TerminalReason::SpeculativeFinished
        | TerminalReason::DiscardedByPerson
        | TerminalReason::ApprovalExpired
        | TerminalReason::PolicyOverrideExpired
        | TerminalReason::CanceledByPerson
        | TerminalReason::Superseded
        | TerminalReason::PlanCredentialsRequired
        | TerminalReason::RecoveredStateAdopted
        | TerminalReason::RecoveredNoChange => None,
    }
}
