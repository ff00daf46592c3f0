//! Configuration versions: sources that are uploaded once and never change.

mod content;

use axum::body::Body as RawBody;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use stackship_domain::ids::{ConfigurationVersionId, WorkspaceId};
use stackship_domain::run::SourceKind;
use stackship_domain::{Sha256Digest, Timestamp};
use stackship_store::records::configuration_versions::{
    self, ConfigurationVersion, NewConfigurationVersion,
};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Data, created};
use super::body::Body;
use super::schema;
use crate::auth::{Denied, InConfiguration, InWorkspace, RunCreate, RunRead};
use crate::{ApiError, App};
use content::{Content, SHA256_HEADER};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(configuration_create))
        .routes(routes!(configuration_read))
        .routes(routes!(configuration_upload))
}

/// A configuration version to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewConfigurationBody {
    /// Whether it may only be planned.
    #[serde(default)]
    speculative: bool,
}

/// An immutable uploaded source.
#[derive(Serialize, ToSchema)]
struct ConfigurationView {
    /// Its id.
    #[schema(value_type = String)]
    id: ConfigurationVersionId,
    /// The workspace it is for.
    #[schema(value_type = String)]
    workspace: WorkspaceId,
    /// Whether it may only be planned.
    speculative: bool,
    /// Where it comes from.
    #[schema(schema_with = schema::source_kind)]
    source: SourceKind,
    /// When it was created.
    #[schema(schema_with = schema::time)]
    created_at: Timestamp,
    /// Where to `PUT` the archive.
    content_path: String,
    /// The archive; null until it has arrived.
    content: Option<ContentView>,
}

/// An archive that has arrived.
#[derive(Serialize, ToSchema)]
struct ContentView {
    /// SHA-256 of its exact bytes.
    #[schema(value_type = String)]
    sha256: Sha256Digest,
    /// How many bytes it has.
    bytes: u64,
    /// When it had arrived.
    #[schema(schema_with = schema::time)]
    uploaded_at: Timestamp,
}

impl From<ConfigurationVersion> for ConfigurationView {
    fn from(configuration: ConfigurationVersion) -> Self {
        Self {
            id: configuration.id,
            workspace: configuration.workspace,
            speculative: configuration.speculative,
            source: configuration.source,
            created_at: configuration.created_at,
            content_path: format!("/v1/configuration-versions/{}/content", configuration.id),
            content: configuration.upload.map(|upload| ContentView {
                sha256: upload.sha256,
                bytes: upload.bytes,
                uploaded_at: upload.at,
            }),
        }
    }
}

/// Creates a configuration version that waits for its archive.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/configuration-versions", tag = "runs",
    params(("workspace" = String, Path)), request_body = NewConfigurationBody,
    responses((status = 201, body = Data<ConfigurationView>)))]
async fn configuration_create(
    State(app): State<App>,
    may: InWorkspace<RunCreate>,
    Body(body): Body<NewConfigurationBody>,
) -> Result<(StatusCode, Data<ConfigurationView>), ApiError> {
    let new = NewConfigurationVersion {
        workspace: may.workspace.id,
        speculative: body.speculative,
        source: SourceKind::Api,
    };
    let version = configuration_versions::create(&app.store, &may.caller.command()?, new).await?;
    Ok(created(version.into()))
}

/// Reads a configuration version.
#[utoipa::path(get, path = "/v1/configuration-versions/{configuration}", tag = "runs",
    params(("configuration" = String, Path)),
    responses((status = 200, body = Data<ConfigurationView>)))]
async fn configuration_read(may: InConfiguration<RunRead>) -> Data<ConfigurationView> {
    ConfigurationView::from(may.configuration).into()
}

/// Uploads the archive (tar.gz, at most 100 MiB). The same bytes again are harmless, others are
/// refused. With `x-stackship-sha256`, only bytes of that digest are taken.
#[utoipa::path(put, path = "/v1/configuration-versions/{configuration}/content", tag = "runs",
    params(("configuration" = String, Path), ("x-stackship-sha256" = Option<String>, Header)),
    request_body(content = Vec<u8>, content_type = "application/gzip"),
    responses((status = 200, body = Data<ConfigurationView>)))]
async fn configuration_upload(
    State(app): State<App>,
    may: InConfiguration<RunCreate>,
    headers: HeaderMap,
    body: RawBody,
) -> Result<Data<ConfigurationView>, ApiError> {
    let content = Content::new(body, content::announced(&headers, SHA256_HEADER)?);
    match may.configuration.upload {
        Some(upload) => content.compare(upload.sha256).await?,
        None => content.store(&app, &may).await?,
    }
    let (organization, id) = (may.configuration.organization, may.configuration.id);
    let version = configuration_versions::by_id(&app.store.pool, organization, id).await?;
    let version = version.ok_or(Denied::not_found("configuration version"))?;
    Ok(ConfigurationView::from(version).into())
}
