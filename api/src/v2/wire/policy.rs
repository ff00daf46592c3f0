//! What policies say about a run.

use serde::Serialize;

use super::{Resource, ToOne};

/// A policy check.
pub type PolicyCheckResource = Resource<PolicyCheckAttributes, PolicyCheckRelationships>;

/// What a policy check says of itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PolicyCheckAttributes {
    /// Whose policies they are; the client makes a heading of it.
    pub scope: &'static str,
    /// Where it stands, in the client's words.
    pub status: &'static str,
    /// What may be done to it now; the client does not survive its absence.
    pub actions: PolicyCheckActions,
    /// What the caller may do to it; neither does it survive that of this.
    pub permissions: PolicyCheckPermissions,
    /// How many policies said what.
    pub result: PolicyCheckResult,
}

/// What may be done to a policy check now.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PolicyCheckActions {
    /// It waits for an override.
    pub is_overridable: bool,
}

/// What the caller may do to a policy check.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PolicyCheckPermissions {
    /// Override it.
    pub can_override: bool,
}

/// How many policies said what.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PolicyCheckResult {
    /// Whether the plan may go on by itself.
    pub result: bool,
    /// Policies that denied nothing.
    pub passed: u32,
    /// Policies that denied.
    pub total_failed: u32,
    /// Of these, advisory ones.
    pub advisory_failed: u32,
    /// Of these, soft-mandatory ones.
    pub soft_failed: u32,
    /// Of these, hard-mandatory ones.
    pub hard_failed: u32,
    /// How long it took, in milliseconds.
    #[serde(rename = "duration")]
    pub duration_ms: u64,
}

/// What a policy check points at.
#[derive(Debug, Serialize)]
pub struct PolicyCheckRelationships {
    /// The run.
    pub run: ToOne,
}
