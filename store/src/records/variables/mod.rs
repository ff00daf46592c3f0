//! Workspace variables. The value of a sensitive one is sealed for its row and leaves only towards
//! an input snapshot.

mod value;

use serde_json::json;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgPool};
use stackship_domain::Timestamp;
use stackship_domain::ids::{OrganizationId, VariableId, WorkspaceId};
use stackship_domain::variable::{InputVariable, VARIABLES_MAX, VariableCategory};

use super::{commit, tell};
use crate::columns::Columns;
use crate::log::Context;
use crate::{Store, StoreError, Violation, clock};
use value::{Place, StoredValue};

pub use value::{NewVariable, Variable, VariableChange};

const TABLE: &str = "record.variables";
const OF_WORKSPACE: &str = "select * from record.variables where organization_id = $1 and workspace_id = $2 \
     order by key collate \"C\", category";

/// Creates a variable; another one with its key and category refuses it.
pub async fn set(
    store: &Store,
    context: &Context,
    workspace: WorkspaceId,
    new: &NewVariable,
) -> Result<Variable, StoreError> {
    let id: VariableId = clock::fresh();
    let place = Place {
        organization: context.organization,
        workspace,
        variable: id,
    };
    let stored = StoredValue::new(store.objects.keys(), &place, &new.value, new.sensitive)?;
    let mut transaction = store.pool.begin().await?;
    make_room(&mut transaction, context.organization, workspace).await?;
    let row = sqlx::query(
        "insert into record.variables (variable_id, organization_id, workspace_id, key, category, hcl, sensitive, \
             description, value, sealed_value, sealed_key_id) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) returning *",
    )
    .bind(id.to_string())
    .bind(context.organization.to_string())
    .bind(workspace.to_string())
    .bind(&new.key)
    .bind(new.category.as_str())
    .bind(new.hcl)
    .bind(new.sensitive)
    .bind(&new.description)
    .bind(stored.plain())
    .bind(stored.sealed_bytes())
    .bind(stored.sealed_key_id())
    .fetch_one(&mut *transaction)
    .await?;
    let variable = parse(&row)?;
    tell(
        &mut transaction,
        context,
        "variable_created",
        detail(&variable),
    )
    .await?;
    commit(store, transaction).await?;
    Ok(variable)
}

/// Makes sure that the workspace is there and has room for one more variable, until the transaction
/// ends: two writers who both see room for one must not both take it.
async fn make_room(
    connection: &mut PgConnection,
    organization: OrganizationId,
    workspace: WorkspaceId,
) -> Result<(), StoreError> {
    sqlx::query(
        "select from record.workspaces where organization_id = $1 and workspace_id = $2 for no key update",
    )
    .bind(organization.to_string())
    .bind(workspace.to_string())
    .fetch_optional(&mut *connection)
    .await?
    .ok_or(Violation::NotNow)?;
    let count: i64 = sqlx::query_scalar(
        "select count(*) from record.variables where organization_id = $1 and workspace_id = $2",
    )
    .bind(organization.to_string())
    .bind(workspace.to_string())
    .fetch_one(connection)
    .await?;
    if usize::try_from(count).is_ok_and(|count| count >= VARIABLES_MAX) {
        return Err(Violation::Full {
            what: "variables",
            max: VARIABLES_MAX,
        }
        .into());
    }
    Ok(())
}

/// Changes a variable; `None` when the workspace has no such variable. A sensitive variable stays
/// sensitive.
pub async fn update(
    store: &Store,
    context: &Context,
    workspace: WorkspaceId,
    id: VariableId,
    change: &VariableChange,
) -> Result<Option<Variable>, StoreError> {
    let place = Place {
        organization: context.organization,
        workspace,
        variable: id,
    };
    let mut transaction = store.pool.begin().await?;
    let row = sqlx::query(
        "select * from record.variables where organization_id = $1 and workspace_id = $2 and variable_id = $3 \
         for update",
    )
    .bind(context.organization.to_string())
    .bind(workspace.to_string())
    .bind(id.to_string())
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let before = parse(&row)?;
    let sensitive = change.sensitive.unwrap_or(before.sensitive);
    if before.sensitive && !sensitive {
        return Err(Violation::Immutable.into());
    }
    let stored = match change.value.as_ref().or(before.value.as_ref()) {
        Some(value) => StoredValue::new(store.objects.keys(), &place, value, sensitive)?,
        None => StoredValue::from_row(&Columns::new(&row, TABLE, "variable_id")?)?,
    };
    let row = sqlx::query(
        "update record.variables set key = coalesce($2, key), hcl = coalesce($3, hcl), sensitive = $4, \
             description = coalesce($5, description), value = $6, sealed_value = $7, sealed_key_id = $8, \
             updated_at = clock_timestamp() \
         where variable_id = $1 and organization_id = $9 returning *",
    )
    .bind(id.to_string())
    .bind(&change.key)
    .bind(change.hcl)
    .bind(sensitive)
    .bind(&change.description)
    .bind(stored.plain())
    .bind(stored.sealed_bytes())
    .bind(stored.sealed_key_id())
    .bind(context.organization.to_string())
    .fetch_one(&mut *transaction)
    .await?;
    let variable = parse(&row)?;
    tell(
        &mut transaction,
        context,
        "variable_changed",
        detail(&variable),
    )
    .await?;
    commit(store, transaction).await?;
    Ok(Some(variable))
}

/// Deletes a variable. Returns whether there was one; runs keep what they pinned.
pub async fn delete(
    store: &Store,
    context: &Context,
    workspace: WorkspaceId,
    id: VariableId,
) -> Result<bool, StoreError> {
    let mut transaction = store.pool.begin().await?;
    let row = sqlx::query(
        "delete from record.variables where organization_id = $1 and workspace_id = $2 and variable_id = $3 \
         returning *",
    )
    .bind(context.organization.to_string())
    .bind(workspace.to_string())
    .bind(id.to_string())
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(row) = row else {
        return Ok(false);
    };
    tell(
        &mut transaction,
        context,
        "variable_deleted",
        detail(&parse(&row)?),
    )
    .await?;
    commit(store, transaction).await?;
    Ok(true)
}

/// The workspace's variables by key; at most [`VARIABLES_MAX`]. Sensitive values are left out.
pub async fn list(
    pool: &PgPool,
    organization: OrganizationId,
    workspace: WorkspaceId,
) -> Result<Vec<Variable>, StoreError> {
    let rows = sqlx::query(OF_WORKSPACE)
        .bind(organization.to_string())
        .bind(workspace.to_string())
        .fetch_all(pool)
        .await?;
    rows.iter().map(parse).collect()
}

/// The workspace's variables with every value in clear, by key: what an input snapshot is built
/// from, and nothing else.
pub async fn for_snapshot(
    store: &Store,
    organization: OrganizationId,
    workspace: WorkspaceId,
) -> Result<Vec<InputVariable>, StoreError> {
    let rows = sqlx::query(OF_WORKSPACE)
        .bind(organization.to_string())
        .bind(workspace.to_string())
        .fetch_all(&store.pool)
        .await?;
    let open = |row: &PgRow| {
        let variable = parse(row)?;
        let place = Place {
            organization,
            workspace,
            variable: variable.id,
        };
        let columns = Columns::new(row, TABLE, "variable_id")?;
        let value = StoredValue::from_row(&columns)?
            .open(store.objects.keys(), &place)?
            .ok_or_else(|| columns.inconsistent("sealed_value"))?;
        Ok(InputVariable {
            key: variable.key,
            value,
            category: variable.category,
            hcl: variable.hcl,
            sensitive: variable.sensitive,
        })
    };
    rows.iter().map(open).collect()
}

/// What the log tells of a variable: never a value, not even a plain one.
fn detail(variable: &Variable) -> serde_json::Value {
    json!({
        "variable": variable.id, "workspace": variable.workspace, "key": variable.key,
        "category": variable.category, "hcl": variable.hcl, "sensitive": variable.sensitive,
    })
}

fn parse(row: &PgRow) -> Result<Variable, StoreError> {
    let columns = Columns::new(row, TABLE, "variable_id")?;
    let categories = [VariableCategory::Terraform, VariableCategory::Env];
    let created_at: Timestamp = columns.time("created_at")?;
    Ok(Variable {
        id: columns.parsed("variable_id")?,
        workspace: columns.parsed("workspace_id")?,
        key: columns.plain("key")?,
        category: columns.member("category", &categories, VariableCategory::as_str)?,
        hcl: columns.plain("hcl")?,
        sensitive: columns.plain("sensitive")?,
        description: columns.plain("description")?,
        value: columns.plain("value")?,
        created_at,
        updated_at: columns.time("updated_at")?,
    })
}
