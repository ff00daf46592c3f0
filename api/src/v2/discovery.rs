//! Where this edge is, and pages that the client names to people.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use stackship_domain::ids::RunId;

use super::error::V2Error;
use super::wire::Path;
use crate::{App, front};

/// `GET /.well-known/terraform.json`
///
/// All three names are published: without `tfe.v2.1` and `state.v2` some commands of the client end in
/// a panic instead of an answer. Runs of the older backend are refused where they are created.
pub async fn document() -> Json<Value> {
    const PATH: &str = "/api/v2/";
    Json(json!({"tfe.v2": PATH, "tfe.v2.1": PATH, "state.v2": PATH}))
}

/// `GET /app/{organization}/{workspace}/runs/{run}`: the address that the client prints for every run.
/// People open it in a browser, which has no token. It says the same of every run, be it there or not.
pub async fn run_page(
    State(app): State<App>,
    Path((_, _, run)): Path<(String, String, String)>,
) -> Result<impl IntoResponse, V2Error> {
    // Parsed, so that nothing but an id comes back from the address.
    let run: RunId = run.parse().map_err(|_| V2Error::not_found("run"))?;
    let url = &app.settings.public_url;
    Ok(front::page(format!(
        "StackShip has no pages for runs yet. Whoever may read this run gets it, as JSON, with a token:\n\n\
         curl -H \"Authorization: Bearer $TOKEN\" {url}/v1/runs/{run}\n\
         curl -H \"Authorization: Bearer $TOKEN\" {url}/v1/runs/{run}/logs/plan\n"
    )))
}
