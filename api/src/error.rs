//! One error for the edges, and the one place that gives each its HTTP status and its stable code.
//!
//! A code names what was wrong, the message names the field and what to do. A failure of ours tells
//! nothing but that it happened; its cause goes to the log, once, from here.

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::{Value, json};
use stackship_domain::ids::RunId;
use stackship_domain::{run, workspace};
use stackship_projections::{PageError, ProjectionError};
use stackship_store::log::CommandError;
use stackship_store::objects::ObjectError;
use stackship_store::records::passwords::{FAILURE_WINDOW, ProveError};
use stackship_store::states::RestoreError;
use stackship_store::{StoreError, Violation};
use stackship_workflow::StepError;
use stackship_workflow::create::CreateError;
use stackship_workflow::recovery::RecoveryError;
use stackship_workflow::rollback::RollbackError;

use crate::auth::Denied;
use crate::reading;

/// When it makes sense to try again where too many requests are at hand: they take moments.
const CROWDED_SECONDS: u64 = 5;

/// Why a request was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No route has this path.
    #[error("there is no route `{path}`")]
    NoSuchRoute {
        /// The path.
        path: String,
    },
    /// The route does not answer to this method.
    #[error("this route does not answer to this method")]
    NoSuchMethod,
    /// The caller does not get through.
    #[error(transparent)]
    Denied(Denied),
    /// The request does not say what it must, or says too much.
    #[error("{message}")]
    Invalid {
        /// 400 for what cannot be read, 413 for too much, 422 for what is read and refused.
        status: StatusCode,
        /// The stable code.
        code: &'static str,
        /// The field at fault; empty when it is the whole.
        field: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// The rules of runs say no.
    #[error(transparent)]
    Run(#[from] run::Refusal),
    /// The rules of workspaces say no.
    #[error(transparent)]
    Workspace(#[from] workspace::Refusal),
    /// A run was not created.
    #[error(transparent)]
    Create(CreateError),
    /// A doubt was not resolved.
    #[error(transparent)]
    Recovery(RecoveryError),
    /// A repeated request was carried out, and its answer is not there to be repeated.
    #[error(
        "this request was carried out, but its answer is not kept; `details.done` says what it did"
    )]
    CarriedOut {
        /// What the request told of itself.
        done: Value,
    },
    /// A named request came as far as being carried out, which was done before. Who knows what came of
    /// it answers in place of this.
    #[error("this request was carried out before")]
    Repeated,
    /// The database says no.
    #[error(transparent)]
    Violated(Violation),
    /// The password was not right, or was tried too often.
    #[error(transparent)]
    Prove(ProveError),
    /// Others kept being faster.
    #[error("too many others change this at the same time; try again")]
    Contended,
    /// The list's cursor is not one of its own.
    #[error("`cursor` does not belong to this list; begin again without one")]
    Cursor,
    /// What was asked for is done, but cannot be shown yet.
    #[error("`{run}` is there, but cannot be shown yet; read it again in a moment")]
    Behind {
        /// The run.
        run: RunId,
    },
    /// The run has no plan-diff yet, or will never have one.
    #[error("this run has no plan-diff: its plan was not recorded, or not yet")]
    NoPlanChanges,
    /// The run's policies have not been evaluated, or not yet.
    #[error("this run has no policy result: its policies were not evaluated, or not yet")]
    NoPolicyResult,
    /// The database does not answer.
    #[error("the service is not available at the moment; try again")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A failure of ours.
    #[error("something failed on our side; quote the request id when you report it")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What an error looks like from outside, before an edge puts it in its own shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: StatusCode,
    /// The stable code.
    pub code: &'static str,
    /// For people: what is wrong and what to do.
    pub message: String,
    /// For programs: what the message is about.
    pub details: Value,
    /// After how many seconds it may be tried again, of what passes by itself.
    pub retry_after: Option<u64>,
}

impl ApiError {
    /// A field of a request that is understood and refused.
    pub fn refused(code: &'static str, field: &str, message: impl Into<String>) -> Self {
        Self::Invalid {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            code,
            field: field.to_owned(),
            message: message.into(),
        }
    }

    /// A part of a request that cannot be read.
    pub fn unreadable(code: &'static str, field: &str, message: impl Into<String>) -> Self {
        Self::Invalid {
            status: StatusCode::BAD_REQUEST,
            code,
            field: field.to_owned(),
            message: message.into(),
        }
    }

    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        self.status().1
    }

    /// The status and the code.
    fn status(&self) -> (StatusCode, &'static str) {
        match self {
            Self::NoSuchRoute { .. } => (StatusCode::NOT_FOUND, "ROUTE_NOT_FOUND"),
            Self::NoSuchMethod => (StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED"),
            Self::Denied(denied) => denied_status(denied),
            Self::Invalid { status, code, .. } => (*status, code),
            Self::Run(refusal) => run_status(refusal),
            Self::Workspace(refusal) => workspace_status(refusal),
            Self::Create(error) => create_status(error),
            Self::Recovery(error) => recovery_status(error),
            Self::CarriedOut { .. } => (StatusCode::CONFLICT, "IDEMPOTENCY_ANSWER_LOST"),
            Self::Repeated => (StatusCode::CONFLICT, "IDEMPOTENCY_KEY_USED"),
            Self::Violated(violation) => violation_status(violation),
            Self::Prove(ProveError::Wrong) => (StatusCode::FORBIDDEN, "PASSWORD_WRONG"),
            Self::Prove(ProveError::TooManyTries) => {
                (StatusCode::TOO_MANY_REQUESTS, "PASSWORD_TRIES")
            }
            Self::Contended => (StatusCode::CONFLICT, "CONTENDED"),
            Self::Cursor => (StatusCode::BAD_REQUEST, "RUN_LIST_CURSOR_INVALID"),
            Self::Behind { .. } => (StatusCode::SERVICE_UNAVAILABLE, "READ_MODELS_BEHIND"),
            Self::NoPlanChanges => (StatusCode::NOT_FOUND, "PLAN_CHANGES_NOT_RECORDED"),
            Self::NoPolicyResult => (StatusCode::NOT_FOUND, "POLICY_RESULT_NOT_RECORDED"),
            Self::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
            Self::Prove(ProveError::Store(_)) | Self::Internal(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL")
            }
        }
    }

    /// What it looks like from outside. Failures of ours go to the log from here.
    pub fn answer(&self) -> Answer {
        let (status, code) = self.status();
        if let Self::Unavailable(cause) | Self::Internal(cause) = self {
            tracing::error!(error = %cause, error.code = code, "A request failed");
        }
        metrics::counter!("stackship_api_errors_total", "code" => code).increment(1);
        Answer {
            status,
            code,
            message: self.to_string(),
            details: self.details(),
            retry_after: self.retry_after(),
        }
    }

    /// After how many seconds it may be tried again, of what passes by itself.
    fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Denied(Denied::Crowded) => Some(CROWDED_SECONDS),
            Self::Prove(ProveError::TooManyTries) => Some(FAILURE_WINDOW.as_secs()),
            _ => None,
        }
    }

    fn details(&self) -> Value {
        match self {
            Self::Invalid { field, .. } if field.is_empty() => json!({}),
            Self::Invalid { field, .. } => json!({"field": field}),
            Self::Denied(Denied::Forbidden { permission }) => {
                json!({"permission": permission.as_str()})
            }
            Self::CarriedOut { done } => json!({"done": done}),
            Self::Run(run::Refusal::WrongStatus { status, .. }) => json!({"status": status}),
            Self::Run(run::Refusal::StaleEvidence { part }) => json!({"part": part}),
            Self::Run(run::Refusal::AlreadyApproved { by }) => json!({"by": by}),
            Self::Workspace(workspace::Refusal::Locked { holder, reason }) => {
                json!({"holder": holder, "reason": reason})
            }
            Self::Workspace(workspace::Refusal::NotYours { holder }) => json!({"holder": holder}),
            Self::Behind { run }
            | Self::Workspace(workspace::Refusal::HeldByRun { run })
            | Self::Create(CreateError::ConfigurationUsed { run }) => json!({"run": run}),
            Self::Create(CreateError::InvalidVariable { key, .. }) => {
                json!({"field": "variables", "key": key})
            }
            Self::Create(CreateError::InvalidOption { field, .. })
            | Self::Violated(Violation::Taken { field }) => json!({"field": field}),
            Self::Create(CreateError::AutoApply) => json!({"field": "auto_apply"}),
            Self::Create(CreateError::Destroy) => json!({"field": "is_destroy"}),
            Self::Create(CreateError::Message) => json!({"field": "message"}),
            Self::Create(CreateError::GitRef) => json!({"field": "git_ref"}),
            Self::Create(CreateError::NotUploaded | CreateError::SpeculativeOnly) => {
                json!({"field": "configuration_version"})
            }
            _ => json!({}),
        }
    }
}

fn denied_status(denied: &Denied) -> (StatusCode, &'static str) {
    match denied {
        Denied::Unauthenticated => (StatusCode::UNAUTHORIZED, "UNAUTHENTICATED"),
        Denied::RunToken => (StatusCode::FORBIDDEN, "RUN_TOKEN_REFUSED"),
        Denied::NotFound { .. } => (StatusCode::NOT_FOUND, "NOT_FOUND"),
        Denied::Forbidden { .. } => (StatusCode::FORBIDDEN, "PERMISSION_MISSING"),
        Denied::StepUp => (StatusCode::FORBIDDEN, "STEP_UP_REQUIRED"),
        Denied::Crowded => (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_AT_ONCE"),
        Denied::Store(_) => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
    }
}

fn run_status(refusal: &run::Refusal) -> (StatusCode, &'static str) {
    use run::Refusal;
    match refusal {
        Refusal::NoSuchRun => (StatusCode::NOT_FOUND, "NOT_FOUND"),
        Refusal::AlreadyCreated => (StatusCode::CONFLICT, "RUN_EXISTS"),
        Refusal::AutoApply => (StatusCode::UNPROCESSABLE_ENTITY, "AUTO_APPLY_UNSUPPORTED"),
        Refusal::DestroyMode => (StatusCode::UNPROCESSABLE_ENTITY, "DESTROY_UNSUPPORTED"),
        Refusal::WrongStatus { .. } => (StatusCode::CONFLICT, "RUN_STATUS_CONFLICT"),
        Refusal::StaleAttempt => (StatusCode::CONFLICT, "RUN_ATTEMPT_STALE"),
        Refusal::StaleFence { .. } => (StatusCode::CONFLICT, "WORKSPACE_FENCE_STALE"),
        Refusal::LockNotHeld => (StatusCode::CONFLICT, "RUN_LOCK_NOT_HELD"),
        Refusal::StaleEvidence { .. } => (StatusCode::CONFLICT, "RUN_EVIDENCE_STALE"),
        Refusal::Speculative => (StatusCode::CONFLICT, "RUN_SPECULATIVE"),
        Refusal::ApprovalExpired => (StatusCode::CONFLICT, "RUN_APPROVAL_EXPIRED"),
        Refusal::ApprovalNotExpired => (StatusCode::CONFLICT, "RUN_APPROVAL_NOT_EXPIRED"),
        Refusal::AlreadyApproved { .. } => (StatusCode::CONFLICT, "RUN_ALREADY_APPROVED"),
        Refusal::OtherPolicies => (StatusCode::CONFLICT, "RUN_POLICIES_OTHER"),
        Refusal::StalePolicyResult => (StatusCode::CONFLICT, "POLICY_RESULT_STALE"),
        Refusal::OverrideExpired => (StatusCode::CONFLICT, "POLICY_OVERRIDE_EXPIRED"),
        Refusal::OverrideTime => (StatusCode::UNPROCESSABLE_ENTITY, "POLICY_OVERRIDE_TIME"),
        Refusal::PersonRequired { .. } => (StatusCode::FORBIDDEN, "PERSON_REQUIRED"),
        Refusal::NotAFailure { .. } => (StatusCode::CONFLICT, "RUN_REASON_NOT_A_FAILURE"),
        Refusal::NotTheEmergencyState => (StatusCode::CONFLICT, "RUN_EMERGENCY_STATE_OTHER"),
        Refusal::ReasonMissing => (StatusCode::UNPROCESSABLE_ENTITY, "REASON_INVALID"),
    }
}

fn workspace_status(refusal: &workspace::Refusal) -> (StatusCode, &'static str) {
    use workspace::Refusal;
    match refusal {
        Refusal::QueueFull => (StatusCode::CONFLICT, "WORKSPACE_QUEUE_FULL"),
        Refusal::NotNext { .. } => (StatusCode::CONFLICT, "WORKSPACE_NOT_NEXT"),
        Refusal::NotQueued => (StatusCode::CONFLICT, "WORKSPACE_NOT_QUEUED"),
        Refusal::Locked { .. } => (StatusCode::CONFLICT, "WORKSPACE_LOCKED"),
        Refusal::NotLocked => (StatusCode::CONFLICT, "WORKSPACE_NOT_LOCKED"),
        Refusal::NotYours { .. } => (StatusCode::CONFLICT, "WORKSPACE_LOCK_NOT_YOURS"),
        Refusal::HeldByRun { .. } => (StatusCode::CONFLICT, "WORKSPACE_LOCK_HELD_BY_RUN"),
        Refusal::StaleFence { .. } => (StatusCode::CONFLICT, "WORKSPACE_FENCE_STALE"),
        Refusal::PredecessorMoved => (StatusCode::CONFLICT, "STATE_PREDECESSOR_MOVED"),
        Refusal::NotSuccessor => (StatusCode::CONFLICT, "STATE_NOT_SUCCESSOR"),
        Refusal::StateMoved { .. } => (StatusCode::CONFLICT, "STATE_MOVED"),
        Refusal::RestoresCurrent => (StatusCode::CONFLICT, "STATE_IS_CURRENT"),
        Refusal::ReasonMissing => (StatusCode::UNPROCESSABLE_ENTITY, "REASON_INVALID"),
    }
}

fn create_status(error: &CreateError) -> (StatusCode, &'static str) {
    const REFUSED: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;
    match error {
        CreateError::AutoApply => (REFUSED, "AUTO_APPLY_UNSUPPORTED"),
        CreateError::Destroy => (REFUSED, "DESTROY_UNSUPPORTED"),
        CreateError::NotUploaded => (REFUSED, "CONFIGURATION_NOT_UPLOADED"),
        CreateError::SpeculativeOnly => (REFUSED, "CONFIGURATION_SPECULATIVE"),
        CreateError::ConfigurationUsed { .. } => (StatusCode::CONFLICT, "CONFIGURATION_USED"),
        CreateError::InvalidVariable { .. } => (REFUSED, "VARIABLE_INVALID"),
        CreateError::TooManyVariables => (REFUSED, "VARIABLES_TOO_MANY"),
        CreateError::InvalidOption { .. } => (REFUSED, "RUN_OPTION_INVALID"),
        CreateError::Message => (REFUSED, "RUN_MESSAGE_INVALID"),
        CreateError::GitRef => (REFUSED, "RUN_REF_INVALID"),
        CreateError::Step(_) => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
    }
}

fn recovery_status(error: &RecoveryError) -> (StatusCode, &'static str) {
    match error {
        RecoveryError::NothingStaged => (StatusCode::CONFLICT, "RUN_EMERGENCY_STATE_MISSING"),
        RecoveryError::StatePublished => (StatusCode::CONFLICT, "RUN_STATE_PUBLISHED"),
        RecoveryError::Step(_) => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
    }
}

fn violation_status(violation: &Violation) -> (StatusCode, &'static str) {
    match violation {
        Violation::Taken { .. } => (StatusCode::CONFLICT, "NAME_TAKEN"),
        Violation::StaleFence => (StatusCode::CONFLICT, "WORKSPACE_FENCE_STALE"),
        Violation::Immutable => (StatusCode::CONFLICT, "IMMUTABLE"),
        Violation::NotNow => (StatusCode::CONFLICT, "NOT_POSSIBLE_NOW"),
        Violation::AutoApply => (StatusCode::UNPROCESSABLE_ENTITY, "AUTO_APPLY_UNSUPPORTED"),
        Violation::Full { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "FULL"),
        Violation::LastOwner => (StatusCode::CONFLICT, "LAST_OWNER"),
        Violation::ApplyLive => (StatusCode::CONFLICT, "APPLY_LIVE"),
    }
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Store(error) => error.into(),
            other => Self::Denied(other),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(violation) => Self::Violated(violation),
            StoreError::Unavailable(_) => Self::Unavailable(error.into()),
            StoreError::Object(ObjectError::TooLarge { bytes_max }) => {
                reading::too_large(bytes_max)
            }
            StoreError::Object(ObjectError::Source(source)) => reading::unread(&source),
            other => Self::Internal(other.into()),
        }
    }
}

impl From<ProveError> for ApiError {
    fn from(error: ProveError) -> Self {
        match error {
            ProveError::Store(error) => error.into(),
            other => Self::Prove(other),
        }
    }
}

impl From<ProjectionError> for ApiError {
    fn from(error: ProjectionError) -> Self {
        match error {
            ProjectionError::Store(error) => error.into(),
            other => Self::Internal(other.into()),
        }
    }
}

impl From<PageError> for ApiError {
    fn from(error: PageError) -> Self {
        match error {
            PageError::CursorInvalid => Self::Cursor,
            PageError::Projection(error) => error.into(),
        }
    }
}

impl<R> From<CommandError<R>> for ApiError
where
    R: std::error::Error,
    Self: From<R>,
{
    fn from(error: CommandError<R>) -> Self {
        match error {
            CommandError::Refused(refusal) => refusal.into(),
            CommandError::Violated(violation) => Self::Violated(violation),
            CommandError::Contended => Self::Contended,
            CommandError::Store(error) => error.into(),
        }
    }
}

impl From<StepError> for ApiError {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Run(error) => error.into(),
            StepError::Workspace(error) => error.into(),
            StepError::Store(error) => error.into(),
            StepError::Document(error) => Self::Internal(error.into()),
        }
    }
}

impl From<CreateError> for ApiError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Step(error) => error.into(),
            other => Self::Create(other),
        }
    }
}

impl From<RecoveryError> for ApiError {
    fn from(error: RecoveryError) -> Self {
        match error {
            RecoveryError::Step(error) => error.into(),
            other => Self::Recovery(other),
        }
    }
}

impl From<RollbackError> for ApiError {
    fn from(error: RollbackError) -> Self {
        match error {
            RollbackError::NoSuchVersion => Denied::not_found("state version").into(),
            RollbackError::Restore(RestoreError::Store(error)) => error.into(),
            RollbackError::Restore(encrypted @ RestoreError::Encrypted) => Self::Invalid {
                status: StatusCode::CONFLICT,
                code: "STATE_ENCRYPTED",
                field: String::new(),
                message: encrypted.to_string(),
            },
            RollbackError::Step(error) => error.into(),
        }
    }
}

/// Marks the answer of a repeated request that its handler would have carried out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WouldBeCarriedOut;

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if let Self::Repeated = self {
            return (StatusCode::CONFLICT, Extension(WouldBeCarriedOut)).into_response();
        }
        let Answer {
            status,
            code,
            message,
            details,
            retry_after,
        } = self.answer();
        let error = json!({"code": code, "message": message, "details": details});
        let headers = retry_after.map(|seconds| [(RETRY_AFTER, seconds.to_string())]);
        (status, headers, Json(json!({"error": error}))).into_response()
    }
}

/// The answer to a request whose handler panicked.
pub(crate) fn internal() -> Response {
    ApiError::Internal("a handler panicked".into()).into_response()
}
