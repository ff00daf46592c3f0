//! The timeline: plan, policy, approval, apply, in this order. Where a stage stands comes from what was
//! recorded of that stage, never from where the run as a whole stands (S-REV-4, S-REV-15).

mod apply;
mod approval;
mod plan;
mod policy;
mod status;

use serde::Serialize;
use stackship_domain::run::Status;
use stackship_domain::{Sha256Digest, Timestamp};
use stackship_projections::RunReview;
use stackship_projections::run_review::{AttemptReview, StageTimes};
use utoipa::ToSchema;

use super::people::Names;
use super::stored::Stored;
use apply::ApplyStage;
pub(super) use apply::{Published, published};
use approval::ApprovalStage;
use plan::PlanStage;
use policy::PolicyStage;
use status::StageStatus;

/// The four stages, in the order in which they follow each other.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Stages {
    /// First.
    pub(super) plan: PlanStage,
    /// Second.
    pub(super) policy: PolicyStage,
    /// Third.
    pub(super) approval: ApprovalStage,
    /// Last.
    pub(super) apply: ApplyStage,
}

/// What every stage has.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct Stage {
    /// Where it stands.
    pub(super) status: StageStatus,
    /// When it began; null while it has not.
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Timestamp>,
    /// When it ended; null while it has not.
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Timestamp>,
    /// How long it took; null until it has ended.
    duration_ms: Option<u64>,
    /// Whether it is shown open at first.
    opens: bool,
    /// Where its log is read; null for a stage that writes none.
    log_href: Option<String>,
}

impl Stage {
    fn new(status: StageStatus, times: StageTimes) -> Self {
        let both = times.started_at.zip(times.ended_at);
        Self {
            status,
            started_at: times.started_at,
            ended_at: times.ended_at,
            duration_ms: both.map(|(started, ended)| milliseconds(started, ended)),
            opens: false,
            log_href: None,
        }
    }

    /// With the log of this phase, if anything can have been written there. A phase that waits for
    /// another attempt has what those before it wrote.
    fn with_log(self, review: &RunReview, phase: &str, tried: &[AttemptReview]) -> Self {
        let writes = match self.status {
            StageStatus::Running | StageStatus::Succeeded | StageStatus::Failed => true,
            StageStatus::Waiting => self.started_at.is_some(),
            StageStatus::Pending => !tried.is_empty(),
            StageStatus::Skipped => false,
        };
        let log_href = writes.then(|| format!("/v1/runs/{}/logs/{phase}", review.run));
        Self { log_href, ..self }
    }

    fn opened(self, opens: bool) -> Self {
        Self { opens, ..self }
    }
}

impl Stages {
    pub(super) fn of(review: &RunReview, stored: &Stored, names: &Names, now: Timestamp) -> Self {
        Self {
            plan: PlanStage::of(review),
            policy: PolicyStage::of(review, &stored.policy, names, now),
            approval: ApprovalStage::of(review, names),
            apply: ApplyStage::of(review, stored.published.clone()),
        }
    }
}

/// Whether the run has ended as applied; its last stage then shows the published state (S-REV-9).
const fn is_applied(review: &RunReview) -> bool {
    matches!(review.status, Status::Applied)
}

/// From one time to another; nothing when a clock went back in between.
pub(super) fn milliseconds(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}

/// What a person approves: the digest of the plan file, which stands last.
const fn plan_digest(review: &RunReview) -> Option<Sha256Digest> {
    match &review.plan.record {
        Some(plan) => Some(plan.plan),
        None => None,
    }
}
