//! Every route and who may use it, as one table.

use stackship_domain::Permission as P;

/// Who may use a route.
#[derive(Clone, Copy, Debug)]
pub enum Who {
    /// Anybody, without a credential.
    Anybody,
    /// Anybody with a live credential of a person or service account, about themselves.
    Themselves,
    /// A member of the organization, about themselves.
    Member,
    /// Whoever has the first permission. Who has the second is told no, everybody else sees nothing.
    May(P, P),
    /// Whoever has the permission and has shown again who they are, which none of the callers has, and is
    /// told so. Everybody else sees nothing.
    Guarded(P),
    /// As `May`, in `/api/v2`, where a run's token learns no more than a stranger.
    Client(P, P),
    /// The same, and the run itself.
    ClientOrRun(P, P),
    /// `/api/v2`: whoever has the permission; every other insider is told no.
    Creates(P),
    /// `/api/v2`: the run that holds the workspace; every other insider is told no.
    RunAlone,
    /// `/api/v2`: an applying run, which none of the callers is; every insider is told no.
    Applying,
    /// `/api/v2`: any live credential of the organization.
    Insider,
    /// `/api/v2`: something that is nowhere.
    Absent,
    /// Whoever holds the signed path; these hold a wrong one.
    Signature,
    /// A registered runner.
    Runner,
    /// Whoever holds the lease of the attempt.
    Lease,
}

use Who::{
    Absent, Anybody, Applying, Client, ClientOrRun, Creates, Guarded, Insider, Lease, May, Member,
    RunAlone, Runner, Signature, Themselves,
};

macro_rules! table {
    ($($method:ident $path:literal => $who:expr),+ $(,)?) => {
        /// Method, path, who. What ends a lease comes last.
        pub const TABLE: &[(&str, &str, Who)] = &[$((stringify!($method), $path, $who)),+];
    };
}

table! {
    GET "/" => Anybody,
    GET "/healthz" => Anybody,
    GET "/readyz" => Anybody,
    GET "/v1/openapi.json" => Anybody,
    GET "/v1/organizations" => Themselves,
    GET "/v1/organizations/{organization}" => May(P::OrgRead, P::OrgRead),
    GET "/v1/organizations/{organization}/projects" => May(P::ProjectRead, P::OrgRead),
    POST "/v1/organizations/{organization}/projects" => May(P::ProjectWrite, P::OrgRead),
    GET "/v1/projects/{project}" => May(P::ProjectRead, P::ProjectRead),
    GET "/v1/organizations/{organization}/workspaces" => May(P::WorkspaceRead, P::OrgRead),
    POST "/v1/organizations/{organization}/workspaces" => May(P::WorkspaceWrite, P::ProjectRead),
    GET "/v1/workspaces/{workspace}" => May(P::WorkspaceRead, P::WorkspaceRead),
    PATCH "/v1/workspaces/{workspace}" => May(P::WorkspaceWrite, P::WorkspaceRead),
    POST "/v1/workspaces/{workspace}/lock" => May(P::WorkspaceLock, P::WorkspaceRead),
    POST "/v1/workspaces/{workspace}/unlock" => May(P::WorkspaceLock, P::WorkspaceRead),
    POST "/v1/workspaces/{workspace}/force-unlock" => May(P::WorkspaceForceUnlock, P::WorkspaceRead),
    GET "/v1/workspaces/{workspace}/state-versions" => May(P::WorkspaceRead, P::WorkspaceRead),
    GET "/v1/workspaces/{workspace}/state-versions/{state}" => May(P::WorkspaceRead, P::WorkspaceRead),
    POST "/v1/workspaces/{workspace}/state-versions/{state}/download" => Guarded(P::StateRead),
    POST "/v1/workspaces/{workspace}/state-versions/{state}/rollback" => May(P::StateRecover, P::WorkspaceRead),
    GET "/v1/workspaces/{workspace}/variables" => May(P::VariableRead, P::WorkspaceRead),
    POST "/v1/workspaces/{workspace}/variables" => May(P::VariableWrite, P::WorkspaceRead),
    PATCH "/v1/workspaces/{workspace}/variables/{variable}" => May(P::VariableWrite, P::WorkspaceRead),
    DELETE "/v1/workspaces/{workspace}/variables/{variable}" => May(P::VariableWrite, P::WorkspaceRead),
    GET "/v1/organizations/{organization}/users" => May(P::OrgAdmin, P::OrgRead),
    POST "/v1/organizations/{organization}/users" => May(P::OrgAdmin, P::OrgRead),
    GET "/v1/organizations/{organization}/grants" => May(P::OrgAdmin, P::OrgRead),
    POST "/v1/organizations/{organization}/grants" => May(P::OrgAdmin, P::OrgRead),
    DELETE "/v1/organizations/{organization}/grants/{user}" => May(P::OrgAdmin, P::OrgRead),
    GET "/v1/organizations/{organization}/tokens" => Member,
    POST "/v1/organizations/{organization}/tokens" => Member,
    DELETE "/v1/organizations/{organization}/tokens/{token}" => May(P::OrgAdmin, P::OrgRead),
    GET "/v1/organizations/{organization}/audit-events" => May(P::AuditRead, P::OrgRead),
    GET "/v1/organizations/{organization}/audit-events/export" => May(P::AuditRead, P::OrgRead),
    GET "/v1/organizations/{organization}/policy-sets" => May(P::PolicyRead, P::OrgRead),
    POST "/v1/organizations/{organization}/policy-sets" => May(P::PolicyWrite, P::OrgRead),
    GET "/v1/policy-sets/{policy_set}" => May(P::PolicyRead, P::PolicyRead),
    POST "/v1/policy-sets/{policy_set}/archive" => May(P::PolicyWrite, P::PolicyRead),
    GET "/v1/policy-sets/{policy_set}/versions" => May(P::PolicyRead, P::PolicyRead),
    POST "/v1/policy-sets/{policy_set}/versions" => May(P::PolicyWrite, P::PolicyRead),
    GET "/v1/policy-sets/{policy_set}/versions/{version}" => May(P::PolicyRead, P::PolicyRead),
    GET "/v1/policy-sets/{policy_set}/versions/{version}/files" => May(P::PolicyRead, P::PolicyRead),
    GET "/v1/policy-sets/{policy_set}/attachments" => May(P::PolicyRead, P::PolicyRead),
    POST "/v1/policy-sets/{policy_set}/attachments" => May(P::PolicyWrite, P::PolicyRead),
    POST "/v1/policy-sets/{policy_set}/detach" => May(P::PolicyWrite, P::PolicyRead),
    GET "/v1/workspaces/{workspace}/policy-sets" => May(P::PolicyRead, P::WorkspaceRead),
    POST "/v1/workspaces/{workspace}/configuration-versions" => May(P::RunCreate, P::WorkspaceRead),
    GET "/v1/configuration-versions/{configuration}" => May(P::RunRead, P::RunRead),
    PUT "/v1/configuration-versions/{configuration}/content" => May(P::RunCreate, P::RunRead),
    GET "/v1/organizations/{organization}/runs" => May(P::RunRead, P::OrgRead),
    GET "/v1/workspaces/{workspace}/runs" => May(P::RunRead, P::WorkspaceRead),
    POST "/v1/workspaces/{workspace}/runs" => May(P::RunCreate, P::WorkspaceRead),
    GET "/v1/runs/{run}" => May(P::RunRead, P::RunRead),
    GET "/v1/runs/{run}/review" => May(P::RunRead, P::RunRead),
    GET "/v1/runs/{run}/logs/{phase}" => May(P::RunRead, P::RunRead),
    GET "/v1/runs/{run}/plan-changes" => May(P::RunRead, P::RunRead),
    GET "/v1/runs/{run}/policy-result" => May(P::RunRead, P::RunRead),
    POST "/v1/runs/{run}/policy-override" => May(P::PolicyOverrideSoft, P::RunRead),
    POST "/v1/runs/{run}/approve" => May(P::RunApprove, P::RunRead),
    POST "/v1/runs/{run}/discard" => May(P::RunApprove, P::RunRead),
    POST "/v1/runs/{run}/cancel" => May(P::RunCancel, P::RunRead),
    POST "/v1/runs/{run}/raw-plan" => Guarded(P::ArtifactReadSensitive),
    POST "/v1/runs/{run}/emergency-state" => Guarded(P::ArtifactReadSensitive),
    POST "/v1/user/step-up" => Themselves,
    PUT "/v1/user/password" => Themselves,
    GET "/v1/runs/{run}/recovery" => May(P::RunRead, P::RunRead),
    POST "/v1/runs/{run}/recovery/adopt" => May(P::RunRecover, P::RunRead),
    POST "/v1/runs/{run}/recovery/no-change" => May(P::RunRecover, P::RunRead),
    GET "/.well-known/terraform.json" => Anybody,
    GET "/app/{organization}/{workspace}/runs/{run}" => Anybody,
    GET "/api/v2/ping" => Anybody,
    GET "/api/v2/organizations/{organization}/entitlement-set" => Insider,
    GET "/api/v2/organizations/{organization}/capacity" => Insider,
    GET "/api/v2/organizations/{organization}/runs/queue" => Insider,
    GET "/api/v2/organizations/{organization}/projects" => Insider,
    POST "/api/v2/organizations/{organization}/projects" => Client(P::ProjectWrite, P::OrgRead),
    POST "/api/v2/organizations/{organization}/workspaces" => Creates(P::WorkspaceWrite),
    GET "/api/v2/organizations/{organization}/workspaces/{name}" => ClientOrRun(P::WorkspaceRead, P::WorkspaceRead),
    PATCH "/api/v2/workspaces/{workspace}" => Client(P::WorkspaceWrite, P::WorkspaceRead),
    GET "/api/v2/workspaces/{workspace}/runs" => Client(P::WorkspaceRead, P::WorkspaceRead),
    POST "/api/v2/workspaces/{workspace}/relationships/tags" => Client(P::WorkspaceWrite, P::WorkspaceRead),
    POST "/api/v2/workspaces/{workspace}/actions/lock" => RunAlone,
    POST "/api/v2/workspaces/{workspace}/actions/unlock" => RunAlone,
    POST "/api/v2/workspaces/{workspace}/configuration-versions" => Client(P::RunCreate, P::WorkspaceRead),
    GET "/api/v2/configuration-versions/{configuration}" => Client(P::RunRead, P::RunRead),
    PUT "/api/v2/uploads/configurations/{signature}" => Signature,
    POST "/api/v2/runs" => Client(P::RunCreate, P::WorkspaceRead),
    GET "/api/v2/runs/{run}" => Client(P::RunRead, P::RunRead),
    GET "/api/v2/runs/{run}/run-events" => Client(P::RunRead, P::RunRead),
    POST "/api/v2/runs/{run}/actions/apply" => Client(P::RunApprove, P::RunRead),
    POST "/api/v2/runs/{run}/actions/discard" => Client(P::RunApprove, P::RunRead),
    POST "/api/v2/runs/{run}/actions/cancel" => Client(P::RunCancel, P::RunRead),
    GET "/api/v2/runs/{run}/policy-checks" => Client(P::RunRead, P::RunRead),
    GET "/api/v2/policy-checks/{check}" => Client(P::RunRead, P::RunRead),
    GET "/api/v2/policy-checks/{check}/output" => Client(P::RunRead, P::RunRead),
    POST "/api/v2/policy-checks/{check}/actions/override" => Client(P::PolicyOverrideSoft, P::RunRead),
    GET "/api/v2/plans/{plan}" => Client(P::RunRead, P::RunRead),
    GET "/api/v2/plans/{plan}/json-output" => Client(P::RunRead, P::RunRead),
    GET "/api/v2/applies/{apply}" => Client(P::RunRead, P::RunRead),
    GET "/api/v2/logs/{signature}" => Signature,
    GET "/api/v2/workspaces/{workspace}/current-state-version" => ClientOrRun(P::StateRead, P::WorkspaceRead),
    GET "/api/v2/workspaces/{workspace}/current-state-version-outputs" => ClientOrRun(P::StateRead, P::WorkspaceRead),
    POST "/api/v2/workspaces/{workspace}/state-versions" => Applying,
    GET "/api/v2/state-versions/{state}" => ClientOrRun(P::StateRead, P::WorkspaceRead),
    GET "/api/v2/state-versions/{state}/download" => ClientOrRun(P::StateRead, P::WorkspaceRead),
    GET "/api/v2/state-version-outputs/{output}" => Absent,
    PUT "/api/v2/uploads/states/{signature}" => Signature,
    PUT "/api/v2/uploads/json-states/{signature}" => Signature,
    POST "/runner/v1/leases" => Runner,
    POST "/runner/v1/attempts/{attempt}/heartbeat" => Lease,
    GET "/runner/v1/attempts/{attempt}/inputs/{input}" => Lease,
    PUT "/runner/v1/attempts/{attempt}/artifacts/{kind}" => Lease,
    POST "/runner/v1/attempts/{attempt}/logs" => Lease,
    POST "/runner/v1/attempts/{attempt}/result" => Lease,
    POST "/runner/v1/attempts/{attempt}/hand-back" => Lease,
}
