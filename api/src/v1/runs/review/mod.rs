//! Everything that a reviewer needs of a run, as one document: whoever shows it only has to render it
//! (S-REV-1 to S-REV-19).
//!
//! The read model says what happened. `stored` looks up what else was written down, and `document` puts
//! it together: pure, so that each situation is a test. What somebody could do next is asked of the
//! run's own rules. What must stay behind this edge (keys of objects, reports of runners, documents
//! with secrets) is left out by taking over each field by name.

mod actions;
mod downloads;
mod ending;
mod evidence;
mod guidance;
mod header;
mod known;
mod people;
mod recovery;
mod stages;
mod stored;
#[cfg(test)]
mod tests;

use axum::extract::State;
use serde::Serialize;
use stackship_domain::Timestamp;
use stackship_domain::run::Run;
use stackship_projections::RunReview;
use stackship_store::clock;
use stackship_store::records::workspaces::Workspace;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::waiting::{WaitingFor, tell_status_ahead, waiting_for};
use super::warnings::WarningView;
use crate::auth::{InRun, RunRead, Viewer};
use crate::v1::answer::Data;
use crate::v1::schema;
use crate::{ApiError, App};
use actions::{Asked, AvailableAction};
use downloads::{Download, downloads};
use ending::Ended;
use evidence::EvidenceFacts;
use guidance::Guidance;
use header::Header;
use people::Names;
use recovery::{Doubted, RecoveryFacts};
use stages::Stages;
use stored::Stored;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(run_review))
}

/// A run as a reviewer needs it.
#[derive(Debug, Serialize, ToSchema)]
struct ReviewDocument {
    /// The number of the newest event in here: it grows with every change of the run.
    sequence: i64,
    /// When that event was recorded.
    #[schema(schema_with = schema::time)]
    updated_at: Timestamp,
    /// What the run is.
    header: Header,
    /// What to do next.
    guidance: Guidance,
    /// What it waits for; null while somebody works on it, and once it has ended.
    waiting_for: Option<WaitingFor>,
    /// What somebody should know before the plan is approved.
    warnings: Vec<WarningView>,
    /// What this caller could decide now.
    available_actions: Vec<AvailableAction>,
    /// The timeline.
    stages: Stages,
    /// The doubt about its apply; null when there never was one.
    recovery: Option<RecoveryFacts>,
    /// How it ended; null before.
    ended: Option<Ended>,
    /// What can be downloaded; null for somebody who could never download anything of it.
    downloads: Option<Vec<Download>>,
    /// What planned, judged and applied it.
    evidence: EvidenceFacts,
}

/// Reads everything that a reviewer needs of a run, with what the caller could do next. A field that is
/// an object with a `kind` says whether the value was recorded, was never recorded, or cannot be read.
#[utoipa::path(get, path = "/v1/runs/{run}/review", tag = "runs",
    params(("run" = String, Path)),
    responses((status = 200, body = Data<ReviewDocument>)))]
async fn run_review(
    State(app): State<App>,
    may: InRun<RunRead>,
) -> Result<Data<ReviewDocument>, ApiError> {
    let review = app.views.review(may.run.organization, may.run.id).await?;
    let review = review.ok_or(ApiError::Behind { run: may.run.id })?;
    let run = review.run_state().ok_or_else(|| {
        ApiError::Internal(format!("the review of {} lacks what it stands on", review.run).into())
    })?;
    let found = Found {
        viewer: may.viewer(&app).await?,
        now: clock::now(),
        names: stored::names(&app, &review).await?,
        stored: Stored::read(&app, &may.run, &review).await?,
        doubted: stored::doubted(&app, &may, &review).await?,
    };
    let mut document = document(&review, &run, &may.workspace, found);
    tell_status_ahead(&app, may.run.organization, document.waiting_for.as_mut()).await?;
    Ok(document.into())
}

/// What was found out for one caller.
struct Found {
    viewer: Viewer,
    now: Timestamp,
    names: Names,
    stored: Stored,
    doubted: Option<Doubted>,
}

fn document(review: &RunReview, run: &Run, workspace: &Workspace, found: Found) -> ReviewDocument {
    let Found {
        viewer,
        now,
        names,
        stored,
        doubted,
    } = found;
    let waiting_for = waiting_for(review, stored.workspace.as_ref(), stored.runners);
    let warnings = review.to_be_known(stored.workspace.as_ref());
    let asked = Asked {
        run,
        viewer,
        now,
        ends: doubted.as_ref().map(Doubted::ends),
    };
    ReviewDocument {
        sequence: review.last_sequence,
        updated_at: review.updated_at,
        header: Header::of(review, workspace, &names),
        guidance: Guidance::of(review, waiting_for.as_ref()),
        waiting_for,
        warnings: warnings.iter().map(Into::into).collect(),
        available_actions: asked.available(),
        stages: Stages::of(review, &stored, &names, now),
        recovery: RecoveryFacts::of(review, &stored, doubted, &names),
        ended: Ended::of(review, &names, stored.log_tail.clone()),
        downloads: downloads(review, &stored, viewer),
        evidence: EvidenceFacts::of(review, &stored.attempts),
    }
}
