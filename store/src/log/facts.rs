//! Administrative facts: what people changed outside of runs, in the same log, in the same
//! transaction as the change itself. Each fact is a stream of its own, so that an append after other
//! writes of its transaction cannot disturb any stream's order.

use serde::Serialize;
use sqlx::PgConnection;
use stackship_domain::ids::FactId;

use super::Context;
use crate::{StoreError, clock};

/// One administrative fact. `name` is the event's name in the log; `detail` must hold no secret.
#[derive(Debug, Clone)]
pub struct Fact<T> {
    /// Past tense, lower snake case: `workspace_created`.
    pub name: &'static str,
    /// What happened; an object.
    pub detail: T,
}

/// Appends a fact inside the caller's transaction.
pub async fn fact_append<T: Serialize + Sync>(
    connection: &mut PgConnection,
    context: &Context,
    fact: &Fact<T>,
) -> Result<(), StoreError> {
    let id: FactId = clock::fresh();
    let metadata = serde_json::json!({
        "organization_id": context.organization,
        "actor": context.actor,
        "request_id": context.request_id,
        "command_id": context.command_id,
    });
    sqlx::query(
        "insert into log.events (aggregate_type, aggregate_id, sequence, event_type, event_version, payload, metadata) \
         values ('fact', $1, 1, $2, '1.0', $3, $4)",
    )
    .bind(id.to_string())
    .bind(fact.name)
    .bind(serde_json::to_value(&fact.detail)?)
    .bind(metadata)
    .execute(connection)
    .await?;
    Ok(())
}
