//! Policy sets: policies under one name, in versions, attached to what they judge.
//!
//! Whoever may write them decides what reaches production, so that is asked of the organization and
//! of nothing below it: the operator of a workspace cannot detach what stops him.

mod attachments;
mod content;
mod upload;
mod versions;

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use stackship_domain::ids::PolicySetId;
use stackship_domain::{Actor, Name, Timestamp};
use stackship_store::Violation;
use stackship_store::records::policy_sets::{self, PolicySet};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Data, List, created};
use super::body::{Body, PageQuery, Query};
use super::reason::FullReason;
use super::schema;
use crate::auth::{Denied, InOrganization, InPolicySet, PolicyRead, PolicyWrite};
use crate::{ApiError, App};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(policy_set_list, policy_set_create))
        .routes(routes!(policy_set_read))
        .routes(routes!(policy_set_archive))
        .merge(versions::router())
        .merge(attachments::router())
}

/// Policies under one name.
#[derive(Serialize, ToSchema)]
struct PolicySetView {
    /// Its id.
    #[schema(value_type = String)]
    id: PolicySetId,
    /// Its name, unique among the organization's sets that are not archived.
    #[schema(value_type = String)]
    name: Name,
    /// The number of its newest version, which is the one that applies; null before the first.
    newest_version: Option<u32>,
    /// Who created it.
    #[schema(value_type = String)]
    created_by: Actor,
    /// When it was created.
    #[schema(schema_with = schema::time)]
    created_at: Timestamp,
    /// When it was archived; null while it can be used.
    #[schema(value_type = Option<String>, format = DateTime)]
    archived_at: Option<Timestamp>,
}

impl From<PolicySet> for PolicySetView {
    fn from(set: PolicySet) -> Self {
        Self {
            id: set.id,
            name: set.name,
            newest_version: set.newest,
            created_by: set.created_by,
            created_at: set.created_at,
            archived_at: set.archived_at,
        }
    }
}

/// A policy set to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewPolicySet {
    /// Letters, digits, `-` and `_`; begins with a letter or a digit.
    #[schema(value_type = String)]
    name: Name,
}

/// Lists an organization's policy sets, oldest first, archived ones included.
#[utoipa::path(get, path = "/v1/organizations/{organization}/policy-sets", tag = "policies",
    params(("organization" = String, Path), PageQuery),
    responses((status = 200, body = List<PolicySetView>)))]
async fn policy_set_list(
    State(app): State<App>,
    may: InOrganization<PolicyRead>,
    Query(query): Query<PageQuery>,
) -> Result<List<PolicySetView>, ApiError> {
    let page = query.page(|cursor| cursor.parse::<PolicySetId>().is_ok())?;
    let rows = policy_sets::list(&app.store.pool, may.organization.id, &page).await?;
    let next = query.next(&rows, |set| set.id.to_string());
    Ok(List::new(rows.into_iter().map(Into::into).collect(), next))
}

/// Creates a policy set without a version.
#[utoipa::path(post, path = "/v1/organizations/{organization}/policy-sets", tag = "policies",
    params(("organization" = String, Path)), request_body = NewPolicySet,
    responses((status = 201, body = Data<PolicySetView>)))]
async fn policy_set_create(
    State(app): State<App>,
    may: InOrganization<PolicyWrite>,
    Body(new): Body<NewPolicySet>,
) -> Result<(StatusCode, Data<PolicySetView>), ApiError> {
    let set = policy_sets::create(&app.store, &may.caller.command()?, &new.name).await?;
    Ok(created(set.into()))
}

/// Reads a policy set.
#[utoipa::path(get, path = "/v1/policy-sets/{policy_set}", tag = "policies",
    params(("policy_set" = String, Path)),
    responses((status = 200, body = Data<PolicySetView>)))]
async fn policy_set_read(may: InPolicySet<PolicyRead>) -> Data<PolicySetView> {
    PolicySetView::from(may.policy_set).into()
}

/// Archives a policy set that is attached nowhere. It takes no version any more and its name is free;
/// its versions can be read for as long as the runs that they judged.
#[utoipa::path(post, path = "/v1/policy-sets/{policy_set}/archive", tag = "policies",
    params(("policy_set" = String, Path)), request_body = FullReason,
    responses((status = 200, body = Data<PolicySetView>)))]
async fn policy_set_archive(
    State(app): State<App>,
    may: InPolicySet<PolicyWrite>,
    Body(body): Body<FullReason>,
) -> Result<Data<PolicySetView>, ApiError> {
    let reason = body.checked()?;
    let (context, id) = (may.caller.command()?, may.policy_set.id);
    let archived = policy_sets::archive(&app.store, &context, id, &reason).await;
    let set = archived.map_err(|error| match ApiError::from(error) {
        ApiError::Violated(Violation::NotNow) => conflict(
            "POLICY_SET_ATTACHED",
            "this policy set still applies somewhere; list its attachments and detach it first",
        ),
        other => other,
    })?;
    let set = set.ok_or(Denied::not_found("policy set"))?;
    Ok(PolicySetView::from(set).into())
}

/// What is archived stays as it is.
fn not_archived(set: &PolicySet) -> Result<(), ApiError> {
    match set.archived_at {
        None => Ok(()),
        Some(_) => Err(conflict(
            "POLICY_SET_ARCHIVED",
            "this policy set is archived; create a new one, which may have the same name",
        )),
    }
}

fn conflict(code: &'static str, message: impl Into<String>) -> ApiError {
    ApiError::Invalid {
        status: StatusCode::CONFLICT,
        code,
        field: String::new(),
        message: message.into(),
    }
}
