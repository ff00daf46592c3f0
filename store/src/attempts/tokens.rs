//! Who presents a secret of a lease.

use stackship_domain::Fence;
use stackship_domain::ids::{AttemptId, OrganizationId, RunId, WorkspaceId};
use stackship_domain::run::Phase;

use super::row::{AttemptRow, COLUMNS, parse};
use crate::records::secret::presented_digest;
use crate::{Store, StoreError};

/// Prefix of a lease token.
pub(super) const LEASE_TOKEN_PREFIX: &str = "ssl_";
/// Prefix of a run token.
pub(super) const RUN_TOKEN_PREFIX: &str = "ssx_";

/// Whom a run token speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPrincipal {
    /// The tenant.
    pub organization: OrganizationId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The run.
    pub run: RunId,
    /// The phase: a plan reads, an apply also writes state.
    pub phase: Phase,
    /// The attempt.
    pub attempt: AttemptId,
    /// The fence; absent for a speculative run.
    pub fence: Option<Fence>,
}

/// The attempt that this lease token was made for, open or not: a runner may repeat a result whose
/// answer was lost. Every write asks again whether the lease is still good.
pub async fn by_lease_token(
    store: &Store,
    attempt: AttemptId,
    presented: &str,
) -> Result<Option<AttemptRow>, StoreError> {
    let Some(digest) = presented_digest(LEASE_TOKEN_PREFIX, presented) else {
        return Ok(None);
    };
    let row = sqlx::query(&format!(
        "select {COLUMNS} from record.attempts where attempt_id = $1 and lease_token_sha256 = $2"
    ))
    .bind(attempt.to_string())
    .bind(digest.as_bytes().as_slice())
    .fetch_optional(&store.pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// Whom a run token speaks for, while its attempt is leased and open.
pub async fn by_run_token(
    store: &Store,
    presented: &str,
) -> Result<Option<RunPrincipal>, StoreError> {
    let Some(digest) = presented_digest(RUN_TOKEN_PREFIX, presented) else {
        return Ok(None);
    };
    let row = sqlx::query(&format!(
        "select {COLUMNS} from record.attempts \
         where run_token_sha256 = $1 and closed_at is null and lease_expires_at > clock_timestamp()"
    ))
    .bind(digest.as_bytes().as_slice())
    .fetch_optional(&store.pool)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let attempt = parse(&row)?;
    Ok(Some(RunPrincipal {
        organization: attempt.offer.organization,
        workspace: attempt.offer.workspace,
        run: attempt.offer.run,
        phase: attempt.offer.phase,
        attempt: attempt.id,
        fence: attempt.offer.fence,
    }))
}
