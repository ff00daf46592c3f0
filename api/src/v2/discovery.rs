//! Where this edge is, and pages that the client names to people.

use axum::Json;
use axum::extract::State;
use axum::response::Redirect;
use serde_json::{Value, json};
use stackship_domain::ids::RunId;

use super::error::V2Error;
use super::wire::Path;
use crate::App;

/// `GET /.well-known/terraform.json`
///
/// All three names are published: without `tfe.v2.1` and `state.v2` some commands of the client end in
/// a panic instead of an answer. Runs of the older backend are refused where they are created.
pub async fn document() -> Json<Value> {
    const PATH: &str = "/api/v2/";
    Json(json!({"tfe.v2": PATH, "tfe.v2.1": PATH, "state.v2": PATH}))
}

/// `GET /app/{organization}/{workspace}/runs/{run}`: the address that the client prints for every run.
pub async fn run_page(
    State(app): State<App>,
    Path((_, _, run)): Path<(String, String, String)>,
) -> Result<Redirect, V2Error> {
    // Parsed, so that nothing but an id goes into the address.
    let run: RunId = run.parse().map_err(|_| V2Error::not_found("run"))?;
    Ok(Redirect::temporary(&format!(
        "{}/v1/runs/{run}",
        app.settings.public_url
    )))
}
