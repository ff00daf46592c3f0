//! Whether the process lives, and whether it can do its work.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use stackship_projections::checkpoint;

use crate::App;

/// How long the database may take to answer.
const DATABASE_ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// The routes, with the permission that none of them needs.
pub const ROUTES: &[(&str, &str)] = &[("GET", "/healthz"), ("GET", "/readyz")];

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
}

async fn healthz() -> Json<Value> {
    Json(json!({"status": "alive"}))
}

/// Ready means that the database answers and its read models are there. How far they are behind is
/// a metric and an alarm: a replica that steps aside would not make them faster.
async fn readyz(State(app): State<App>) -> (StatusCode, Json<Value>) {
    let look = checkpoint(&app.store.pool);
    match tokio::time::timeout(DATABASE_ANSWER_LIMIT, look).await {
        Ok(Ok(Some(_))) => (StatusCode::OK, Json(json!({"status": "ready"}))),
        Ok(Ok(None)) => unready("the database has no read models; run the migrations"),
        Ok(Err(_)) => unready("the database answers with an error"),
        Err(_) => unready("the database does not answer"),
    }
}

fn unready(why: &str) -> (StatusCode, Json<Value>) {
    let body = json!({"status": "not_ready", "reason": why});
    (StatusCode::SERVICE_UNAVAILABLE, Json(body))
}
