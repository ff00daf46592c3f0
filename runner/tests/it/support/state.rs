//! The requests of `/api/v2` that a run makes, with states kept in memory.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde_json::{Value, json};
use stackship_domain::Sha256Digest;
use stackship_domain::ids::StateVersionId;
use stackship_domain::run::{Phase, Predecessor};

use super::control_plane::ControlPlane;
use super::leases::fresh_state;

/// Where the gateway is, seen from a sandbox.
const GATEWAY: &str = "http://127.0.0.1:8080";

#[derive(Clone)]
pub struct StateVersion {
    pub id: StateVersionId,
    pub serial: i64,
    pub lineage: String,
    pub bytes: Vec<u8>,
}

#[derive(Default)]
pub struct States {
    published: Option<StateVersion>,
    staged: Vec<StateVersion>,
    refuse_uploads: bool,
}

impl States {
    pub fn predecessor(&self) -> Predecessor {
        match &self.published {
            None => Predecessor::None,
            Some(state) => Predecessor::Version {
                id: state.id,
                serial: state.serial,
                digest: Sha256Digest::of(&state.bytes),
            },
        }
    }

    fn current(&self) -> Option<&StateVersion> {
        self.staged
            .iter()
            .rev()
            .find(|state| !state.bytes.is_empty())
            .or(self.published.as_ref())
    }
}

impl ControlPlane {
    /// The states that this run uploaded, oldest first.
    pub fn staged(&self) -> Vec<StateVersion> {
        self.states.lock().unwrap().staged.clone()
    }

    /// Makes the newest staged state the workspace's.
    pub fn publish(&self) {
        let mut states = self.states.lock().unwrap();
        let newest = states.staged.pop();
        states.published = newest;
        states.staged.clear();
    }

    /// Answers uploads of states with an error that OpenTofu does not retry.
    pub fn refuse_uploads(&self) {
        self.states.lock().unwrap().refuse_uploads = true;
    }
}

type Shared = Arc<ControlPlane>;

pub fn router() -> Router<Shared> {
    Router::new()
        .route(
            "/api/v2/ping",
            get(async || ([("tfp-api-version", "2.6")], StatusCode::NO_CONTENT)),
        )
        .route(
            "/api/v2/organizations/{organization}/entitlement-set",
            get(entitlements),
        )
        .route(
            "/api/v2/organizations/{organization}/workspaces/{name}",
            get(workspace),
        )
        .route(
            "/api/v2/workspaces/{workspace}/current-state-version",
            get(current),
        )
        .route("/api/v2/workspaces/{workspace}/state-versions", post(begin))
        .route("/api/v2/state-versions/{id}", get(read))
        .route("/transfer/{id}/state", get(download).put(upload))
        .route("/transfer/{id}/json", put(async || StatusCode::NO_CONTENT))
}

fn document(value: Value) -> Response {
    ([("content-type", "application/vnd.api+json")], Json(value)).into_response()
}

async fn entitlements() -> Response {
    document(
        json!({ "data": { "type": "entitlement-sets", "id": "org-1", "attributes": {
        "operations": true, "state-storage": true } } }),
    )
}

async fn workspace(
    State(shared): State<Shared>,
    Path((_, name)): Path<(String, String)>,
) -> Response {
    let lease = shared.current();
    if name != lease.workspace_name.as_str() {
        return StatusCode::NOT_FOUND.into_response();
    }
    document(
        json!({ "data": { "type": "workspaces", "id": lease.workspace, "attributes": {
        "name": name, "execution-mode": "remote", "operations": true, "terraform-version": lease.tofu_version,
        "locked": false, "auto-apply": false, "working-directory": "", "structured-run-output-enabled": false,
        "permissions": { "can-update": true, "can-queue-run": true, "can-lock": true, "can-unlock": true } } } }),
    )
}

fn state_document(state: &StateVersion) -> Value {
    let url = format!("{GATEWAY}/transfer/{}", state.id);
    json!({ "data": { "type": "state-versions", "id": state.id, "attributes": {
        "serial": state.serial, "status": "finalized", "hosted-state-download-url": format!("{url}/state"),
        "hosted-state-upload-url": format!("{url}/state"),
        "hosted-json-state-upload-url": format!("{url}/json") } } })
}

async fn current(State(shared): State<Shared>) -> Response {
    let states = shared.states.lock().unwrap();
    match states.current() {
        None => StatusCode::NOT_FOUND.into_response(),
        Some(state) => {
            let mut found = state_document(state);
            let attributes = found["data"]["attributes"].as_object_mut().unwrap();
            attributes.retain(|name, _| !name.contains("upload"));
            document(found)
        }
    }
}

async fn begin(State(shared): State<Shared>, Json(body): Json<Value>) -> Response {
    let attributes = &body["data"]["attributes"];
    assert_eq!(
        shared.current().phase,
        Phase::Apply,
        "a plan announced a state"
    );
    assert_eq!(
        body["data"]["relationships"]["run"]["data"]["id"],
        json!(shared.current().run)
    );
    let mut states = shared.states.lock().unwrap();
    if states.refuse_uploads {
        return StatusCode::UNPROCESSABLE_ENTITY.into_response();
    }
    let state = StateVersion {
        id: fresh_state(),
        serial: attributes["serial"].as_i64().unwrap(),
        lineage: attributes["lineage"].as_str().unwrap().to_owned(),
        bytes: Vec::new(),
    };
    let answer = state_document(&state);
    states.staged.push(state);
    (StatusCode::CREATED, document(answer)).into_response()
}

async fn upload(
    State(shared): State<Shared>,
    Path(id): Path<StateVersionId>,
    body: Bytes,
) -> StatusCode {
    let mut states = shared.states.lock().unwrap();
    let state = states
        .staged
        .iter_mut()
        .find(|state| state.id == id)
        .unwrap();
    state.bytes = body.to_vec();
    StatusCode::NO_CONTENT
}

async fn download(State(shared): State<Shared>, Path(id): Path<StateVersionId>) -> Response {
    let states = shared.states.lock().unwrap();
    let mut all = states.staged.iter().chain(&states.published);
    all.find(|state| state.id == id)
        .map_or(StatusCode::NOT_FOUND.into_response(), |state| {
            state.bytes.clone().into_response()
        })
}

async fn read(State(shared): State<Shared>, Path(id): Path<StateVersionId>) -> Response {
    let states = shared.states.lock().unwrap();
    let found = states.staged.iter().find(|state| state.id == id);
    found.map_or(StatusCode::NOT_FOUND.into_response(), |state| {
        document(state_document(state))
    })
}
