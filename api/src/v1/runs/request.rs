//! What a new run is asked to be.

use serde::Deserialize;
use stackship_domain::ids::ConfigurationVersionId;
use stackship_domain::run::{RunKind, Source, SourceKind};
use stackship_domain::variable::{InputVariable, PlanOptions, VariableCategory};
use stackship_store::records::configuration_versions;
use stackship_store::records::workspaces::Workspace;
use stackship_workflow::create::{CreateError, RunRequest};
use utoipa::ToSchema;

use crate::v1::schema;
use crate::{ApiError, App};

/// A run to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRunBody {
    /// The uploaded source; one run is made of it.
    #[schema(value_type = String)]
    configuration_version: ConfigurationVersionId,
    /// The run's title.
    message: String,
    /// What it may become; `plan_and_apply` when absent.
    #[schema(schema_with = schema::run_kind)]
    #[serde(default = "plan_and_apply")]
    kind: RunKind,
    /// What it is made from, in any words: a branch, a pull request. A newer speculative run of the same
    /// workspace and ref takes the place of one that is still queued or planning.
    git_ref: Option<String>,
    /// What the plan is asked for.
    #[serde(default)]
    options: OptionsBody,
    /// Variables of this run alone; they win over the workspace's.
    #[serde(default)]
    variables: Vec<RunVariable>,
    /// Refused when true: a person approves each plan.
    #[serde(default)]
    auto_apply: bool,
    /// Refused when true: an ordinary plan may destroy resources.
    #[serde(default)]
    is_destroy: bool,
}

const fn plan_and_apply() -> RunKind {
    RunKind::PlanAndApply
}

/// What a plan is asked for.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct OptionsBody {
    /// Plan against the state as it is, without looking at the real resources.
    skip_refresh: bool,
    /// Only bring the state up to date.
    refresh_only: bool,
    /// Only these resources and what they depend on.
    target_addresses: Vec<String>,
    /// Replace these resources.
    replace_addresses: Vec<String>,
}

/// An input variable of one run.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RunVariable {
    /// Its name.
    key: String,
    /// Its value.
    value: String,
    /// Whether the value is an HCL expression.
    #[serde(default)]
    hcl: bool,
    /// Whether the value must never be shown.
    #[serde(default)]
    sensitive: bool,
}

impl NewRunBody {
    /// The request, with the configuration version found in the workspace. What is never supported
    /// is refused first: nothing the caller could mend elsewhere would help.
    pub(super) async fn request(
        self,
        app: &App,
        workspace: Workspace,
    ) -> Result<RunRequest, ApiError> {
        if self.auto_apply {
            return Err(CreateError::AutoApply.into());
        }
        if self.is_destroy {
            return Err(CreateError::Destroy.into());
        }
        let (pool, id) = (&app.store.pool, self.configuration_version);
        let configuration = configuration_versions::by_id(pool, workspace.organization, id)
            .await?
            .filter(|found| found.workspace == workspace.id)
            .ok_or_else(unknown_configuration)?;
        Ok(RunRequest {
            organization: workspace.organization,
            workspace,
            configuration,
            kind: self.kind,
            message: self.message,
            source: Source {
                git_ref: self.git_ref,
                ..Source::plain(SourceKind::Api)
            },
            auto_apply: false,
            destroy: false,
            options: self.options.into(),
            variables: self.variables.into_iter().map(Into::into).collect(),
        })
    }
}

fn unknown_configuration() -> ApiError {
    let message = "`configuration_version` names none of this workspace";
    ApiError::refused("CONFIGURATION_UNKNOWN", "configuration_version", message)
}

impl From<OptionsBody> for PlanOptions {
    fn from(options: OptionsBody) -> Self {
        Self {
            skip_refresh: options.skip_refresh,
            refresh_only: options.refresh_only,
            target_addresses: options.target_addresses,
            replace_addresses: options.replace_addresses,
        }
    }
}

impl From<RunVariable> for InputVariable {
    fn from(variable: RunVariable) -> Self {
        Self {
            key: variable.key,
            value: variable.value,
            category: VariableCategory::Terraform,
            hcl: variable.hcl,
            sensitive: variable.sensitive,
        }
    }
}
