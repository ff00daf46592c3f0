//! Outputs of the workspace's state. The client reads every sensitive one, whatever it was asked for.
//!
//! Values leave here as they are: the client computes with them. An output that is not marked sensitive
//! may well hold a sensitive variable of the workspace, of which OpenTofu knows nothing, so all of them
//! ask for what the state itself asks for.

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use stackship_store::states::{self, StateStatus, StateVersionRow};

use crate::App;
use crate::auth::{Caller, Denied, InWorkspace, OrRun, StateRead};
use crate::v2::access::May;
use crate::v2::error::V2Error;
use crate::v2::mapping::{Output, outputs, parse_output_id};
use crate::v2::wire::{Document, Path, respond};

/// `GET workspaces/{workspace}/current-state-version-outputs`: an empty list while there is no state,
/// which the client takes for "no outputs"; a 404 it takes for a failure.
pub async fn current_outputs(
    State(app): State<App>,
    Reads(may): Reads,
) -> Result<Response, V2Error> {
    let (organization, workspace) = (may.workspace.organization, may.workspace.id);
    let listed = match states::current(&app.store, organization, workspace).await? {
        None => Vec::new(),
        Some(row) => {
            let found = stored(&app, &row).await?;
            found
                .into_iter()
                .map(|output| output.withheld(row.id))
                .collect()
        }
    };
    Ok(respond(StatusCode::OK, &Document::list(listed)))
}

/// `GET state-version-outputs/{output}`
pub async fn one_output(
    State(app): State<App>,
    May(caller): May<Caller>,
    Path(id): Path<String>,
) -> Result<Response, V2Error> {
    let hidden = || V2Error::not_found("output");
    let (state, number) = parse_output_id(&id).ok_or_else(hidden)?;
    let row = states::by_id(&app.store, caller.organization(), state)
        .await?
        .filter(|row| row.status == StateStatus::Published)
        .ok_or_else(hidden)?;
    let workspace = row.workspace.to_string();
    InWorkspace::<OrRun<StateRead>>::find(&app, caller, &workspace)
        .await
        .map_err(withheld)?;
    let output = stored(&app, &row)
        .await?
        .into_iter()
        .nth(number)
        .ok_or_else(hidden)?;
    Ok(respond(
        StatusCode::OK,
        &Document::of(output.in_clear(state)),
    ))
}

/// May read the outputs of the workspace `{workspace}`.
pub struct Reads(InWorkspace<OrRun<StateRead>>);

impl FromRequestParts<App> for Reads {
    type Rejection = V2Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, V2Error> {
        let may = InWorkspace::from_request_parts(parts, app).await;
        may.map(Self).map_err(withheld)
    }
}

fn withheld(denied: Denied) -> V2Error {
    match denied {
        Denied::Forbidden { permission } => V2Error::forbidden(
            "outputs withheld",
            format!(
                "Outputs are part of the state, and reading them needs the permission {permission}; ask an operator or an \
                 owner of the organization."
            ),
        ),
        other => other.into(),
    }
}

async fn stored(app: &App, row: &StateVersionRow) -> Result<Vec<Output>, V2Error> {
    let Some(document) = states::outputs(&app.store, row).await? else {
        return Ok(Vec::new());
    };
    outputs(document).ok_or_else(|| V2Error::internal("a stored outputs document is not one"))
}
