//! The organization's history: searched by the page, and exported whole.

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use serde::{Deserialize, Serialize};
use stackship_domain::ids::{RunId, WorkspaceId};
use stackship_domain::{Actor, Sha256Digest, Timestamp};
use stackship_projections::audit::{AuditEntry, AuditExport, AuditFilter};
use stackship_projections::{PageError, ProjectionError};
use stackship_store::clock;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::List;
use super::body::{self, Query};
use super::schema;
use crate::auth::{AuditRead, InOrganization};
use crate::{ApiError, App};

/// What an export is.
const NDJSON: &str = "application/x-ndjson";
/// The longest name of an event.
const TYPE_CHARS_MAX: usize = 64;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(audit_list))
        .routes(routes!(audit_export))
}

/// Whose event it is.
#[derive(Serialize, ToSchema)]
struct AggregateView {
    /// `run`, `workspace` or `fact`.
    #[serde(rename = "type")]
    kind: String,
    /// Its id.
    id: String,
    /// The event's number among its events, from 1.
    sequence: i64,
}

/// An entry of the history.
#[derive(Serialize, ToSchema)]
struct AuditView {
    /// Where it stands in the organization's chain, from 1.
    position: i64,
    /// The name of the event.
    event_type: String,
    /// Version of its payload's shape.
    event_version: String,
    /// Whose event it is.
    aggregate: AggregateView,
    /// The run it is about.
    run: Option<String>,
    /// The workspace it is about.
    workspace: Option<String>,
    /// Who caused it.
    #[schema(value_type = String)]
    actor: Actor,
    /// The request that led to it.
    request_id: String,
    /// The command that led to it.
    command_id: String,
    /// When it was recorded.
    #[schema(schema_with = schema::time)]
    recorded_at: Timestamp,
    /// What happened. Holds no secret.
    #[schema(value_type = Object)]
    payload: serde_json::Value,
    /// SHA-256 of this entry and the hash before it.
    #[schema(value_type = String)]
    hash: Sha256Digest,
    /// The hash of the entry before; zeros before the first one.
    #[schema(value_type = String)]
    previous_hash: Sha256Digest,
}

impl From<AuditEntry> for AuditView {
    fn from(entry: AuditEntry) -> Self {
        Self {
            position: entry.number,
            event_type: entry.event_type,
            event_version: entry.event_version,
            aggregate: AggregateView {
                kind: entry.aggregate_type,
                id: entry.aggregate_id,
                sequence: entry.sequence,
            },
            run: entry.run,
            workspace: entry.workspace,
            actor: entry.actor,
            request_id: entry.request_id,
            command_id: entry.command_id,
            recorded_at: entry.recorded_at,
            payload: entry.payload,
            hash: entry.hash,
            previous_hash: entry.previous_hash,
        }
    }
}

/// Which entries are listed, and which page of them.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AuditQuery {
    /// Only what this one caused: a user's or runner's id, `system` or `operator`.
    #[param(value_type = Option<String>)]
    actor: Option<Actor>,
    /// Only what is about this run.
    #[param(value_type = Option<String>)]
    run: Option<RunId>,
    /// Only what is about this workspace or one of its runs.
    #[param(value_type = Option<String>)]
    workspace: Option<WorkspaceId>,
    /// Only events of this name, such as `run_approved`.
    #[serde(rename = "type")]
    event_type: Option<String>,
    /// Nothing that was recorded before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "body::time")]
    from: Option<Timestamp>,
    /// Nothing that was recorded at this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "body::time")]
    to: Option<Timestamp>,
    /// The `next_cursor` of the page before; it belongs to one list with one filter.
    cursor: Option<String>,
    /// How many entries at most: 1 to 100, 100 when absent.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u16>,
}

impl AuditQuery {
    fn filter(self) -> Result<AuditFilter, ApiError> {
        let is_name = |name: &String| {
            (1..=TYPE_CHARS_MAX).contains(&name.len())
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        };
        if self.event_type.as_ref().is_some_and(|name| !is_name(name)) {
            let message = "`type` is the name of an event: lower-case letters and `_`, such as `run_approved`";
            return Err(ApiError::unreadable("AUDIT_TYPE_INVALID", "type", message));
        }
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from >= to
        {
            let message = "`from` is earlier than `to`; `to` itself is left out";
            return Err(ApiError::unreadable("AUDIT_TIME_INVALID", "from", message));
        }
        Ok(AuditFilter {
            actor: self.actor,
            run: self.run,
            workspace: self.workspace,
            event_type: self.event_type,
            from: self.from,
            to: self.to,
        })
    }
}

/// Lists an organization's history, newest first. An entry appears a moment after its event.
#[utoipa::path(get, path = "/v1/organizations/{organization}/audit-events", tag = "audit",
    params(("organization" = String, Path), AuditQuery),
    responses((status = 200, body = List<AuditView>)))]
async fn audit_list(
    State(app): State<App>,
    may: InOrganization<AuditRead>,
    Query(mut query): Query<AuditQuery>,
) -> Result<List<AuditView>, ApiError> {
    let (cursor, limit) = (query.cursor.take(), body::limit(query.limit)?);
    let filter = query.filter()?;
    let organization = may.organization.id;
    let page = app
        .views
        .audit_page(organization, &filter, cursor.as_deref(), limit)
        .await
        .map_err(refused)?;
    let entries = page.entries.into_iter().map(Into::into).collect();
    Ok(List::new(entries, page.next_cursor))
}

fn refused(error: PageError) -> ApiError {
    match error {
        PageError::CursorInvalid => ApiError::unreadable(
            "AUDIT_CURSOR_INVALID",
            "cursor",
            "`cursor` does not belong to this list with this filter; begin again without one",
        ),
        PageError::Projection(error) => error.into(),
    }
}

/// Exports an organization's whole history as it is now, in the order of its chain: one JSON object a
/// line, and a last line `{"head": …}` that names the last position and hash. An answer without that
/// line was cut off. `stackship audit verify --export` checks it.
#[utoipa::path(get, path = "/v1/organizations/{organization}/audit-events/export", tag = "audit",
    params(("organization" = String, Path)),
    responses((status = 200, body = String, content_type = "application/x-ndjson")))]
async fn audit_export(
    State(app): State<App>,
    may: InOrganization<AuditRead>,
) -> Result<Response, ApiError> {
    let organization = may.organization;
    let export = app.views.audit_export(organization.id, clock::now());
    let export = export.await?;
    let name = format!(
        "attachment; filename=\"{}-audit.ndjson\"",
        organization.name
    );
    let headers = [
        (CONTENT_TYPE, NDJSON.to_owned()),
        (CONTENT_DISPOSITION, name),
    ];
    let parts = stream::try_unfold(export, next_part);
    Ok((headers, Body::from_stream(parts)).into_response())
}

/// A part is read when the connection has taken the one before. A failure cuts the connection: by then
/// the status has been sent, and an early end must not look like one.
async fn next_part(
    mut export: AuditExport,
) -> Result<Option<(Bytes, AuditExport)>, ProjectionError> {
    match export.next_part().await {
        Ok(part) => Ok(part.map(|part| (part.into(), export))),
        Err(error) => {
            tracing::error!(error = %error, "An export of an audit was cut off");
            Err(error)
        }
    }
}
