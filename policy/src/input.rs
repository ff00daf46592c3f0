//! The document that policies see: the redacted plan as it was recorded, and around it what else is
//! known of the run. Nothing in here is a value of a variable.

use serde::Serialize;
use stackship_domain::ids::{OrganizationId, ProjectId, RunId, WorkspaceId};
use stackship_domain::run::{RunKind, SourceKind};
use stackship_domain::variable::VariableCategory;
use stackship_domain::{Actor, Timestamp, TofuVersion};

/// Names the form of the document.
pub const INPUT_SCHEMA: &str = "stackship.policy-input/v1";
/// The longest redacted plan.
pub const PLAN_BYTES_MAX: usize = 100 * 1024 * 1024;
/// The most bytes of everything around the plan: a run has at most 500 variables and 200 addresses.
pub const SURROUNDINGS_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The largest policy input. The engine needs some six times as much memory as the input has bytes.
pub const POLICY_INPUT_BYTES_MAX: usize = PLAN_BYTES_MAX + SURROUNDINGS_BYTES_MAX;

const BEFORE_THE_PLAN: &[u8] = b"{\"plan\":";

/// `input.run`.
#[derive(Debug, Serialize)]
pub struct RunInput {
    /// Its id.
    pub id: RunId,
    /// What it may become.
    pub kind: RunKind,
    /// Always false: there are no destroy-mode runs.
    pub is_destroy: bool,
    /// Its title.
    pub message: String,
    /// Where it comes from.
    pub source: SourceInput,
    /// Who created it.
    pub created_by: Actor,
    /// When.
    pub created_at: Timestamp,
    /// The OpenTofu release that planned and will apply.
    pub tofu_version: TofuVersion,
    /// Whether the plan was made without refreshing first.
    pub skip_refresh: bool,
    /// Whether the plan only refreshes.
    pub refresh_only: bool,
    /// The addresses the plan was limited to; empty when it is of everything.
    pub target_addresses: Vec<String>,
    /// The addresses it was asked to replace.
    pub replace_addresses: Vec<String>,
    /// Its variables, without their values.
    pub variables: Vec<VariableInput>,
    /// Keys of sensitive variables that a speculative run goes without.
    pub withheld_variables: Vec<String>,
}

/// `input.run.source`.
#[derive(Debug, Serialize)]
pub struct SourceInput {
    /// The edge.
    pub kind: SourceKind,
    /// Commit SHA, when the source knows one.
    pub commit_sha: Option<String>,
    /// Branch or pull-request ref.
    pub git_ref: Option<String>,
    /// Who wrote the commit.
    pub commit_author: Option<String>,
}

/// A variable of the run, without its value.
#[derive(Debug, Serialize)]
pub struct VariableInput {
    /// Its name.
    pub key: String,
    /// What it sets.
    pub category: VariableCategory,
    /// Whether its value is a secret.
    pub sensitive: bool,
}

/// `input.workspace`.
#[derive(Debug, Serialize)]
pub struct WorkspaceInput {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// The project it belonged to when the run was created.
    pub project: NamedInput<ProjectId>,
    /// Its organization.
    pub organization: NamedInput<OrganizationId>,
    /// Directory below the configuration's root in which OpenTofu runs.
    pub working_directory: String,
    /// Where its runs execute.
    pub region: String,
}

/// Something with an id and a name.
#[derive(Debug, Serialize)]
pub struct NamedInput<I> {
    /// Its id.
    pub id: I,
    /// Its name.
    pub name: String,
}

/// Everything around the plan.
#[derive(Debug, Serialize)]
pub struct Surroundings {
    /// The run.
    pub run: RunInput,
    /// Its workspace.
    pub workspace: WorkspaceInput,
}

/// `input.stackship`.
#[derive(Serialize)]
struct About {
    schema: &'static str,
    evaluated_at: Timestamp,
}

/// The document in the making: the plan comes first, in parts, and is held once.
#[derive(Debug)]
pub struct PolicyInput(Vec<u8>);

impl PolicyInput {
    /// A document for a plan of so many bytes.
    pub fn with_capacity(plan_bytes: usize) -> Self {
        let mut bytes = Vec::with_capacity(plan_bytes.min(PLAN_BYTES_MAX) + 64 * 1024);
        bytes.extend_from_slice(BEFORE_THE_PLAN);
        Self(bytes)
    }

    /// Takes the next part of the plan.
    pub fn push(&mut self, part: &[u8]) {
        self.0.extend_from_slice(part);
    }

    /// The whole document, once all of the plan is in it.
    pub fn finish(self, around: &Surroundings, evaluated_at: Timestamp) -> Vec<u8> {
        let Self(mut bytes) = self;
        let about = About {
            schema: INPUT_SCHEMA,
            evaluated_at,
        };
        for (name, value) in [
            ("run", serde_json::to_vec(&around.run)),
            ("workspace", serde_json::to_vec(&around.workspace)),
            ("stackship", serde_json::to_vec(&about)),
        ] {
            bytes.extend_from_slice(format!(",\"{name}\":").as_bytes());
            let value = value.expect("what is around a plan has only texts and switches");
            bytes.extend_from_slice(&value);
        }
        bytes.push(b'}');
        bytes
    }
}
