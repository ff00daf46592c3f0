//! Offering an attempt to whichever runner fits.

use stackship_domain::ids::{AttemptId, OrganizationId, RunId, WorkspaceId};
use stackship_domain::run::{Phase, Predecessor};
use stackship_domain::{Fence, Sha256Digest};

use crate::notify::{self, Topic};
use crate::{Store, StoreError, clock};

/// An attempt to offer.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The tenant.
    pub organization: OrganizationId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The run.
    pub run: RunId,
    /// The phase.
    pub phase: Phase,
    /// Counts from 1 within the phase.
    pub number: u32,
    /// Where it must execute.
    pub region: String,
    /// On what.
    pub platform: String,
    /// The fence under which it writes; absent for a speculative run.
    pub fence: Option<Fence>,
    /// The approved digest; present exactly for an apply.
    pub binding: Option<Sha256Digest>,
    /// The state it starts from.
    pub predecessor: Predecessor,
}

/// Offers an attempt. Offering the same number again finds the first offer.
pub async fn offer(store: &Store, offer: &Offer) -> Result<AttemptId, StoreError> {
    let fresh: AttemptId = clock::fresh();
    let inserted: Option<String> = sqlx::query_scalar(
        "insert into record.attempts (attempt_id, organization_id, workspace_id, run_id, phase, number, region, \
             platform, fence, binding, predecessor) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
         on conflict (run_id, phase, number) do nothing returning attempt_id",
    )
    .bind(fresh.to_string())
    .bind(offer.organization.to_string())
    .bind(offer.workspace.to_string())
    .bind(offer.run.to_string())
    .bind(offer.phase.as_str())
    .bind(i32::try_from(offer.number).unwrap_or(i32::MAX))
    .bind(&offer.region)
    .bind(&offer.platform)
    .bind(offer.fence.map(Fence::number))
    .bind(offer.binding.map(|digest| digest.to_string()))
    .bind(serde_json::to_value(&offer.predecessor)?)
    .fetch_optional(&store.pool)
    .await?;
    if inserted.is_some() {
        notify::send(&store.pool, Topic::Attempts, &offer.run.to_string()).await?;
        return Ok(fresh);
    }
    let existing: String = sqlx::query_scalar(
        "select attempt_id from record.attempts where run_id = $1 and phase = $2 and number = $3",
    )
    .bind(offer.run.to_string())
    .bind(offer.phase.as_str())
    .bind(i32::try_from(offer.number).unwrap_or(i32::MAX))
    .fetch_one(&store.pool)
    .await?;
    existing
        .parse()
        .map_err(|_| StoreError::inconsistent("record.attempts", "attempt_id", existing))
}
