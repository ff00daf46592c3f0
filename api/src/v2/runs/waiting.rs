//! Notices that the client prints before the log: what the run waits for, what was left out of it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use stackship_domain::Timestamp;
use stackship_domain::ids::RunId;
use stackship_domain::run::{RunKind, Status};
use stackship_domain::workspace::Holder;
use stackship_projections::{RunReview, WorkspaceStatus};
use stackship_store::records::{runners, users};

use super::review;
use crate::App;
use crate::auth::{InRun, RunRead};
use crate::v2::access::{self, May};
use crate::v2::error::V2Error;
use crate::v2::urls;
use crate::v2::wire::{Document, Kind, RunEventAttributes, RunEventResource, respond};

/// One of the three actions whose description the client prints, as a warning.
const PRINTED: &str = "ignored_policy_sets";

/// `GET runs/{run}/run-events`: read once, right after the run was created. It must answer with a list;
/// without one the client gives up on a run that goes on.
pub async fn run_events(
    State(app): State<App>,
    May(may): May<InRun<RunRead>>,
) -> Result<Response, V2Error> {
    let review = review(&app, may.run.organization, may.run.id).await?;
    let workspace = app
        .views
        .workspace_status(may.run.organization, may.workspace.id)
        .await?;
    let mut notices = Vec::new();
    if review.facts.kind == RunKind::PlanAndApply
        && review.fence.is_none()
        && let Some(workspace) = &workspace
    {
        notices.extend(waits_for(&app, &may, workspace).await?);
    }
    if notices.is_empty() {
        notices.extend(lacks_a_runner(&app, &review).await?);
    }
    let warnings = review.to_be_known(workspace.as_ref());
    notices.extend(warnings.iter().map(|warning| Notice {
        text: warning.sentence(),
        since: review.updated_at,
    }));
    notices.extend(left_out(&review));
    let events = notices.into_iter().enumerate().map(|(number, notice)| {
        let attributes = RunEventAttributes {
            action: PRINTED,
            description: notice.text,
            created_at: notice.since,
        };
        let id = format!("re-{}-{number}", review.run);
        RunEventResource::plain(Kind::RunEvents, id, attributes)
    });
    Ok(respond(StatusCode::OK, &Document::list(events.collect())))
}

/// Something to tell, and since when it is so.
struct Notice {
    text: String,
    since: Timestamp,
}

/// That nobody is there who could take the run: the log would stay empty without a word.
async fn lacks_a_runner(app: &App, review: &RunReview) -> Result<Option<Notice>, V2Error> {
    if review.status != Status::Queued {
        return Ok(None);
    }
    let (region, platform) = (&review.facts.pins.region, &review.facts.pins.platform);
    let presence = runners::presence(&app.store.pool, region, platform).await?;
    Ok(presence.absence(region, platform).map(|absence| Notice {
        text: format!(
            "Waits for a runner, and {absence}. Whoever runs this installation starts one, or gives the workspace another \
             region."
        ),
        since: review.facts.created_at,
    }))
}

/// Who has to be done before this run begins.
async fn waits_for(
    app: &App,
    may: &InRun<RunRead>,
    status: &WorkspaceStatus,
) -> Result<Option<Notice>, V2Error> {
    let (organization, workspace) = (may.run.organization, &may.workspace);
    let Some(lock) = &status.lock else {
        return Ok(None);
    };
    let ahead = ahead(status, may.run.id);
    let text = match lock.holder {
        Holder::Run { run } if run == may.run.id => return Ok(None),
        Holder::Run { run } => {
            let name = access::organization_of(app, &may.caller).await?.name;
            let page = urls::run_page(app, name.as_str(), workspace.name.as_str(), run);
            let holding = app.views.review(organization, run).await?;
            format!(
                "Waits for {run}, {}.{ahead} See {page}",
                holding.as_ref().map_or_else(working, doing)
            )
        }
        Holder::User { user } => {
            let names = users::display_names(&app.store.pool, &[user]).await?;
            let name = names.get(&user).map_or("somebody", String::as_str);
            let why = lock
                .reason
                .as_ref()
                .map_or_else(String::new, |reason| format!(" ({reason})"));
            format!(
                "Waits for the workspace's lock, which {name} holds since {}{why}.{ahead}",
                lock.since
            )
        }
    };
    Ok(Some(Notice {
        text,
        since: lock.since,
    }))
}

/// How many runs have come before this one, if any; one that was created just now may not be in the
/// queue yet, and will be its last.
fn ahead(status: &WorkspaceStatus, run: RunId) -> String {
    let before = status
        .place_of(run)
        .map_or(status.queue.len(), |place| place.position - 1);
    match before {
        0 => String::new(),
        1 => " 1 other run comes before this one.".to_owned(),
        many => format!(" {many} other runs come before this one."),
    }
}

fn working() -> String {
    "which holds the workspace's lock".to_owned()
}

/// What the run that holds the lock is about.
fn doing(holding: &RunReview) -> String {
    let since = holding.updated_at;
    match holding.status {
        Status::AwaitingApproval => format!("which awaits approval since {since}"),
        Status::OverrideRequired => format!("which awaits a policy override since {since}"),
        Status::RecoveryRequired => {
            format!(
                "which is in doubt since {since} and keeps the workspace locked until an owner resolves it: \
                 GET /v1/runs/{}/recovery says how",
                holding.run
            )
        }
        Status::Planning | Status::Planned | Status::PolicyChecking => {
            "which is planning".to_owned()
        }
        Status::Approved | Status::Applying => "which is applying".to_owned(),
        Status::Queued
        | Status::Canceling
        | Status::Applied
        | Status::NoChanges
        | Status::SpeculativeFinished
        | Status::Failed
        | Status::Discarded
        | Status::Expired
        | Status::Canceled
        | Status::PlanCredentialsRequired
        | Status::Recovered => working(),
    }
}

/// Sensitive variables that a speculative plan does not get (S-SRC-4).
fn left_out(review: &RunReview) -> Option<Notice> {
    let keys = &review.facts.withheld_variables;
    (!keys.is_empty()).then(|| Notice {
        text: format!(
            "This plan-only run does not get the workspace's sensitive variables: {}.",
            keys.join(", ")
        ),
        since: review.facts.created_at,
    })
}
