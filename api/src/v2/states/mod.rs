//! States. Read by whoever may read state, written by an applying run alone (S-STA-1).

mod outputs;
mod read;
mod write;
mod writer;

pub use outputs::{current_outputs, one_output};
pub use read::{current, download, read};
pub use write::{OUTPUTS_REQUEST_BYTES_MAX, begin, put_json, put_raw};

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use stackship_store::states::{StateStatus, StateVersionRow};

use super::urls::{self, Base};
use super::wire::{Kind, StateAttributes, StateRelationships, StateResource, ToOne};
use crate::App;
use crate::auth::{Caller, Principal};

/// How often an applying OpenTofu saves its state on the way, in seconds.
const SNAPSHOT_INTERVAL: HeaderName = HeaderName::from_static("x-terraform-snapshot-interval");

fn resource(app: &App, base: Base, row: &StateVersionRow) -> StateResource {
    StateResource {
        id: row.id.to_string(),
        kind: Kind::StateVersions,
        attributes: StateAttributes {
            serial: row.serial,
            created_at: row.created_at,
            status: match row.status {
                StateStatus::Pending | StateStatus::Staged => "pending",
                StateStatus::Published => "finalized",
            },
            hosted_state_download_url: urls::api(
                app,
                base,
                &format!("state-versions/{}/download", row.id),
            ),
            hosted_state_upload_url: None,
            hosted_json_state_upload_url: None,
        },
        relationships: StateRelationships {
            run: row
                .author
                .run()
                .map_or(ToOne::NONE, |run| ToOne::to(Kind::Runs, run)),
        },
    }
}

/// Asks an applying run to save its state on the way: if its sandbox is killed, the last save is the
/// best that is known. The client reads the header even from a 404.
fn with_snapshots(app: &App, caller: &Caller, mut response: Response) -> Response {
    if matches!(caller.principal, Principal::Run(_)) {
        let seconds = HeaderValue::from(app.settings.snapshot_interval_seconds);
        response.headers_mut().insert(SNAPSHOT_INTERVAL, seconds);
    }
    response
}
