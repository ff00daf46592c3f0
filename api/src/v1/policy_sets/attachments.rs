//! Where policy sets apply.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use stackship_domain::ids::PolicySetId;
use stackship_domain::{Actor, Name, Sha256Digest, Timestamp};
use stackship_store::records::grants::Scope;
use stackship_store::records::policy_sets::{self, Applying, Attaching, Attachment};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{conflict, not_archived};
use crate::auth::{Denied, InPolicySet, InWorkspace, PolicyRead, PolicyWrite};
use crate::v1::answer::{Data, List};
use crate::v1::body::{Body, PageQuery, Query};
use crate::v1::reason;
use crate::v1::schema;
use crate::v1::scope::{self, ScopeView};
use crate::{ApiError, App};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(policy_attachment_list, policy_set_attach))
        .routes(routes!(policy_set_detach))
        .routes(routes!(workspace_policy_sets))
}

/// A place, and why.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PolicyPlaceBody {
    /// There, and in everything below.
    scope: ScopeView,
    /// For those who read the history: 10 to 1000 characters.
    reason: String,
}

/// Where a policy set applies.
#[derive(Serialize, ToSchema)]
struct PolicyAttachmentView {
    /// The policy set.
    #[schema(value_type = String)]
    policy_set: PolicySetId,
    /// There, and in everything below.
    scope: ScopeView,
    /// Who attached it.
    #[schema(value_type = String)]
    attached_by: Actor,
    /// When.
    #[schema(schema_with = schema::time)]
    attached_at: Timestamp,
}

/// A policy set that applies to a workspace.
#[derive(Serialize, ToSchema)]
struct ApplyingView {
    /// The policy set.
    #[schema(value_type = String)]
    policy_set: PolicySetId,
    /// Its name.
    #[schema(value_type = String)]
    name: Name,
    /// The number of the version that a run pins when it is created now.
    version: u32,
    /// The author's own name for that version.
    label: String,
    /// The digest of that version.
    #[schema(value_type = String)]
    bundle: Sha256Digest,
    /// Where it is attached.
    scopes: Vec<ScopeView>,
}

impl From<Attachment> for PolicyAttachmentView {
    fn from(attachment: Attachment) -> Self {
        Self {
            policy_set: attachment.set,
            scope: attachment.scope.into(),
            attached_by: attachment.attached_by,
            attached_at: attachment.attached_at,
        }
    }
}

impl From<Applying> for ApplyingView {
    fn from(applying: Applying) -> Self {
        Self {
            policy_set: applying.set,
            name: applying.name,
            version: applying.version,
            label: applying.label,
            bundle: applying.bundle,
            scopes: applying.scopes.into_iter().map(Into::into).collect(),
        }
    }
}

/// Lists where a policy set is attached, oldest first.
#[utoipa::path(get, path = "/v1/policy-sets/{policy_set}/attachments", tag = "policies",
    params(("policy_set" = String, Path), PageQuery),
    responses((status = 200, body = List<PolicyAttachmentView>)))]
async fn policy_attachment_list(
    State(app): State<App>,
    may: InPolicySet<PolicyRead>,
    Query(query): Query<PageQuery>,
) -> Result<List<PolicyAttachmentView>, ApiError> {
    let page = query.page(|cursor| cursor.parse::<u32>().is_ok())?;
    let (organization, set) = (may.policy_set.organization, may.policy_set.id);
    let rows = policy_sets::list_attachments(&app.store.pool, organization, set, &page).await?;
    let next = query.next(&rows, |attachment| attachment.number.to_string());
    Ok(List::new(rows.into_iter().map(Into::into).collect(), next))
}

/// Attaches a policy set to the organization, a project or a workspace. Its newest version applies to
/// runs that are created from then on.
#[utoipa::path(post, path = "/v1/policy-sets/{policy_set}/attachments", tag = "policies",
    params(("policy_set" = String, Path)), request_body = PolicyPlaceBody,
    responses((status = 201, description = "It applies there from now on", body = Data<PolicyAttachmentView>),
        (status = 200, description = "It did already", body = Data<PolicyAttachmentView>)))]
async fn policy_set_attach(
    State(app): State<App>,
    may: InPolicySet<PolicyWrite>,
    Body(body): Body<PolicyPlaceBody>,
) -> Result<(StatusCode, Data<PolicyAttachmentView>), ApiError> {
    let (set, scope) = (&may.policy_set, Scope::from(body.scope));
    let reason = reason::full(&body.reason)?;
    not_archived(set)?;
    if set.newest.is_none() {
        return Err(conflict(
            "POLICY_SET_EMPTY",
            "this policy set has no version, so it would judge nothing; upload one first",
        ));
    }
    scope::is_here(&app, set.organization, scope).await?;
    let context = may.caller.command()?;
    let (status, attachment) =
        match policy_sets::attach(&app.store, &context, set.id, scope, &reason).await? {
            Attaching::New(attachment) => (StatusCode::CREATED, attachment),
            Attaching::Already(attachment) => (StatusCode::OK, attachment),
        };
    Ok((status, PolicyAttachmentView::from(attachment).into()))
}

/// Detaches a policy set from one place. Where it is attached above or below, it still applies, and
/// runs that have pinned it keep it. Answers with the attachment that is gone.
#[utoipa::path(post, path = "/v1/policy-sets/{policy_set}/detach", tag = "policies",
    params(("policy_set" = String, Path)), request_body = PolicyPlaceBody,
    responses((status = 200, body = Data<PolicyAttachmentView>)))]
async fn policy_set_detach(
    State(app): State<App>,
    may: InPolicySet<PolicyWrite>,
    Body(body): Body<PolicyPlaceBody>,
) -> Result<Data<PolicyAttachmentView>, ApiError> {
    let (context, set) = (may.caller.command()?, may.policy_set.id);
    let reason = reason::full(&body.reason)?;
    let detached = policy_sets::detach(&app.store, &context, set, body.scope.into(), &reason);
    let detached = detached.await?.ok_or(Denied::not_found("attachment"))?;
    Ok(PolicyAttachmentView::from(detached).into())
}

/// Lists the policy sets that apply to a workspace, wherever they are attached. There are at most 32,
/// so there is one page.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/policy-sets", tag = "policies",
    params(("workspace" = String, Path)),
    responses((status = 200, body = List<ApplyingView>)))]
async fn workspace_policy_sets(
    State(app): State<App>,
    may: InWorkspace<PolicyRead>,
) -> Result<List<ApplyingView>, ApiError> {
    let workspace = &may.workspace;
    let applying = policy_sets::applying(
        &app.store.pool,
        workspace.organization,
        workspace.project,
        workspace.id,
    );
    let applying = applying.await?;
    Ok(List::new(
        applying.into_iter().map(Into::into).collect(),
        None,
    ))
}
