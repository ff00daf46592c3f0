//! Runs with their plans and applies.

use serde::{Deserialize, Serialize};
use stackship_domain::Timestamp;

use super::{Named, Request, Resource, ToMany, ToNobody, ToOne};

/// A run.
pub type RunResource = Resource<RunAttributes, RunRelationships>;

/// What a run says of itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the wire has one switch a feature"
)]
pub struct RunAttributes {
    /// Where it stands, in the client's words.
    pub status: &'static str,
    /// Whether its plan found changes.
    pub has_changes: bool,
    /// Never (S-RUN-6).
    pub auto_apply: bool,
    /// Never (S-RUN-3).
    pub is_destroy: bool,
    /// Never: a saved plan is refused.
    pub save_plan: bool,
    /// Whether it is never applied.
    pub plan_only: bool,
    /// Its title.
    pub message: String,
    /// The client's word for "not from version control".
    pub source: &'static str,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was canceled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canceled_at: Option<Timestamp>,
    /// The exact OpenTofu release.
    pub terraform_version: String,
    /// What may be done to it now; the client does not survive its absence.
    pub actions: ActionFlags,
    /// What the caller may do to it.
    pub permissions: RunPermissions,
    /// When it came where.
    pub status_timestamps: StatusTimes,
}

/// What may be done to a run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the wire has one switch an action"
)]
pub struct ActionFlags {
    /// It can be stopped.
    pub is_cancelable: bool,
    /// It waits for an approval.
    pub is_confirmable: bool,
    /// It can be turned down.
    pub is_discardable: bool,
    /// Never.
    pub is_force_cancelable: bool,
}

/// What the caller may do to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the wire has one switch a right"
)]
pub struct RunPermissions {
    /// Approve it.
    pub can_apply: bool,
    /// Stop it.
    pub can_cancel: bool,
    /// Turn it down.
    pub can_discard: bool,
    /// Never.
    pub can_force_cancel: bool,
    /// Never.
    pub can_force_execute: bool,
}

/// When a run came where; only what was recorded.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::struct_field_names, reason = "the wire's names end alike")]
pub struct StatusTimes {
    /// It was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_queued_at: Option<Timestamp>,
    /// Its plan began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planning_at: Option<Timestamp>,
    /// Its plan was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_at: Option<Timestamp>,
    /// It was approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed_at: Option<Timestamp>,
    /// Its apply began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applying_at: Option<Timestamp>,
    /// Its state was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<Timestamp>,
}

/// What a run points at. The client does not survive the absence of the first three.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunRelationships {
    /// Its workspace.
    pub workspace: ToOne,
    /// Its plan.
    pub plan: ToOne,
    /// Its apply, from the beginning.
    pub apply: ToOne,
    /// Its source.
    pub configuration_version: ToOne,
    /// What policies say: none where no policy applies, and none before they have spoken.
    pub policy_checks: ToMany,
    /// None.
    pub cost_estimate: ToOne,
    /// None.
    pub task_stages: ToNobody,
}

/// A run in a list: as much as the client looks at there.
pub type ListedRun = Resource<ListedRunAttributes>;

/// What a listed run says of itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ListedRunAttributes {
    /// Where it stands, in the client's words.
    pub status: &'static str,
    /// When it was created.
    pub created_at: Timestamp,
    /// The place in the queue, and 0 for whoever is next.
    pub position_in_queue: usize,
}

/// A plan.
pub type PlanResource = Resource<PlanAttributes>;

/// What a plan says of itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PlanAttributes {
    /// Where it stands, in the client's words.
    pub status: &'static str,
    /// Whether it found changes.
    pub has_changes: bool,
    /// Never.
    pub generated_configuration: bool,
    /// Where its log is read, without a credential.
    pub log_read_url: String,
    /// Resources to be created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_additions: Option<u32>,
    /// Resources to be updated in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_changes: Option<u32>,
    /// Resources to be destroyed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_destructions: Option<u32>,
    /// Resources to be imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_imports: Option<u32>,
}

/// An apply.
pub type ApplyResource = Resource<ApplyAttributes>;

/// What an apply says of itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ApplyAttributes {
    /// Where it stands, in the client's words.
    pub status: &'static str,
    /// Where its log is read, without a credential.
    pub log_read_url: String,
}

/// A notice about a run.
pub type RunEventResource = Resource<RunEventAttributes>;

/// What a notice says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunEventAttributes {
    /// What it is about; the client prints only some.
    pub action: &'static str,
    /// For people.
    pub description: String,
    /// Since when it holds.
    pub created_at: Timestamp,
}

/// A run to be created.
pub type RunRequest = Request<RunRequestAttributes, RunRequestRelationships>;

/// What is asked of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunRequestAttributes {
    /// Whether it is to be applied without a question; always said by the `cloud` block.
    pub auto_apply: Option<bool>,
    /// Whether everything is to be destroyed.
    pub is_destroy: Option<bool>,
    /// Whether the state is refreshed first.
    pub refresh: Option<bool>,
    /// Whether only the state is refreshed.
    pub refresh_only: Option<bool>,
    /// Whether the plan is kept for a later `tofu apply FILE`.
    pub save_plan: Option<bool>,
    /// Whether configuration is to be written for imported resources.
    pub allow_config_generation: Option<bool>,
    /// `-target`.
    pub target_addrs: Option<Vec<String>>,
    /// `-replace`.
    pub replace_addrs: Option<Vec<String>>,
    /// `-var`, `-var-file`, `TF_VAR_…`.
    pub variables: Option<Vec<VariableRequest>>,
}

/// A variable of one run.
#[derive(Deserialize)]
pub struct VariableRequest {
    /// Its name.
    pub key: String,
    /// An HCL literal.
    pub value: String,
}

impl std::fmt::Debug for VariableRequest {
    /// Leaves the value out: it may be a secret.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("VariableRequest")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// What a run is to be made of.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunRequestRelationships {
    /// The source.
    pub configuration_version: Option<Named>,
    /// The workspace.
    pub workspace: Option<Named>,
}
