//! The text that a phase writes, by offset.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use stackship_store::phase_logs::{self, LogPhase, LogSlice};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::Data;
use super::body::{Path, Query};
use crate::auth::{InRun, RunRead};
use crate::{ApiError, App};

/// The most bytes one answer holds.
const LOG_READ_BYTES_MAX: usize = 512 * 1024;
/// The fewest bytes one may ask for: room for any character.
const LOG_READ_BYTES_MIN: usize = 4;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(log_read))
}

/// A part of a log.
#[derive(Serialize, ToSchema)]
struct LogView {
    /// The text; characters are never cut in two.
    text: String,
    /// What to pass as `offset` for what follows.
    next_offset: u64,
    /// Whether nothing will follow `next_offset`.
    closed: bool,
}

/// Which part is asked for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LogQuery {
    /// Where to begin, in bytes: 0 or an earlier `next_offset`.
    #[serde(default)]
    offset: u64,
    /// How many bytes at most: 4 to 524288, 524288 when absent.
    #[param(minimum = 4, maximum = 524_288)]
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct PhasePath {
    phase: String,
}

impl PhasePath {
    fn phase(&self) -> Result<LogPhase, ApiError> {
        [LogPhase::Plan, LogPhase::Policy, LogPhase::Apply]
            .into_iter()
            .find(|phase| phase.as_str() == self.phase)
            .ok_or_else(|| ApiError::Invalid {
                status: StatusCode::NOT_FOUND,
                code: "NOT_FOUND",
                field: "phase".to_owned(),
                message: "there is no such log; a run has `plan`, `policy` and `apply`".to_owned(),
            })
    }
}

/// Reads a part of a phase's log. `phase` is `plan`, `policy` or `apply`.
#[utoipa::path(get, path = "/v1/runs/{run}/logs/{phase}", tag = "runs",
    params(("run" = String, Path), ("phase" = String, Path), LogQuery),
    responses((status = 200, body = Data<LogView>)))]
async fn log_read(
    State(app): State<App>,
    may: InRun<RunRead>,
    Path(path): Path<PhasePath>,
    Query(query): Query<LogQuery>,
) -> Result<Data<LogView>, ApiError> {
    let phase = path.phase()?;
    let limit = query.limit.unwrap_or(LOG_READ_BYTES_MAX);
    if !(LOG_READ_BYTES_MIN..=LOG_READ_BYTES_MAX).contains(&limit) {
        let message = "`limit` is 4 to 524288";
        return Err(ApiError::unreadable("LOG_LIMIT_INVALID", "limit", message));
    }
    let (organization, run) = (may.run.organization, may.run.id);
    let slice = phase_logs::read(&app.store, organization, run, phase, query.offset, limit).await?;
    Ok(whole_characters(&slice).into())
}

/// Leaves a character that is not complete yet for the next part.
fn whole_characters(slice: &LogSlice) -> LogView {
    let is_end = slice.closed && slice.next_offset >= slice.total;
    let whole = match std::str::from_utf8(&slice.bytes) {
        Err(cut) if cut.error_len().is_none() && !is_end => cut.valid_up_to(),
        Ok(_) | Err(_) => slice.bytes.len(),
    };
    let left = u64::try_from(slice.bytes.len() - whole).unwrap_or_default();
    LogView {
        text: String::from_utf8_lossy(&slice.bytes[..whole]).into_owned(),
        next_offset: slice.next_offset - left,
        closed: is_end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(bytes: &[u8], closed: bool, total: u64) -> (String, u64, bool) {
        let view = whole_characters(&LogSlice {
            bytes: bytes.to_vec(),
            next_offset: 10 + bytes.len() as u64,
            closed,
            total,
        });
        (view.text, view.next_offset, view.closed)
    }

    #[test]
    fn no_character_is_cut_and_nothing_is_lost() {
        let text = "aé".as_bytes();
        assert_eq!(view(text, false, 13), ("aé".to_owned(), 13, false));
        assert_eq!(view(&text[..2], false, 13), ("a".to_owned(), 11, false));
        assert_eq!(
            view(&text[..2], true, 12),
            ("a\u{fffd}".to_owned(), 12, true)
        );
        assert_eq!(
            view(text, true, 20),
            ("aé".to_owned(), 13, false),
            "more follows"
        );
    }
}
