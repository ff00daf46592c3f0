//! What a run waits for, in one word and one id.

use serde::Serialize;
use stackship_domain::Timestamp;
use stackship_domain::ids::{OrganizationId, RunId};
use stackship_domain::run::{RunKind, Status};
use stackship_domain::workspace::Holder;
use stackship_projections::run_review::Decision;
use stackship_projections::workspace_status::WorkspaceStatus;
use stackship_projections::{QueuePlace, RunReview};
use stackship_store::StoreError;
use stackship_store::records::runners::{self, Presence};
use utoipa::ToSchema;

use crate::v1::schema;
use crate::{ApiError, App};

/// What a run waits for.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct WaitingFor {
    /// What it is.
    pub(super) kind: WaitingKind,
    /// Who or what exactly: the run or the person in the way.
    id: Option<String>,
    /// Where the run in the way stands: what has to happen to it first.
    #[schema(value_type = Option<String>)]
    status: Option<Status>,
    /// Why a person locked the workspace, in their words; or that no runner is there which could take
    /// the run.
    reason: Option<String>,
    /// Where in the workspace's queue it stands, counted from 1.
    queue_position: Option<usize>,
    /// Since when it waits for this.
    #[schema(schema_with = schema::time)]
    since: Timestamp,
}

impl WaitingFor {
    /// Whether it waits for a runner, and none is there.
    pub(super) fn lacks_a_runner(&self) -> bool {
        self.kind == WaitingKind::Runner && self.reason.is_some()
    }

    /// The run in the way, if it is one.
    fn run_ahead(&self) -> Option<RunId> {
        let id = self.id.as_ref().filter(|_| self.kind == WaitingKind::Run)?;
        id.parse().ok()
    }
}

/// Adds where the run in the way stands, if a run is in the way.
pub(super) async fn tell_status_ahead(
    app: &App,
    organization: OrganizationId,
    waiting: Option<&mut WaitingFor>,
) -> Result<(), ApiError> {
    if let Some(waiting) = waiting
        && let Some(ahead) = waiting.run_ahead()
    {
        let ahead = app.views.review(organization, ahead).await?;
        waiting.status = ahead.map(|ahead| ahead.status);
    }
    Ok(())
}

/// What a run can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum WaitingKind {
    /// Another run of its workspace.
    Run,
    /// A person who locked the workspace by hand.
    PersonLock,
    /// A runner: nothing else is in the way.
    Runner,
    /// The policy check.
    Policy,
    /// A person who overrides a policy failure, or lets it be.
    Override,
    /// A person who approves or discards.
    Approval,
    /// A runner that was asked to stop.
    Stop,
    /// An operator who resolves a doubtful apply.
    Recovery,
}

/// Whether somebody is there who takes the run, if it may be a runner that it waits for.
pub(super) async fn runners_for(app: &App, review: &RunReview) -> Result<Presence, StoreError> {
    if !matches!(review.status, Status::Queued | Status::Approved) {
        return Ok(Presence::There);
    }
    let pins = &review.facts.pins;
    runners::presence(&app.store.pool, &pins.region, &pins.platform).await
}

/// What the run waits for; `None` while somebody works on it, and once it has ended.
pub(super) fn waiting_for(
    review: &RunReview,
    workspace: Option<&WorkspaceStatus>,
    runners: Presence,
) -> Option<WaitingFor> {
    let mut waiting = stands_before(review, workspace)?;
    if waiting.kind == WaitingKind::Runner {
        let pins = &review.facts.pins;
        waiting.reason = runners.absence(&pins.region, &pins.platform);
    }
    Some(waiting)
}

fn stands_before(review: &RunReview, workspace: Option<&WorkspaceStatus>) -> Option<WaitingFor> {
    let since = |time: Option<Timestamp>| time.unwrap_or(review.updated_at);
    let simple = |kind, time| {
        Some(WaitingFor {
            kind,
            id: None,
            status: None,
            reason: None,
            queue_position: None,
            since: since(time),
        })
    };
    match review.status {
        Status::Queued => Some(queued(review, workspace)),
        Status::Planned | Status::PolicyChecking => {
            simple(WaitingKind::Policy, review.plan.times.ended_at)
        }
        Status::OverrideRequired => simple(WaitingKind::Override, review.policy.times.ended_at),
        Status::AwaitingApproval => simple(WaitingKind::Approval, review.approval.times.started_at),
        Status::Approved => simple(WaitingKind::Runner, approved_at(review)),
        Status::Canceling => {
            let asked = review.cancel_requested.as_ref().map(|cancel| cancel.at);
            simple(WaitingKind::Stop, asked)
        }
        Status::RecoveryRequired => {
            let doubtful = review.recovery.as_ref().map(|recovery| recovery.since);
            simple(WaitingKind::Recovery, doubtful)
        }
        Status::Planning
        | Status::Applying
        | Status::Applied
        | Status::NoChanges
        | Status::SpeculativeFinished
        | Status::Failed
        | Status::Discarded
        | Status::Expired
        | Status::Canceled
        | Status::PlanCredentialsRequired
        | Status::Recovered => None,
    }
}

fn approved_at(review: &RunReview) -> Option<Timestamp> {
    match &review.approval.decision {
        Some(Decision::Approved { at, .. }) => Some(*at),
        Some(
            Decision::Discarded { .. }
            | Decision::Canceled { .. }
            | Decision::Superseded { .. }
            | Decision::Expired { .. },
        )
        | None => None,
    }
}

/// A speculative run, one that has the lock, and one that nothing is before wait for a runner; others
/// for whoever is before them.
fn queued(review: &RunReview, workspace: Option<&WorkspaceStatus>) -> WaitingFor {
    let waits_for_runner = review.facts.kind == RunKind::Speculative || review.fence.is_some();
    let place = workspace
        .and_then(|workspace| workspace.place_of(review.run))
        .filter(|_| !waits_for_runner);
    let lock = workspace.and_then(|workspace| workspace.lock.as_ref());
    let held_since = lock.map(|lock| lock.since);
    let created_at = review.facts.created_at;
    let (kind, id, since) = match place.and_then(|place: QueuePlace| place.blocked_by) {
        Some(Holder::Run { run }) => (WaitingKind::Run, Some(run.to_string()), held_since),
        Some(Holder::User { user }) => {
            (WaitingKind::PersonLock, Some(user.to_string()), held_since)
        }
        None => {
            let since = waits_for_runner.then_some(review.updated_at);
            (WaitingKind::Runner, None, since)
        }
    };
    let reason = lock.filter(|_| kind == WaitingKind::PersonLock);
    WaitingFor {
        kind,
        id,
        status: None,
        reason: reason.and_then(|lock| lock.reason.clone()),
        queue_position: place.map(|place| place.position),
        // A lock that was there before the run does not make it wait for longer than it exists.
        since: since_at_least(since, created_at),
    }
}

fn since_at_least(since: Option<Timestamp>, created_at: Timestamp) -> Timestamp {
    since.map_or(created_at, |since| since.max(created_at))
}
