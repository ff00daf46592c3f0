//! An attempt as it is stored.

use sqlx::PgPool;
use sqlx::postgres::PgRow;
use stackship_domain::ids::{AttemptId, RunId, RunnerId};
use stackship_domain::run::Phase;
use stackship_domain::{Fence, Timestamp};

use super::Offer;
use crate::StoreError;
use crate::columns::Columns;

/// An attempt, as it is stored.
#[derive(Debug, Clone)]
pub struct AttemptRow {
    /// Which one.
    pub id: AttemptId,
    /// What was offered.
    pub offer: Offer,
    /// Who leased it.
    pub runner: Option<RunnerId>,
    /// When the lease ends.
    pub lease_expires_at: Option<Timestamp>,
    /// When `tofu apply` was about to start.
    pub tofu_started_at: Option<Timestamp>,
    /// When somebody asked it to stop.
    pub cancel_requested_at: Option<Timestamp>,
    /// What the runner reported.
    pub result: Option<serde_json::Value>,
    /// When it was closed.
    pub closed_at: Option<Timestamp>,
    /// Why it was closed.
    pub close_cause: Option<CloseCause>,
}

/// Why an attempt was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseCause {
    /// Its result is in.
    Result,
    /// Its lease ran out.
    LeaseExpired,
    /// Its runner gave it back.
    HandedBack,
    /// Its run ended before anybody leased it.
    Withdrawn,
}

impl CloseCause {
    const ALL: [Self; 4] = [
        Self::Result,
        Self::LeaseExpired,
        Self::HandedBack,
        Self::Withdrawn,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::LeaseExpired => "lease_expired",
            Self::HandedBack => "handed_back",
            Self::Withdrawn => "withdrawn",
        }
    }
}

pub(super) const COLUMNS: &str = "attempt_id, organization_id, workspace_id, run_id, phase, number, region, platform, fence, \
     binding, predecessor, runner_id, lease_expires_at, tofu_started_at, cancel_requested_at, result, closed_at, close_cause";

/// Every attempt of a run, oldest first.
pub async fn of_run(pool: &PgPool, run: RunId) -> Result<Vec<AttemptRow>, StoreError> {
    let rows = sqlx::query(&format!(
        "select {COLUMNS} from record.attempts where run_id = $1 order by offered_at, number"
    ))
    .bind(run.to_string())
    .fetch_all(pool)
    .await?;
    rows.iter().map(parse).collect()
}

pub(super) fn parse(row: &PgRow) -> Result<AttemptRow, StoreError> {
    let columns = Columns::new(row, "record.attempts", "attempt_id")?;
    let offer = Offer {
        organization: columns.parsed("organization_id")?,
        workspace: columns.parsed("workspace_id")?,
        run: columns.parsed("run_id")?,
        phase: columns.member("phase", &[Phase::Plan, Phase::Apply], Phase::as_str)?,
        number: columns.small_count("number")?,
        region: columns.plain("region")?,
        platform: columns.plain("platform")?,
        fence: columns
            .plain::<Option<i64>>("fence")?
            .map(Fence::from_stored),
        binding: columns.parsed_or_null("binding")?,
        predecessor: columns.document("predecessor")?,
    };
    Ok(AttemptRow {
        id: columns.parsed("attempt_id")?,
        offer,
        runner: columns.parsed_or_null("runner_id")?,
        lease_expires_at: columns.time_or_null("lease_expires_at")?,
        tofu_started_at: columns.time_or_null("tofu_started_at")?,
        cancel_requested_at: columns.time_or_null("cancel_requested_at")?,
        result: columns.plain("result")?,
        closed_at: columns.time_or_null("closed_at")?,
        close_cause: columns.member_or_null("close_cause", &CloseCause::ALL, CloseCause::as_str)?,
    })
}
