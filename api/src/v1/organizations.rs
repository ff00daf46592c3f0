//! Organizations: the tenants. They are created by an operator, not through this edge.

use axum::extract::State;
use serde::Serialize;
use stackship_domain::ids::OrganizationId;
use stackship_domain::{Name, Timestamp};
use stackship_store::records::organizations::{self, Organization};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Data, List};
use super::schema;
use crate::auth::{Caller, Denied, InOrganization, OrgRead};
use crate::{ApiError, App};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(organization_list))
        .routes(routes!(organization_read))
}

/// An organization.
#[derive(Serialize, ToSchema)]
struct OrganizationView {
    /// Its id.
    #[schema(value_type = String)]
    id: OrganizationId,
    /// Its name, as paths name it.
    #[schema(value_type = String)]
    name: Name,
    /// When it was created.
    #[schema(schema_with = schema::time)]
    created_at: Timestamp,
}

impl From<Organization> for OrganizationView {
    fn from(organization: Organization) -> Self {
        Self {
            id: organization.id,
            name: organization.name,
            created_at: organization.created_at,
        }
    }
}

/// Lists the organization that the presented token opens.
#[utoipa::path(get, path = "/v1/organizations", tag = "organizations",
    responses((status = 200, body = List<OrganizationView>)))]
async fn organization_list(
    State(app): State<App>,
    caller: Caller,
) -> Result<List<OrganizationView>, ApiError> {
    if caller.user().is_none() {
        return Err(Denied::RunToken.into());
    }
    let own = organizations::by_id(&app.store.pool, caller.organization()).await?;
    Ok(List::new(own.into_iter().map(Into::into).collect(), None))
}

/// Reads an organization.
#[utoipa::path(get, path = "/v1/organizations/{organization}", tag = "organizations",
    params(("organization" = String, Path)),
    responses((status = 200, body = Data<OrganizationView>)))]
async fn organization_read(may: InOrganization<OrgRead>) -> Data<OrganizationView> {
    OrganizationView::from(may.organization).into()
}
