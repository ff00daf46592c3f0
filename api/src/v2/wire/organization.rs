//! Organizations, projects and how busy an organization is.

use serde::{Deserialize, Serialize};

use super::{Request, Resource};

/// What an organization may do.
pub type EntitlementResource = Resource<EntitlementAttributes>;

/// The switches that the client knows. Only `operations` matters to it: without it everything would
/// run on the person's own machine.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the wire has one switch a feature"
)]
pub struct EntitlementAttributes {
    /// Runs execute here.
    pub operations: bool,
    /// State is kept here.
    pub state_storage: bool,
    /// Sentinel policies.
    pub sentinel: bool,
    /// Teams.
    pub teams: bool,
    /// Cost estimates.
    pub cost_estimation: bool,
    /// Run tasks.
    pub run_tasks: bool,
    /// Version control.
    pub vcs_integrations: bool,
    /// A module registry.
    pub private_module_registry: bool,
    /// Customer-operated agents.
    pub agents: bool,
    /// Single sign-on.
    pub sso: bool,
    /// The audit log of the other product.
    pub audit_logging: bool,
}

impl EntitlementAttributes {
    /// What this edge offers.
    pub const OFFERED: Self = Self {
        operations: true,
        state_storage: true,
        sentinel: false,
        teams: false,
        cost_estimation: false,
        run_tasks: false,
        vcs_integrations: false,
        private_module_registry: false,
        agents: false,
        sso: false,
        audit_logging: false,
    };
}

/// How busy an organization is.
pub type CapacityResource = Resource<CapacityAttributes>;

/// How many runs work and wait.
#[derive(Debug, Serialize)]
pub struct CapacityAttributes {
    /// Runs that wait for a runner.
    pub pending: usize,
    /// Runs that a runner works on.
    pub running: usize,
}

/// A project.
pub type ProjectResource = Resource<ProjectAttributes>;

/// What a project says of itself.
#[derive(Debug, Serialize)]
pub struct ProjectAttributes {
    /// Its name.
    pub name: String,
}

/// A project to be created.
pub type ProjectRequest = Request<ProjectRequestAttributes>;

/// What is asked of it.
#[derive(Debug, Deserialize)]
pub struct ProjectRequestAttributes {
    /// Its name.
    pub name: String,
}
