//! Workspace variables. A sensitive value goes in and never comes out.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use stackship_domain::Timestamp;
use stackship_domain::ids::VariableId;
use stackship_domain::variable::{InvalidVariable, VariableCategory, check_variable};
use stackship_store::records::variables::{self, NewVariable, Variable, VariableChange};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Data, List, created};
use super::body::{Body, Path, plain_text};
use super::schema;
use crate::auth::{Denied, InWorkspace, VariableRead, VariableWrite};
use crate::{ApiError, App};

const DESCRIPTION_CHARS_MAX: usize = 1_000;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(variable_list, variable_create))
        .routes(routes!(variable_change, variable_delete))
}

/// A workspace variable.
#[derive(Serialize, ToSchema)]
struct VariableView {
    /// Its id.
    #[schema(value_type = String)]
    id: VariableId,
    /// Its name.
    key: String,
    /// Its value; null when it is sensitive.
    value: Option<String>,
    /// Where it goes.
    #[schema(schema_with = schema::category)]
    category: VariableCategory,
    /// Whether the value is an HCL expression.
    hcl: bool,
    /// Whether the value is never shown.
    sensitive: bool,
    /// What it is for.
    description: String,
    /// When it was created.
    #[schema(schema_with = schema::time)]
    created_at: Timestamp,
    /// When it last changed.
    #[schema(schema_with = schema::time)]
    updated_at: Timestamp,
}

impl From<Variable> for VariableView {
    fn from(variable: Variable) -> Self {
        Self {
            id: variable.id,
            key: variable.key,
            value: variable.value,
            category: variable.category,
            hcl: variable.hcl,
            sensitive: variable.sensitive,
            description: variable.description,
            created_at: variable.created_at,
            updated_at: variable.updated_at,
        }
    }
}

/// A variable to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewVariableBody {
    /// Its name.
    key: String,
    /// Its value.
    value: String,
    /// Where it goes: `terraform` for an input variable, `env` for the environment.
    #[schema(schema_with = schema::category)]
    category: VariableCategory,
    /// Whether the value is an HCL expression.
    #[serde(default)]
    hcl: bool,
    /// Whether the value must never be shown.
    #[serde(default)]
    sensitive: bool,
    /// What it is for.
    #[serde(default)]
    description: String,
}

/// What is to be different; absent fields stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct VariableChangeBody {
    /// The name.
    key: Option<String>,
    /// The value.
    value: Option<String>,
    /// Whether the value is an HCL expression.
    hcl: Option<bool>,
    /// Whether the value must never be shown; it cannot be taken back.
    sensitive: Option<bool>,
    /// What it is for.
    description: Option<String>,
}

#[derive(Deserialize)]
struct VariablePath {
    variable: String,
}

impl VariablePath {
    fn id(&self) -> Result<VariableId, Denied> {
        self.variable.parse().map_err(|_| NOT_FOUND)
    }
}

const NOT_FOUND: Denied = Denied::not_found("variable");

fn refused(why: &InvalidVariable) -> ApiError {
    let field = match why {
        InvalidVariable::Key | InvalidVariable::Reserved(_) => "key",
        InvalidVariable::ValueTooLarge
        | InvalidVariable::ValueNul
        | InvalidVariable::Expression => "value",
        InvalidVariable::HclEnvironment => "hcl",
    };
    ApiError::refused("VARIABLE_INVALID", field, why.to_string())
}

fn check_description(description: &str) -> Result<(), ApiError> {
    plain_text(
        "VARIABLE_INVALID",
        "description",
        description,
        0..=DESCRIPTION_CHARS_MAX,
    )
}

/// Lists a workspace's variables by key; there are at most 500.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/variables", tag = "variables",
    params(("workspace" = String, Path)),
    responses((status = 200, body = List<VariableView>)))]
async fn variable_list(
    State(app): State<App>,
    may: InWorkspace<VariableRead>,
) -> Result<List<VariableView>, ApiError> {
    let workspace = &may.workspace;
    let rows = variables::list(&app.store.pool, workspace.organization, workspace.id).await?;
    Ok(List::new(rows.into_iter().map(Into::into).collect(), None))
}

/// Creates a variable.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/variables", tag = "variables",
    params(("workspace" = String, Path)), request_body = NewVariableBody,
    responses((status = 201, body = Data<VariableView>)))]
async fn variable_create(
    State(app): State<App>,
    may: InWorkspace<VariableWrite>,
    Body(body): Body<NewVariableBody>,
) -> Result<(StatusCode, Data<VariableView>), ApiError> {
    check_variable(body.category, &body.key, &body.value, body.hcl).map_err(|why| refused(&why))?;
    check_description(&body.description)?;
    let new = NewVariable {
        key: body.key,
        value: body.value,
        category: body.category,
        hcl: body.hcl,
        sensitive: body.sensitive,
        description: body.description,
    };
    let context = may.caller.command()?;
    let variable = variables::set(&app.store, &context, may.workspace.id, &new).await?;
    Ok(created(variable.into()))
}

/// Changes a variable. A sensitive one stays sensitive.
#[utoipa::path(patch, path = "/v1/workspaces/{workspace}/variables/{variable}", tag = "variables",
    params(("workspace" = String, Path), ("variable" = String, Path)),
    request_body = VariableChangeBody,
    responses((status = 200, body = Data<VariableView>)))]
async fn variable_change(
    State(app): State<App>,
    may: InWorkspace<VariableWrite>,
    Path(path): Path<VariablePath>,
    Body(body): Body<VariableChangeBody>,
) -> Result<Data<VariableView>, ApiError> {
    let (id, workspace) = (path.id()?, &may.workspace);
    let all = variables::list(&app.store.pool, workspace.organization, workspace.id).await?;
    let before = all.into_iter().find(|variable| variable.id == id);
    let change = checked_change(&before.ok_or(NOT_FOUND)?, body)?;
    let context = may.caller.command()?;
    let changed = variables::update(&app.store, &context, workspace.id, id, &change).await?;
    Ok(VariableView::from(changed.ok_or(NOT_FOUND)?).into())
}

/// The change, checked as the whole variable that it leads to.
fn checked_change(before: &Variable, body: VariableChangeBody) -> Result<VariableChange, ApiError> {
    if before.sensitive && body.sensitive == Some(false) {
        let message = "`sensitive` cannot be taken back; delete the variable and create another";
        return Err(ApiError::refused(
            "VARIABLE_SENSITIVE",
            "sensitive",
            message,
        ));
    }
    let key = body.key.as_ref().unwrap_or(&before.key);
    let value = body.value.as_ref().or(before.value.as_ref());
    let value = value.map_or("", String::as_str);
    check_variable(before.category, key, value, body.hcl.unwrap_or(before.hcl))
        .map_err(|why| refused(&why))?;
    check_description(body.description.as_deref().unwrap_or_default())?;
    Ok(VariableChange {
        key: body.key,
        value: body.value,
        hcl: body.hcl,
        sensitive: body.sensitive,
        description: body.description,
    })
}

/// Deletes a variable. Runs keep what they pinned.
#[utoipa::path(delete, path = "/v1/workspaces/{workspace}/variables/{variable}", tag = "variables",
    params(("workspace" = String, Path), ("variable" = String, Path)),
    responses((status = 204)))]
async fn variable_delete(
    State(app): State<App>,
    may: InWorkspace<VariableWrite>,
    Path(path): Path<VariablePath>,
) -> Result<StatusCode, ApiError> {
    let context = may.caller.command()?;
    let found = variables::delete(&app.store, &context, may.workspace.id, path.id()?).await?;
    if found {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(NOT_FOUND.into())
    }
}
