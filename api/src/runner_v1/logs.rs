//! What a phase writes, in numbered chunks.

use axum::extract::State;
use axum::http::StatusCode;
use stackship_domain::run::Phase;
use stackship_store::phase_logs::{self, AppendOutcome, Chunk, LogPhase};

use super::attempt::LiveHolder;
use super::extract::{Query, Raw};
use super::failure::Failure;
use crate::App;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    sequence: u64,
}

pub(super) async fn append(
    State(app): State<App>,
    LiveHolder(row): LiveHolder,
    Query(place): Query<Place>,
    Raw(body): Raw,
) -> Result<StatusCode, Failure> {
    let phase = match row.offer.phase {
        Phase::Plan => LogPhase::Plan,
        Phase::Apply => LogPhase::Apply,
    };
    let chunk = Chunk {
        attempt_number: row.offer.number,
        sequence: place.sequence,
        bytes: &body,
    };
    match phase_logs::append(&app.store, row.offer.run, phase, chunk).await? {
        AppendOutcome::Stored { .. } | AppendOutcome::Repeated | AppendOutcome::Full => {
            Ok(StatusCode::NO_CONTENT)
        }
        AppendOutcome::Gap { expected } => Err(Failure::Gap(expected)),
    }
}
