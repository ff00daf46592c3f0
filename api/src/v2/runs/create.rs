//! Creating a run, and refusing what this edge does not do. Refusals come here because the client says
//! nothing of its flags before; title and detail reach the terminal.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use stackship_domain::ids::ConfigurationVersionId;
use stackship_domain::run::{RunKind, Source, SourceKind};
use stackship_domain::variable::{InputVariable, PlanOptions, VariableCategory};
use stackship_store::records::configuration_versions::{self, ConfigurationVersion};
use stackship_workflow::create::{CreateError, RunRequest, create_run};

use super::review_after;
use crate::App;
use crate::auth::{Anywhere, Caller, InWorkspace, RunCreate};
use crate::v2::access::{self, May};
use crate::v2::error::V2Error;
use crate::v2::mapping::{RunView, run_resource};
use crate::v2::wire::{
    self, Body, Document, Named, RunRequestAttributes, RunRequestRelationships, respond,
};

/// Which of the client's backends asks; the older one does not say.
const INTEGRATION: &str = "x-terraform-integration";
/// The one that sends everything a run is asked for.
const CLOUD: &str = "cloud";
/// The title of every run from here: the client sends none.
const MESSAGE: &str = "Triggered from the tofu CLI";
/// The title of refusals that a person answers with another command.
const REFUSED: &str = "invalid document";

/// `POST runs`
pub async fn create(
    State(app): State<App>,
    May(Anywhere { caller, .. }): May<Anywhere<RunCreate>>,
    headers: HeaderMap,
    Body(request): Body<wire::RunRequest>,
) -> Result<Response, V2Error> {
    let (attributes, relationships) = (request.data.attributes, request.data.relationships);
    let (may, configuration) = source(&app, caller, &relationships).await?;
    let integration = headers
        .get(INTEGRATION)
        .and_then(|value| value.to_str().ok());
    check(integration, &attributes)?;
    let request = RunRequest {
        organization: may.workspace.organization,
        workspace: may.workspace.clone(),
        kind: if configuration.speculative {
            RunKind::Speculative
        } else {
            RunKind::PlanAndApply
        },
        configuration,
        message: MESSAGE.to_owned(),
        source: Source::plain(SourceKind::Cli),
        auto_apply: attributes.auto_apply.unwrap_or(false),
        destroy: attributes.is_destroy.unwrap_or(false),
        options: options(&attributes),
        variables: variables(attributes),
    };
    let created = create_run(&app.store, &may.caller.command()?, request)
        .await
        .map_err(refusal)?;
    let organization = may.workspace.organization;
    let review = review_after(&app, organization, created.run, created.sequence).await?;
    let rights = access::rights(&app, &may.caller, &may.workspace).await?;
    let view = RunView {
        review: &review,
        rights,
    };
    Ok(respond(
        StatusCode::CREATED,
        &Document::of(run_resource(view)),
    ))
}

/// The source that the request names, and the right to make a run of it in its workspace.
async fn source(
    app: &App,
    caller: Caller,
    named: &RunRequestRelationships,
) -> Result<(InWorkspace<RunCreate>, ConfigurationVersion), V2Error> {
    let hidden = || V2Error::not_found("configuration version");
    let id = Named::id(named.configuration_version.as_ref()).ok_or_else(|| {
        V2Error::refused(
            REFUSED,
            "Name the run's configuration version: upload one first.",
        )
    })?;
    let id: ConfigurationVersionId = id.parse().map_err(|_| hidden())?;
    let found = configuration_versions::by_id(&app.store.pool, caller.organization(), id)
        .await?
        .ok_or_else(hidden)?;
    let workspace = found.workspace.to_string();
    if Named::id(named.workspace.as_ref()).is_some_and(|named| named != workspace) {
        return Err(hidden());
    }
    let may = InWorkspace::find(app, caller, &workspace).await?;
    Ok((may, found))
}

/// Refuses what this edge does not do. Automatic apply and destroy mode are passed on: the machine
/// itself refuses them (S-RUN-3, S-RUN-6).
fn check(integration: Option<&str>, asked: &RunRequestAttributes) -> Result<(), V2Error> {
    let is = |flag: Option<bool>| flag == Some(true);
    if integration != Some(CLOUD) || asked.auto_apply.is_none() {
        return Err(V2Error::refused(
            REFUSED,
            "The remote backend approves plans without asking. Use a cloud block instead: terraform { cloud { … } }.",
        ));
    }
    if is(asked.auto_apply) && is(asked.refresh_only) {
        return Err(V2Error::refused(
            REFUSED,
            "tofu refresh would change the state without an approval. Run tofu apply -refresh-only.",
        ));
    }
    if is(asked.save_plan) {
        return Err(V2Error::refused(
            REFUSED,
            "Plans are not saved to a file. Rerun tofu plan without -out, or run tofu apply.",
        ));
    }
    if is(asked.allow_config_generation) {
        return Err(V2Error::refused(
            REFUSED,
            "Configuration is not generated in a remote run. Rerun tofu plan without -generate-config-out.",
        ));
    }
    Ok(())
}

fn options(asked: &RunRequestAttributes) -> PlanOptions {
    PlanOptions {
        skip_refresh: asked.refresh == Some(false),
        refresh_only: asked.refresh_only == Some(true),
        target_addresses: asked.target_addrs.clone().unwrap_or_default(),
        replace_addresses: asked.replace_addrs.clone().unwrap_or_default(),
    }
}

/// The client sends HCL literals of its input variables, and of nothing else.
fn variables(asked: RunRequestAttributes) -> Vec<InputVariable> {
    let variables = asked.variables.unwrap_or_default();
    variables
        .into_iter()
        .map(|variable| InputVariable {
            key: variable.key,
            value: variable.value,
            category: VariableCategory::Terraform,
            hcl: true,
            sensitive: false,
        })
        .collect()
}

fn refusal(error: CreateError) -> V2Error {
    match error {
        CreateError::AutoApply => V2Error::refused(
            REFUSED,
            "Automatic apply is not supported. Rerun tofu apply without -auto-approve.",
        ),
        CreateError::Destroy => V2Error::refused(
            REFUSED,
            "Destroy mode is not supported. Remove the resources from the configuration and run tofu apply: the plan \
             shows what will be destroyed.",
        ),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(document: serde_json::Value) -> RunRequestAttributes {
        serde_json::from_value(document).unwrap()
    }

    fn detail_of(integration: Option<&str>, document: serde_json::Value) -> String {
        let refused = check(integration, &asked(document)).unwrap_err();
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.code, "invalid_document");
        refused.detail
    }

    #[test]
    fn each_refusal_names_the_command_to_run_instead() {
        use serde_json::json;
        let plain = json!({"auto-apply": false});
        assert_eq!(check(Some(CLOUD), &asked(plain.clone())), Ok(()));
        assert!(detail_of(None, plain).contains("cloud block"));
        assert!(detail_of(Some(CLOUD), json!({"refresh": true})).contains("cloud block"));
        let refresh = json!({"auto-apply": true, "refresh-only": true});
        assert!(detail_of(Some(CLOUD), refresh).contains("tofu apply -refresh-only"));
        let save = json!({"auto-apply": false, "save-plan": true});
        assert!(detail_of(Some(CLOUD), save).contains("without -out"));
        let generate = json!({"auto-apply": false, "allow-config-generation": true});
        assert!(detail_of(Some(CLOUD), generate).contains("-generate-config-out"));
    }

    #[test]
    fn automatic_apply_and_destroy_are_left_to_the_machine_and_said_here() {
        let automatic = asked(serde_json::json!({"auto-apply": true, "is-destroy": true}));
        assert_eq!(check(Some(CLOUD), &automatic), Ok(()));
        assert!(
            refusal(CreateError::AutoApply)
                .detail
                .contains("without -auto-approve")
        );
        assert!(
            refusal(CreateError::Destroy)
                .detail
                .contains("Destroy mode is not supported")
        );
    }

    #[test]
    fn what_a_plan_is_asked_for_is_pinned_as_it_was_asked() {
        let asked = asked(serde_json::json!({
            "auto-apply": false, "refresh": false, "target-addrs": ["a.b"], "replace-addrs": ["c.d"],
            "variables": [{"key": "name", "value": "\"x\""}],
        }));
        let options = options(&asked);
        assert!(options.skip_refresh && !options.refresh_only);
        assert_eq!(options.target_addresses, ["a.b"]);
        assert_eq!(options.replace_addresses, ["c.d"]);
        let variables = variables(asked);
        assert!(variables[0].hcl && variables[0].value == "\"x\"");
    }
}
