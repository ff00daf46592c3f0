//! Runs as this edge shows them: what was recorded, and nothing else.

pub(super) mod phases;

use serde::Serialize;
use stackship_domain::ids::{
    ConfigurationVersionId, InputSnapshotId, OrganizationId, ProjectId, RunId, WorkspaceId,
};
use stackship_domain::run::{Facts, RunKind, Source, SourceKind, Status, TerminalReason, Warning};
use stackship_domain::{Actor, Sha256Digest, Timestamp, TofuVersion};
use stackship_projections::RunReview;
use stackship_projections::run_review::{End, RecoveryReview};
use utoipa::ToSchema;

use super::evidence::{self, ApprovalView};
use super::policy::{self, PolicyPinsView, PolicyView};
use super::waiting::{WaitingFor, runners_for, tell_status_ahead, waiting_for};
use super::warnings::WarningView;
use crate::v1::schema;
use crate::{ApiError, App};
use phases::{ApplyView, PlanView};

/// A run.
#[derive(Serialize, ToSchema)]
pub(super) struct RunView {
    /// Its id.
    #[schema(value_type = String)]
    id: RunId,
    /// Its workspace.
    #[schema(value_type = String)]
    workspace: WorkspaceId,
    /// The project of its workspace at its creation.
    #[schema(value_type = String)]
    project: ProjectId,
    /// Where it stands.
    #[schema(schema_with = schema::status)]
    status: Status,
    /// What it may become.
    #[schema(schema_with = schema::run_kind)]
    kind: RunKind,
    /// Its title.
    message: String,
    /// Where it came from.
    source: SourceView,
    /// Always false: a person approves each plan.
    auto_apply: bool,
    /// Who created it.
    #[schema(value_type = String)]
    created_by: Actor,
    /// When it was created.
    #[schema(schema_with = schema::time)]
    created_at: Timestamp,
    /// When something last happened to it.
    #[schema(schema_with = schema::time)]
    updated_at: Timestamp,
    /// What cannot change any more.
    pins: PinsView,
    /// Keys of sensitive variables that a speculative run goes without.
    withheld_variables: Vec<String>,
    /// What whoever approves must know. It was recorded when the run got its workspace's lock; before,
    /// and for a speculative run, it is what the workspace has to say now.
    warnings: Vec<WarningView>,
    /// What it waits for; null while somebody works on it, and once it has ended.
    waiting_for: Option<WaitingFor>,
    /// The plan phase.
    plan: PlanView,
    /// The policy check, once there is a result.
    policy: Option<PolicyView>,
    /// The question to a person and its answer, once it was asked.
    approval: Option<ApprovalView>,
    /// The apply phase.
    apply: ApplyView,
    /// Why the apply is in doubt.
    recovery: Option<RecoveryView>,
    /// How it ended.
    ended: Option<EndView>,
}

/// What cannot change any more.
#[derive(Serialize, ToSchema)]
struct PinsView {
    /// The uploaded source.
    #[schema(value_type = String)]
    configuration_version: ConfigurationVersionId,
    /// SHA-256 of the archive.
    #[schema(value_type = String)]
    configuration_sha256: Sha256Digest,
    /// The pinned inputs.
    #[schema(value_type = String)]
    input_snapshot: InputSnapshotId,
    /// SHA-256 of the pinned inputs.
    #[schema(value_type = String)]
    input_snapshot_sha256: Sha256Digest,
    /// The exact OpenTofu release.
    #[schema(value_type = String)]
    tofu_version: TofuVersion,
    /// Where it executes.
    region: String,
    /// On what it executes.
    platform: String,
    /// Directory below the configuration's root in which OpenTofu runs.
    working_directory: String,
    /// The policies that it is judged by.
    policies: PolicyPinsView,
}

/// Where a run came from.
#[derive(Serialize, ToSchema)]
struct SourceView {
    /// The edge.
    #[schema(schema_with = schema::source_kind)]
    kind: SourceKind,
    /// Commit SHA, when the source knows one.
    commit_sha: Option<String>,
    /// Branch or pull-request ref.
    git_ref: Option<String>,
    /// The Git commit message.
    commit_message: Option<String>,
    /// Who wrote the commit.
    commit_author: Option<String>,
    /// A link to the commit.
    commit_url: Option<String>,
}

/// An apply in doubt.
#[derive(Serialize, ToSchema)]
struct RecoveryView {
    /// Why nobody can say what it did.
    reason: String,
    /// One sentence of detail.
    detail: String,
    /// Since when.
    #[schema(schema_with = schema::time)]
    since: Timestamp,
}

/// How a run ended.
#[derive(Serialize, ToSchema)]
struct EndView {
    /// The code behind the sentence.
    #[schema(schema_with = schema::reason)]
    reason: TerminalReason,
    /// One sentence for a person.
    sentence: String,
    /// One sentence of detail, when there is one.
    detail: Option<String>,
    /// Who caused it.
    #[schema(value_type = String)]
    by: Actor,
    /// Why, in a person's words.
    words: Option<String>,
    /// The run that took this run's place.
    #[schema(value_type = Option<String>)]
    superseded_by: Option<RunId>,
    /// When.
    #[schema(schema_with = schema::time)]
    at: Timestamp,
}

impl From<&Facts> for PinsView {
    fn from(facts: &Facts) -> Self {
        Self {
            configuration_version: facts.configuration_version,
            configuration_sha256: facts.pins.configuration,
            input_snapshot: facts.input_snapshot,
            input_snapshot_sha256: facts.pins.inputs,
            tofu_version: facts.pins.tofu_version,
            region: facts.pins.region.clone(),
            platform: facts.pins.platform.clone(),
            working_directory: facts.working_directory.clone(),
            policies: (&facts.pins.policies).into(),
        }
    }
}

impl From<Source> for SourceView {
    fn from(source: Source) -> Self {
        Self {
            kind: source.kind,
            commit_sha: source.commit_sha,
            git_ref: source.git_ref,
            commit_message: source.commit_message,
            commit_author: source.commit_author,
            commit_url: source.commit_url,
        }
    }
}

impl From<RecoveryReview> for RecoveryView {
    fn from(recovery: RecoveryReview) -> Self {
        Self {
            reason: recovery.doubt.reason.as_str().to_owned(),
            detail: recovery.doubt.detail,
            since: recovery.since,
        }
    }
}

impl From<End> for EndView {
    fn from(end: End) -> Self {
        Self {
            reason: end.reason,
            sentence: end.reason.sentence().to_owned(),
            detail: end.detail,
            by: end.by,
            words: end.words,
            superseded_by: end.superseded_by,
            at: end.at,
        }
    }
}

/// The run as the read models have it now.
pub(super) async fn read(
    app: &App,
    organization: OrganizationId,
    run: RunId,
) -> Result<RunView, ApiError> {
    let review = app.views.review(organization, run).await?;
    let review = review.ok_or(ApiError::Behind { run })?;
    let workspace = review.facts.workspace;
    let workspace = app.views.workspace_status(organization, workspace).await?;
    let runners = runners_for(app, &review).await?;
    let mut waiting_for = waiting_for(&review, workspace.as_ref(), runners);
    tell_status_ahead(app, organization, waiting_for.as_mut()).await?;
    let warnings = review.to_be_known(workspace.as_ref());
    Ok(view(review, &warnings, waiting_for))
}

fn view(review: RunReview, warnings: &[Warning], waiting_for: Option<WaitingFor>) -> RunView {
    let pins = PinsView::from(&review.facts);
    RunView {
        id: review.run,
        workspace: review.facts.workspace,
        project: review.facts.project,
        status: review.status,
        kind: review.facts.kind,
        message: review.facts.message,
        source: review.facts.source.into(),
        auto_apply: false,
        created_by: review.facts.created_by,
        created_at: review.facts.created_at,
        updated_at: review.updated_at,
        pins,
        withheld_variables: review.facts.withheld_variables,
        warnings: warnings.iter().map(Into::into).collect(),
        waiting_for,
        plan: review.plan.into(),
        policy: policy::view(review.policy),
        approval: evidence::approval(review.approval),
        apply: review.apply.into(),
        recovery: review.recovery.map(Into::into),
        ended: review.ended.map(Into::into),
    }
}
