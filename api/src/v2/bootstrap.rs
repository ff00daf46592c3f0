//! What every command of the client asks first, and how busy an organization is.

use axum::extract::State;
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use stackship_domain::run::Status;
use stackship_projections::{InventoryFilter, InventoryRow, PAGE_ROWS_MAX};

use super::access::Own;
use super::error::V2Error;
use super::mapping::listed_status;
use super::wire::{
    CapacityAttributes, CapacityResource, Document, EntitlementAttributes, EntitlementResource,
    Kind, ListedRun, ListedRunAttributes, respond,
};
use crate::App;

/// The version of the protocol; below 2.5 the client refuses to work at all.
const API_VERSION: (HeaderName, &str) = (HeaderName::from_static("tfp-api-version"), "2.6");
/// Any name but that of the protocol's first product, for which the client does more.
const APP_NAME: (HeaderName, &str) = (HeaderName::from_static("tfp-appname"), "StackShip");

/// `GET ping`: its headers are all that counts. It needs no credential.
pub async fn ping() -> Response {
    (StatusCode::NO_CONTENT, [API_VERSION, APP_NAME]).into_response()
}

/// `GET organizations/{organization}/entitlement-set`
pub async fn entitlements(own: Own) -> Response {
    let resource = EntitlementResource::plain(
        Kind::EntitlementSets,
        own.organization.id,
        EntitlementAttributes::OFFERED,
    );
    respond(StatusCode::OK, &Document::of(resource))
}

/// `GET organizations/{organization}/capacity`
pub async fn capacity(State(app): State<App>, own: Own) -> Result<Response, V2Error> {
    let attributes = CapacityAttributes {
        pending: standing(&app, &own, Status::Queued).await?.len(),
        running: running(&app, &own).await?,
    };
    let name = &own.organization.name;
    let resource = CapacityResource::plain(Kind::OrganizationCapacity, name, attributes);
    Ok(respond(StatusCode::OK, &Document::of(resource)))
}

/// `GET organizations/{organization}/runs/queue`
///
/// The client subtracts the number of running runs from a position and prints the rest as "waiting for
/// N queued run(s)". So a position counts the runs ahead and the running ones, and is 0 for whoever is
/// next. Only the caller's own runs are listed: the client looks for one of them, and of others' runs
/// it needs no more than their number.
pub async fn queue(State(app): State<App>, own: Own) -> Result<Response, V2Error> {
    let running = running(&app, &own).await?;
    let mut waiting = standing(&app, &own, Status::Queued).await?;
    waiting.reverse();
    let runs = waiting
        .iter()
        .enumerate()
        .filter(|(_, row)| row.created_by == own.caller.actor())
        .map(|(ahead, row)| listed(row, if ahead == 0 { 0 } else { ahead + running }))
        .collect();
    Ok(respond(StatusCode::OK, &Document::list(runs)))
}

/// A run in a list.
pub fn listed(row: &InventoryRow, position_in_queue: usize) -> ListedRun {
    let attributes = ListedRunAttributes {
        status: listed_status(row.status),
        created_at: row.created_at,
        position_in_queue,
    };
    ListedRun::plain(Kind::Runs, row.run, attributes)
}

async fn running(app: &App, own: &Own) -> Result<usize, V2Error> {
    let planning = standing(app, own, Status::Planning).await?.len();
    Ok(planning + standing(app, own, Status::Applying).await?.len())
}

/// The newest runs that stand here: enough for a line on a terminal, however many there are.
async fn standing(app: &App, own: &Own, status: Status) -> Result<Vec<InventoryRow>, V2Error> {
    let filter = InventoryFilter {
        status: Some(status),
        workspace: None,
    };
    let page = app
        .views
        .inventory_page(own.organization.id, filter, None, PAGE_ROWS_MAX)
        .await?;
    Ok(page.rows)
}
