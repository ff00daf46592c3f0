//! Reading states.

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use stackship_domain::ids::StateVersionId;
use stackship_store::states::{self, Author, StateStatus, StateVersionRow};

use super::{resource, with_snapshots};
use crate::App;
use crate::artifacts::{self, Place, Recorded};
use crate::auth::{Caller, InWorkspace, OrRun, Principal, StateRead};
use crate::v2::access::{Reached, parameter};
use crate::v2::error::V2Error;
use crate::v2::urls::Base;
use crate::v2::wire::{Document, respond};

/// `GET workspaces/{workspace}/current-state-version`: the published state. A run gets back what it has
/// staged itself: without that, OpenTofu would begin a new lineage for every save of a first apply.
pub async fn current(
    State(app): State<App>,
    reached: Reached<StateRead>,
) -> Result<Response, V2Error> {
    let InWorkspace {
        caller, workspace, ..
    } = &reached.0;
    let staged = match &caller.principal {
        Principal::Run(run) => states::newest_staged(&app.store, run.organization, run.run).await?,
        Principal::User(_) => None,
    };
    let found = match staged {
        Some(row) => Some(row),
        None => states::current(&app.store, workspace.organization, workspace.id).await?,
    };
    let response = match found {
        Some(row) => {
            let resource = resource(&app, Base::of(caller), &row);
            respond(StatusCode::OK, &Document::of(resource))
        }
        None => V2Error::not_found("state version").into_response(),
    };
    Ok(with_snapshots(&app, caller, response))
}

/// May read the state version `{state}`: one that was published, or one of the calling run itself.
pub struct Readable {
    caller: Caller,
    row: StateVersionRow,
}

impl FromRequestParts<App> for Readable {
    type Rejection = V2Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, V2Error> {
        let hidden = || V2Error::not_found("state version");
        let caller = Caller::from_request_parts(parts, app).await?;
        let id: StateVersionId = parameter(parts, "state")
            .await
            .parse()
            .map_err(|_| hidden())?;
        let row = states::by_id(&app.store, caller.organization(), id)
            .await?
            .ok_or_else(hidden)?;
        let workspace = row.workspace.to_string();
        let may = InWorkspace::<OrRun<StateRead>>::find(app, caller, &workspace).await?;
        let is_own = matches!(&may.caller.principal, Principal::Run(run) if row.author == Author::Run(run.run));
        if row.status != StateStatus::Published && !is_own {
            return Err(hidden());
        }
        Ok(Self {
            caller: may.caller,
            row,
        })
    }
}

/// `GET state-versions/{state}`
pub async fn read(State(app): State<App>, readable: Readable) -> Response {
    let resource = resource(&app, Base::of(&readable.caller), &readable.row);
    let response = respond(StatusCode::OK, &Document::of(resource));
    with_snapshots(&app, &readable.caller, response)
}

/// `GET state-versions/{state}/download`: the exact bytes, with the caller's credential.
pub async fn download(State(app): State<App>, readable: Readable) -> Result<Response, V2Error> {
    let recorded = Recorded::state(&readable.row);
    let recorded = recorded.ok_or_else(|| V2Error::not_found("state version"))?;
    let place = Place {
        organization: readable.row.organization,
        workspace: readable.row.workspace,
    };
    let (_, reader) = artifacts::open(&app, place, recorded).await?;
    let headers = [
        (CONTENT_TYPE, "application/json".to_owned()),
        (CONTENT_LENGTH, reader.bytes().to_string()),
        (CACHE_CONTROL, "private, no-store".to_owned()),
    ];
    Ok((headers, Body::from_stream(reader)).into_response())
}
