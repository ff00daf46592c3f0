//! Versions of a policy set: uploaded whole, never changed, readable for ever.

use axum::body::Body as RawBody;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use stackship_domain::{Actor, Sha256Digest, Timestamp};
use stackship_policy::Bundle;
use stackship_policy::bundle::{MANIFEST_PATH, Policy};
use stackship_store::records::policy_sets::{self, NewVersion, Published, Version};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{content, not_archived, upload};
use crate::auth::{Denied, InPolicySet, PolicyRead, PolicyWrite};
use crate::v1::answer::{Data, List};
use crate::v1::body::{PageQuery, Path, Query};
use crate::v1::schema;
use crate::{ApiError, App};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(policy_version_list, policy_version_upload))
        .routes(routes!(policy_version_read))
        .routes(routes!(policy_version_files))
}

/// A version of a policy set.
#[derive(Serialize, ToSchema)]
struct PolicyVersionView {
    /// Its number, from 1.
    number: u32,
    /// The author's own name for it: `version` in the manifest.
    label: String,
    /// The digest that runs pin.
    #[schema(value_type = String)]
    bundle: Sha256Digest,
    /// How many policies it has, disabled ones included.
    policy_count: u32,
    /// Who uploaded it.
    #[schema(value_type = String)]
    uploaded_by: Actor,
    /// When it was uploaded.
    #[schema(schema_with = schema::time)]
    uploaded_at: Timestamp,
}

/// A version with what its manifest says.
#[derive(Serialize, ToSchema)]
struct PolicyVersionDetail {
    /// The version.
    #[serde(flatten)]
    version: PolicyVersionView,
    /// Its policies, sorted by id.
    policies: Vec<BundledPolicyView>,
}

/// A policy, as its manifest describes it.
#[derive(Serialize, ToSchema)]
struct BundledPolicyView {
    /// Names it within the version.
    id: String,
    /// The file with its text.
    file: String,
    /// How much its failure weighs.
    #[schema(schema_with = schema::policy_level)]
    level: &'static str,
    /// Whether it is evaluated.
    enabled: bool,
    /// The title of findings that give none.
    title: Option<String>,
    /// What it is for.
    description: Option<String>,
}

/// The files of a version.
#[derive(Serialize, ToSchema)]
struct PolicyFilesView {
    /// Every file, sorted by path. `manifest.json` says what was uploaded in a form of our own.
    files: Vec<PolicyFileView>,
}

/// One file of a version.
#[derive(Serialize, ToSchema)]
struct PolicyFileView {
    /// Its path in the archive.
    path: String,
    /// Its text.
    text: String,
}

#[derive(Deserialize)]
struct VersionPath {
    version: u32,
}

impl From<Version> for PolicyVersionView {
    fn from(version: Version) -> Self {
        Self {
            number: version.number,
            label: version.label,
            bundle: version.bundle,
            policy_count: version.policies,
            uploaded_by: version.uploaded_by,
            uploaded_at: version.uploaded_at,
        }
    }
}

impl From<&Policy> for BundledPolicyView {
    fn from(policy: &Policy) -> Self {
        Self {
            id: policy.id.clone(),
            file: policy.file.clone(),
            level: policy.level.as_str(),
            enabled: policy.enabled,
            title: policy.title.clone(),
            description: policy.description.clone(),
        }
    }
}

/// Lists the versions of a policy set, oldest first.
#[utoipa::path(get, path = "/v1/policy-sets/{policy_set}/versions", tag = "policies",
    params(("policy_set" = String, Path), PageQuery),
    responses((status = 200, body = List<PolicyVersionView>)))]
async fn policy_version_list(
    State(app): State<App>,
    may: InPolicySet<PolicyRead>,
    Query(query): Query<PageQuery>,
) -> Result<List<PolicyVersionView>, ApiError> {
    let page = query.page(|cursor| cursor.parse::<u32>().is_ok())?;
    let (organization, set) = (may.policy_set.organization, may.policy_set.id);
    let rows = policy_sets::list_versions(&app.store.pool, organization, set, &page).await?;
    let next = query.next(&rows, |version| version.number.to_string());
    Ok(List::new(rows.into_iter().map(Into::into).collect(), next))
}

/// Uploads a version: a bundle as `tar.gz`, at most 1 MiB. Every policy in it is loaded and tried
/// first. It applies to runs that are created from then on. What the newest version has already makes
/// no new one; what an older one has does, which is how one goes back.
#[utoipa::path(post, path = "/v1/policy-sets/{policy_set}/versions", tag = "policies",
    params(("policy_set" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/gzip"),
    responses((status = 201, description = "A new version", body = Data<PolicyVersionDetail>),
        (status = 200, description = "The newest version, which has this content already",
            body = Data<PolicyVersionDetail>)))]
async fn policy_version_upload(
    State(app): State<App>,
    may: InPolicySet<PolicyWrite>,
    body: RawBody,
) -> Result<(StatusCode, Data<PolicyVersionDetail>), ApiError> {
    not_archived(&may.policy_set)?;
    let bundle = upload::bundle(&app.evaluator, body).await?;
    let new = NewVersion {
        bundle: bundle.digest(),
        label: &bundle.manifest().version,
        policies: bundle.manifest().policies.len(),
        content: &bundle.to_stored(),
    };
    let context = may.caller.command()?;
    let published = policy_sets::publish(&app.store, &context, may.policy_set.id, new).await?;
    let (status, version) = match published {
        Published::New(version) => (StatusCode::CREATED, version),
        Published::Same(version) => (StatusCode::OK, version),
    };
    Ok((status, detail(version, &bundle).into()))
}

/// Reads a version with what its manifest says.
#[utoipa::path(get, path = "/v1/policy-sets/{policy_set}/versions/{version}", tag = "policies",
    params(("policy_set" = String, Path), ("version" = u32, Path)),
    responses((status = 200, body = Data<PolicyVersionDetail>)))]
async fn policy_version_read(
    State(app): State<App>,
    may: InPolicySet<PolicyRead>,
    Path(path): Path<VersionPath>,
) -> Result<Data<PolicyVersionDetail>, ApiError> {
    let (version, bundle) = opened(&app, &may, &path).await?;
    Ok(detail(version, &bundle).into())
}

/// Reads the files of a version: what judged, as its author wrote it.
#[utoipa::path(get, path = "/v1/policy-sets/{policy_set}/versions/{version}/files", tag = "policies",
    params(("policy_set" = String, Path), ("version" = u32, Path)),
    responses((status = 200, body = Data<PolicyFilesView>)))]
async fn policy_version_files(
    State(app): State<App>,
    may: InPolicySet<PolicyRead>,
    Path(path): Path<VersionPath>,
) -> Result<Data<PolicyFilesView>, ApiError> {
    let (_, bundle) = opened(&app, &may, &path).await?;
    let manifest = serde_json::to_string_pretty(bundle.manifest())
        .map_err(|error| ApiError::Internal(error.into()))?;
    let manifest = (MANIFEST_PATH.to_owned(), manifest);
    let others = bundle
        .files()
        .map(|(path, text)| (path.to_owned(), text.to_owned()));
    let mut files: Vec<_> = others
        .chain([manifest])
        .map(|(path, text)| PolicyFileView { path, text })
        .collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(PolicyFilesView { files }.into())
}

async fn opened(
    app: &App,
    may: &InPolicySet<PolicyRead>,
    path: &VersionPath,
) -> Result<(Version, Bundle), ApiError> {
    let (organization, set) = (may.policy_set.organization, may.policy_set.id);
    let version = policy_sets::version(&app.store.pool, organization, set, path.version).await?;
    let version = version.ok_or(Denied::not_found("policy version"))?;
    let bundle = content::open(app, organization, &version).await?;
    Ok((version, bundle))
}

fn detail(version: Version, bundle: &Bundle) -> PolicyVersionDetail {
    let policies = &bundle.manifest().policies;
    PolicyVersionDetail {
        version: version.into(),
        policies: policies.iter().map(Into::into).collect(),
    }
}
