//! What a review needs besides the read model: records and stored documents, each read once and with a
//! bound. Nothing here asks a sandbox or a runner (S-REV-15).
//!
//! What the run recorded and what cannot be read is unavailable, not an error: a reviewer must see
//! the rest. Only a database that does not answer is one, because that passes.

use stackship_domain::Sha256Digest;
use stackship_domain::ids::ObjectId;
use stackship_policy::{Evaluation, RESULT_BYTES_MAX};
use stackship_projections::{RunReview, WorkspaceStatus};
use stackship_store::StoreError;
use stackship_store::attempts::{self, AttemptRow};
use stackship_store::objects::{Descriptor, ObjectKind};
use stackship_store::phase_logs::{self, TAIL_BYTES_MAX, TAIL_LINES_MAX};
use stackship_store::records::runners::Presence;
use stackship_store::records::runs_record::RunRecord;
use stackship_store::records::users;
use stackship_store::states::{self, StateStatus, StateVersionRow};

use super::ending::{LogTail, failed_phase};
use super::known::Known;
use super::people::{Names, named_users};
use super::recovery::Doubted;
use super::stages::{Published, published};
use crate::artifacts::Recorded;
use crate::auth::{InRun, RunRead};
use crate::v1::runs::guarded::emergency_state;
use crate::v1::runs::recovery::evidence::choices;
use crate::v1::runs::waiting::runners_for;
use crate::{ApiError, App};

/// How long a stored artifact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) u64);

/// The artifacts of a run, as far as they are what the run recorded.
#[derive(Debug)]
pub(super) struct Artifacts {
    pub(super) plan_changes: Known<Bytes>,
    pub(super) plan_json: Known<Bytes>,
    pub(super) raw_plan: Known<Bytes>,
    pub(super) emergency_state: Known<Bytes>,
    pub(super) state: Known<Bytes>,
}

/// Everything that was looked up for one review.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) workspace: Option<WorkspaceStatus>,
    pub(super) runners: Presence,
    pub(super) policy: Known<Evaluation>,
    pub(super) attempts: Vec<AttemptRow>,
    pub(super) log_tail: Known<LogTail>,
    pub(super) published: Known<Published>,
    pub(super) artifacts: Artifacts,
}

impl Stored {
    pub(super) async fn read(
        app: &App,
        run: &RunRecord,
        review: &RunReview,
    ) -> Result<Self, ApiError> {
        let (organization, workspace) = (run.organization, run.workspace);
        let (published, state) = successor(app, review).await?;
        Ok(Self {
            workspace: app.views.workspace_status(organization, workspace).await?,
            runners: runners_for(app, review).await?,
            policy: policy(app, review).await?,
            attempts: attempts::of_run(&app.store.pool, run.id).await?,
            log_tail: log_tail(app, review).await?,
            published,
            artifacts: artifacts(app, run, review, state).await?,
        })
    }
}

/// What others see of the users that the review names.
pub(super) async fn names(app: &App, review: &RunReview) -> Result<Names, StoreError> {
    let users = named_users(review);
    let names = users::display_names(&app.store.pool, &users).await?;
    Ok(Names::new(names))
}

/// What can be decided about a doubt; nothing where there is none to resolve.
pub(super) async fn doubted(
    app: &App,
    may: &InRun<RunRead>,
    review: &RunReview,
) -> Result<Option<Doubted>, ApiError> {
    let resolved = review.recovery.as_ref().map(|recovery| &recovery.resolved);
    let Some(None) = resolved else {
        return Ok(None);
    };
    let head = states::current(&app.store, may.run.organization, may.workspace.id).await?;
    let kept = review.apply.emergency.as_ref();
    let staged = kept.and_then(|kept| kept.staged.as_ref());
    let choices = choices(app, may, staged, head.as_ref()).await?;
    Ok(Some(Doubted { choices, head }))
}

/// The policy result, if it is the one that the run recorded.
async fn policy(app: &App, review: &RunReview) -> Result<Known<Evaluation>, StoreError> {
    let Some(result) = &review.policy.result else {
        return Ok(Known::NotRecorded);
    };
    let (organization, kind) = (review.facts.organization, ObjectKind::PolicyResult);
    let bytes_max = RESULT_BYTES_MAX as u64;
    let objects = &app.store.objects;
    let read = objects.read_to_vec(organization, result.object, kind, bytes_max);
    let bytes = read_or_unavailable(read.await)?;
    Ok(bytes.map_or(Known::Unavailable, |bytes| {
        evaluation(&bytes, result.digest)
    }))
}

pub(super) fn evaluation(bytes: &[u8], recorded: Sha256Digest) -> Known<Evaluation> {
    match Evaluation::from_bytes(bytes) {
        Ok(value) if Sha256Digest::of(bytes) == recorded => Known::Recorded { value },
        Ok(_) | Err(_) => Known::Unavailable,
    }
}

async fn log_tail(app: &App, review: &RunReview) -> Result<Known<LogTail>, StoreError> {
    let Some(phase) = failed_phase(review) else {
        return Ok(Known::NotRecorded);
    };
    let (organization, run) = (review.facts.organization, review.run);
    let (lines, bytes) = (TAIL_LINES_MAX, TAIL_BYTES_MAX);
    let read = phase_logs::tail_lines(&app.store, organization, run, phase, lines, bytes);
    let Some(lines) = read_or_unavailable(read.await)? else {
        return Ok(Known::Unavailable);
    };
    let log = phase.as_str();
    Ok((!lines.is_empty()).then_some(LogTail { log, lines }).into())
}

/// The published successor, and its bytes: what the log says, as far as its record can be found.
async fn successor(
    app: &App,
    review: &RunReview,
) -> Result<(Known<Published>, Known<Recorded>), StoreError> {
    let Some(published) = published(review) else {
        return Ok((Known::NotRecorded, Known::NotRecorded));
    };
    let found = states::by_id(&app.store, review.facts.organization, published.version).await?;
    let is_it = |row: &StateVersionRow| {
        row.status == StateStatus::Published && row.sha256 == Some(published.sha256)
    };
    let Some(row) = found.filter(is_it) else {
        return Ok((Known::Unavailable, Known::Unavailable));
    };
    let state = match Recorded::state(&row) {
        Some(value) => Known::Recorded { value },
        None => Known::Unavailable,
    };
    Ok((Some(published).into(), state))
}

async fn artifacts(
    app: &App,
    run: &RunRecord,
    review: &RunReview,
    state: Known<Recorded>,
) -> Result<Artifacts, StoreError> {
    let plan = review.plan.record.as_ref();
    let emergency = match (&review.apply.emergency, emergency_state(app, review).await?) {
        (None, _) => Known::NotRecorded,
        (Some(_), Some(value)) => Known::Recorded { value },
        (Some(_), None) => Known::Unavailable,
    };
    let wanted = [
        plan.map(Recorded::plan_diff).into(),
        plan.map(Recorded::plan_json).into(),
        plan.map(Recorded::plan).into(),
        emergency,
        state,
    ];
    let ids: Vec<ObjectId> = wanted.iter().filter_map(object).collect();
    let found = app
        .store
        .objects
        .describe_all(run.organization, &ids)
        .await?;
    let [plan_changes, plan_json, raw_plan, emergency_state, state] =
        wanted.map(|wanted| stored(&wanted, &found, run));
    Ok(Artifacts {
        plan_changes,
        plan_json,
        raw_plan,
        emergency_state,
        state,
    })
}

const fn object(wanted: &Known<Recorded>) -> Option<ObjectId> {
    match wanted {
        Known::Recorded { value } => Some(value.object()),
        Known::NotRecorded | Known::Unavailable => None,
    }
}

/// What is stored is what was recorded, or unavailable.
fn stored(wanted: &Known<Recorded>, found: &[Descriptor], run: &RunRecord) -> Known<Bytes> {
    let wanted = match wanted {
        Known::Recorded { value } => value,
        Known::NotRecorded => return Known::NotRecorded,
        Known::Unavailable => return Known::Unavailable,
    };
    let is_it = |found: &&Descriptor| {
        found.id == wanted.object() && wanted.first_difference(found, run.into()).is_none()
    };
    match found.iter().find(is_it) {
        Some(found) => Some(Bytes(found.bytes)).into(),
        None => Known::Unavailable,
    }
}

/// What was read; `None` when it cannot be read, whoever asks.
fn read_or_unavailable<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error @ StoreError::Unavailable(_)) => Err(error),
        Err(error) => {
            tracing::error!(error = %error, "What a run recorded cannot be read");
            Ok(None)
        }
    }
}
