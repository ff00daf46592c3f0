//! How much policy applies anywhere, counted inside the change that would make it more.

use sqlx::{PgConnection, Row as _};
use stackship_domain::ids::OrganizationId;
use stackship_domain::policy_bounds::{BUNDLES_ATTACHED_MAX, POLICIES_ATTACHED_MAX};

use super::full;
use crate::StoreError;

/// The most attachments of an organization.
pub const ATTACHMENTS_MAX: usize = 10_000;

/// Refuses the change in whose transaction it is asked, if afterwards more applies somewhere than a
/// run may have. A project counts without its workspaces too: one may be created there any time.
pub(super) async fn check(
    connection: &mut PgConnection,
    organization: OrganizationId,
) -> Result<(), StoreError> {
    let row = sqlx::query(
        "with placed as ( \
             select attachment.policy_set_id, attachment.project_id, attachment.workspace_id, newest.policies \
             from record.policy_attachments attachment cross join lateral ( \
                 select policies from record.policy_set_versions version \
                 where version.policy_set_id = attachment.policy_set_id order by number desc limit 1) newest \
             where attachment.organization_id = $1 \
         ), places as ( \
             select null::text as project_id, null::text as workspace_id \
             union select project_id, null from placed where project_id is not null \
             union select workspace.project_id, workspace.workspace_id \
                 from placed join record.workspaces workspace on workspace.workspace_id = placed.workspace_id \
         ), applying as ( \
             select places.project_id, places.workspace_id, policy_set_id, policies \
                 from places cross join placed where placed.project_id is null and placed.workspace_id is null \
             union select places.project_id, places.workspace_id, policy_set_id, policies \
                 from places join placed on placed.project_id = places.project_id \
             union select places.project_id, places.workspace_id, policy_set_id, policies \
                 from places join placed on placed.workspace_id = places.workspace_id \
         ), totals as ( \
             select count(*) as sets, sum(policies) as policies from applying group by project_id, workspace_id \
         ) \
         select coalesce(max(sets), 0)::bigint as sets, coalesce(max(policies), 0)::bigint as policies, \
                (select count(*) from placed) as attachments from totals",
    )
    .bind(organization.to_string())
    .fetch_one(connection)
    .await?;
    let rules = [
        (
            "attachments",
            "policy attachments in an organization",
            ATTACHMENTS_MAX,
        ),
        (
            "sets",
            "policy sets that apply to one workspace",
            BUNDLES_ATTACHED_MAX,
        ),
        (
            "policies",
            "policies that apply to one workspace",
            POLICIES_ATTACHED_MAX,
        ),
    ];
    for (column, what, max) in rules {
        let count: i64 = row.try_get(column)?;
        if usize::try_from(count).is_ok_and(|count| count > max) {
            return Err(full(what, max));
        }
    }
    Ok(())
}
