//! Workspaces.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stackship_domain::Timestamp;

use super::{Named, Request, Resource, ToOne};

/// A workspace.
pub type WorkspaceResource = Resource<WorkspaceAttributes, WorkspaceRelationships>;

/// What a workspace says of itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the wire has one switch a feature"
)]
pub struct WorkspaceAttributes {
    /// Its name.
    pub name: String,
    /// `remote`: plans and applies run here.
    pub execution_mode: &'static str,
    /// The older word for the same.
    pub operations: bool,
    /// Whether anybody holds its lock.
    pub locked: bool,
    /// The exact OpenTofu release of its runs.
    pub terraform_version: String,
    /// Directory below the uploaded one in which OpenTofu runs.
    pub working_directory: String,
    /// Tags are not supported.
    pub tag_names: [String; 0],
    /// Always null: anything else makes the client refuse `tofu apply`.
    pub vcs_repo: Option<()>,
    /// Never (S-RUN-6).
    pub auto_apply: bool,
    /// Never (S-ART-4): the client prints the plan log.
    pub structured_run_output_enabled: bool,
    /// Never (S-RUN-3).
    pub allow_destroy_plan: bool,
    /// Never (S-RUN-3).
    pub can_queue_destroy_plan: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// What may be done to it.
    pub actions: WorkspaceActions,
    /// What the caller may do; the client does not survive its absence.
    pub permissions: WorkspacePermissions,
}

/// What may be done to a workspace.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WorkspaceActions {
    /// Whether this edge deletes it.
    pub is_destroyable: bool,
}

/// What the caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the wire has one switch a right"
)]
pub struct WorkspacePermissions {
    /// Change its settings.
    pub can_update: bool,
    /// Plan.
    pub can_queue_run: bool,
    /// Ask for a run that may be applied; approving is another right, asked for later.
    pub can_queue_apply: bool,
    /// Never (S-RUN-3).
    pub can_queue_destroy: bool,
    /// Lock it.
    pub can_lock: bool,
    /// Unlock it.
    pub can_unlock: bool,
    /// Break another person's lock.
    pub can_force_unlock: bool,
    /// See its settings.
    pub can_read_settings: bool,
    /// Change variables.
    pub can_update_variable: bool,
    /// Delete it.
    pub can_destroy: bool,
}

/// What a workspace points at.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WorkspaceRelationships {
    /// Its organization, whose id is its name here.
    pub organization: ToOne,
    /// Its project.
    pub project: ToOne,
    /// The run that others wait for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_run: Option<ToOne>,
}

/// A workspace to be created.
pub type WorkspaceRequest = Request<WorkspaceRequestAttributes, WorkspaceRequestRelationships>;

/// What is asked of it.
#[derive(Debug, Deserialize)]
pub struct WorkspaceRequestAttributes {
    /// Its name.
    pub name: String,
    /// Everything else that it is to be: nothing is ignored.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// What is to belong to it.
#[derive(Debug, Default, Deserialize)]
pub struct WorkspaceRequestRelationships {
    /// Its project.
    pub project: Option<Named>,
    /// Tags, to be refused.
    pub tags: Option<TagList>,
}

/// Tags that a request brings.
#[derive(Debug, Deserialize)]
pub struct TagList {
    /// The tags.
    #[serde(default)]
    pub data: Vec<serde::de::IgnoredAny>,
}

/// A change of a workspace's settings: each is looked at, whatever its name.
pub type WorkspaceChangeRequest = Request<Map<String, Value>, Map<String, Value>>;
