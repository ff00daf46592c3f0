//! Whether the process lives, and whether it can do its work.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use stackship_projections::lag;

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

/// Ready means that the database answers and that its read models tell what is: people decide by
/// what they read, so a process that would show them an old world steps aside.
async fn readyz(State(app): State<App>) -> (StatusCode, Json<Value>) {
    let bound = Duration::from_secs(app.settings.ready_lag_seconds.into());
    match tokio::time::timeout(DATABASE_ANSWER_LIMIT, lag(&app.store.pool)).await {
        Ok(Ok(Some(lag))) if lag <= bound => (StatusCode::OK, Json(json!({"status": "ready"}))),
        Ok(Ok(Some(_))) => {
            unready("the read models are too far behind the log; see the server's log")
        }
        Ok(Ok(None)) => unready("the database has no read models; run the migrations"),
        Ok(Err(_)) => unready("the database answers with an error"),
        Err(_) => unready("the database does not answer"),
    }
}

fn unready(why: &str) -> (StatusCode, Json<Value>) {
    let body = json!({"status": "not_ready", "reason": why});
    (StatusCode::SERVICE_UNAVAILABLE, Json(body))
}
