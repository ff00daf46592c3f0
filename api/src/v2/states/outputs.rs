//! Outputs of the workspace's state. The client reads every sensitive one, whatever it was asked for.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use stackship_store::states::{self, StateStatus, StateVersionRow};

use crate::App;
use crate::auth::{Caller, Denied, InWorkspace, OrRun, StateRead, WorkspaceRead};
use crate::v2::access::{May, Reached};
use crate::v2::error::V2Error;
use crate::v2::mapping::{Output, outputs, parse_output_id};
use crate::v2::wire::{Document, Path, respond};

/// `GET workspaces/{workspace}/current-state-version-outputs`: an empty list while there is no state,
/// which the client takes for "no outputs"; a 404 it takes for a failure.
pub async fn current_outputs(
    State(app): State<App>,
    May(may): Reached<WorkspaceRead>,
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
    let seen = InWorkspace::<OrRun<WorkspaceRead>>::find(&app, caller, &workspace).await?;
    let output = stored(&app, &row)
        .await?
        .into_iter()
        .nth(number)
        .ok_or_else(hidden)?;
    if output.is_sensitive() {
        InWorkspace::<OrRun<StateRead>>::find(&app, seen.caller, &workspace)
            .await
            .map_err(withheld)?;
    }
    Ok(respond(
        StatusCode::OK,
        &Document::of(output.in_clear(state)),
    ))
}

fn withheld(denied: Denied) -> V2Error {
    match denied {
        Denied::Forbidden { permission } => V2Error::forbidden(
            "sensitive output",
            format!(
                "The workspace has sensitive outputs, and tofu output reads them all. That needs the permission {permission}; \
                 ask an operator or an owner of the organization."
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
