//! What people set up: organizations, users, roles, tokens, projects, workspaces, variables,
//! configurations; a module a noun.
//!
//! The tenant is part of every query. A change and the fact that tells of it commit together, and
//! nothing here decides who may: that is asked before.

pub mod answers;
pub mod configuration_versions;
pub mod grants;
pub mod locks;
pub mod organizations;
pub mod page;
pub mod passwords;
pub mod policy_sets;
pub mod projects;
pub mod releases;
pub mod runners;
pub mod runs_record;
pub mod secret;
pub mod snapshots;
pub mod tokens;
pub mod users;
pub mod variables;
pub mod workspaces;

use serde::Serialize;
use sqlx::{PgConnection, Postgres, Transaction};
use stackship_domain::Actor;
use stackship_domain::ids::OrganizationId;

pub use page::{PAGE_MAX, Page};
pub use secret::Secret;

use crate::log::{Context, Fact, fact_append};
use crate::notify::{self, Topic};
use crate::{Store, StoreError};

/// Who asks, before the organization is known: for what begins outside of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Who causes it.
    pub actor: Actor,
    /// The request that led here.
    pub request_id: String,
    /// The command that led here.
    pub command_id: String,
}

impl Origin {
    /// The same, within an organization.
    pub fn within(&self, organization: OrganizationId) -> Context {
        Context {
            organization,
            actor: self.actor,
            request_id: self.request_id.clone(),
            command_id: self.command_id.clone(),
        }
    }
}

/// Appends the fact to the transaction of the change it tells of.
async fn tell<T: Serialize + Sync>(
    connection: &mut PgConnection,
    context: &Context,
    name: &'static str,
    detail: T,
) -> Result<(), StoreError> {
    fact_append(connection, context, &Fact { name, detail }).await
}

/// Commits a change with its facts and nudges whoever follows the log.
async fn commit(store: &Store, transaction: Transaction<'_, Postgres>) -> Result<(), StoreError> {
    transaction.commit().await?;
    // The change is in: a lost nudge costs followers only their fallback interval.
    if let Err(error) = notify::send(&store.pool, Topic::Events, "fact").await {
        tracing::warn!(error = %error, "A nudge about a new fact was lost");
    }
    Ok(())
}
