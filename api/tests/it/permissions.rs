//! Every route and who may use it, as one table. A route without a row fails, and so does a row
//! without a route.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::ids::RunId;
use stackship_domain::variable::VariableCategory;
use stackship_domain::{Permission, Role};
use stackship_store::clock;
use stackship_store::records::grants::{self, Grant, Scope};
use stackship_store::records::tokens::{self, NewToken};
use stackship_store::records::users;
use stackship_store::records::variables::{self, NewVariable};

use crate::http::{Answer, Call};
use crate::support::{World, new_user, origin};

use Permission as P;

/// Who may use a route.
#[derive(Clone, Copy)]
enum Who {
    /// Anybody, without a credential.
    Anybody,
    /// Anybody with a live credential of a person or service account, about themselves.
    Themselves,
    /// A member of the organization, about themselves.
    Member,
    /// Whoever has the permission. Who may not even read the thing sees nothing there.
    May(Permission, Permission),
    /// `/api/v2`: whoever has the permission; everybody else sees nothing there.
    Hidden(Permission),
    /// The same, and the run itself.
    HiddenOrRun(Permission),
    /// `/api/v2`: the run that holds the workspace, and no person.
    RunAlone,
    /// `/api/v2`: any live credential of the organization.
    Insider,
    /// `/api/v2`: something of an organization that is not there.
    Absent,
    /// Whoever holds the signed path; these hold a wrong one.
    Signature,
    /// A runner or its lease; no credential here is one.
    Runner,
}

use Who::{
    Absent, Anybody, Hidden, HiddenOrRun, Insider, May, Member, RunAlone, Runner, Signature,
    Themselves,
};

const TABLE: &[(&str, &str, Who)] = &[
    ("GET", "/healthz", Anybody),
    ("GET", "/readyz", Anybody),
    ("GET", "/v1/openapi.json", Anybody),
    ("GET", "/v1/organizations", Themselves),
    (
        "GET",
        "/v1/organizations/{organization}",
        May(P::OrgRead, P::OrgRead),
    ),
    (
        "GET",
        "/v1/organizations/{organization}/projects",
        May(P::ProjectRead, P::OrgRead),
    ),
    (
        "POST",
        "/v1/organizations/{organization}/projects",
        May(P::ProjectWrite, P::OrgRead),
    ),
    (
        "GET",
        "/v1/projects/{project}",
        May(P::ProjectRead, P::ProjectRead),
    ),
    (
        "GET",
        "/v1/organizations/{organization}/workspaces",
        May(P::WorkspaceRead, P::OrgRead),
    ),
    (
        "POST",
        "/v1/organizations/{organization}/workspaces",
        May(P::WorkspaceWrite, P::ProjectRead),
    ),
    (
        "GET",
        "/v1/workspaces/{workspace}",
        May(P::WorkspaceRead, P::WorkspaceRead),
    ),
    (
        "PATCH",
        "/v1/workspaces/{workspace}",
        May(P::WorkspaceWrite, P::WorkspaceRead),
    ),
    (
        "POST",
        "/v1/workspaces/{workspace}/lock",
        May(P::WorkspaceLock, P::WorkspaceRead),
    ),
    (
        "POST",
        "/v1/workspaces/{workspace}/unlock",
        May(P::WorkspaceLock, P::WorkspaceRead),
    ),
    (
        "POST",
        "/v1/workspaces/{workspace}/force-unlock",
        May(P::WorkspaceLock, P::WorkspaceRead),
    ),
    (
        "GET",
        "/v1/workspaces/{workspace}/variables",
        May(P::VariableRead, P::WorkspaceRead),
    ),
    (
        "POST",
        "/v1/workspaces/{workspace}/variables",
        May(P::VariableWrite, P::WorkspaceRead),
    ),
    (
        "PATCH",
        "/v1/workspaces/{workspace}/variables/{variable}",
        May(P::VariableWrite, P::WorkspaceRead),
    ),
    (
        "DELETE",
        "/v1/workspaces/{workspace}/variables/{variable}",
        May(P::VariableWrite, P::WorkspaceRead),
    ),
    (
        "POST",
        "/v1/organizations/{organization}/users",
        May(P::OrgAdmin, P::OrgRead),
    ),
    (
        "GET",
        "/v1/organizations/{organization}/grants",
        May(P::OrgAdmin, P::OrgRead),
    ),
    (
        "POST",
        "/v1/organizations/{organization}/grants",
        May(P::OrgAdmin, P::OrgRead),
    ),
    (
        "DELETE",
        "/v1/organizations/{organization}/grants/{user}",
        May(P::OrgAdmin, P::OrgRead),
    ),
    ("GET", "/v1/organizations/{organization}/tokens", Member),
    ("POST", "/v1/organizations/{organization}/tokens", Member),
    (
        "DELETE",
        "/v1/organizations/{organization}/tokens/{token}",
        May(P::OrgAdmin, P::OrgRead),
    ),
    (
        "POST",
        "/v1/workspaces/{workspace}/configuration-versions",
        May(P::RunCreate, P::WorkspaceRead),
    ),
    (
        "GET",
        "/v1/configuration-versions/{configuration}",
        May(P::RunRead, P::RunRead),
    ),
    (
        "PUT",
        "/v1/configuration-versions/{configuration}/content",
        May(P::RunCreate, P::RunRead),
    ),
    (
        "GET",
        "/v1/organizations/{organization}/runs",
        May(P::RunRead, P::OrgRead),
    ),
    (
        "GET",
        "/v1/workspaces/{workspace}/runs",
        May(P::RunRead, P::WorkspaceRead),
    ),
    (
        "POST",
        "/v1/workspaces/{workspace}/runs",
        May(P::RunCreate, P::WorkspaceRead),
    ),
    ("GET", "/v1/runs/{run}", May(P::RunRead, P::RunRead)),
    (
        "GET",
        "/v1/runs/{run}/logs/{phase}",
        May(P::RunRead, P::RunRead),
    ),
    (
        "POST",
        "/v1/runs/{run}/approve",
        May(P::RunApprove, P::RunRead),
    ),
    (
        "POST",
        "/v1/runs/{run}/discard",
        May(P::RunApprove, P::RunRead),
    ),
    (
        "POST",
        "/v1/runs/{run}/cancel",
        May(P::RunCancel, P::RunRead),
    ),
    ("GET", "/.well-known/terraform.json", Anybody),
    ("GET", "/app/{organization}/{workspace}/runs/{run}", Anybody),
    ("GET", "/api/v2/ping", Anybody),
    (
        "GET",
        "/api/v2/organizations/{organization}/entitlement-set",
        Insider,
    ),
    (
        "GET",
        "/api/v2/organizations/{organization}/capacity",
        Insider,
    ),
    (
        "GET",
        "/api/v2/organizations/{organization}/runs/queue",
        Insider,
    ),
    (
        "GET",
        "/api/v2/organizations/{organization}/projects",
        Insider,
    ),
    (
        "POST",
        "/api/v2/organizations/{organization}/projects",
        Hidden(P::ProjectWrite),
    ),
    (
        "POST",
        "/api/v2/organizations/{organization}/workspaces",
        Hidden(P::WorkspaceWrite),
    ),
    (
        "GET",
        "/api/v2/organizations/{organization}/workspaces/{name}",
        HiddenOrRun(P::WorkspaceRead),
    ),
    (
        "PATCH",
        "/api/v2/workspaces/{workspace}",
        Hidden(P::WorkspaceWrite),
    ),
    (
        "GET",
        "/api/v2/workspaces/{workspace}/runs",
        Hidden(P::RunRead),
    ),
    (
        "POST",
        "/api/v2/workspaces/{workspace}/relationships/tags",
        Hidden(P::WorkspaceWrite),
    ),
    (
        "POST",
        "/api/v2/workspaces/{workspace}/actions/lock",
        RunAlone,
    ),
    (
        "POST",
        "/api/v2/workspaces/{workspace}/actions/unlock",
        RunAlone,
    ),
    (
        "POST",
        "/api/v2/workspaces/{workspace}/configuration-versions",
        Hidden(P::RunCreate),
    ),
    (
        "GET",
        "/api/v2/configuration-versions/{configuration}",
        Hidden(P::RunRead),
    ),
    (
        "PUT",
        "/api/v2/uploads/configurations/{signature}",
        Signature,
    ),
    ("POST", "/api/v2/runs", Hidden(P::RunCreate)),
    ("GET", "/api/v2/runs/{run}", Hidden(P::RunRead)),
    ("GET", "/api/v2/runs/{run}/run-events", Hidden(P::RunRead)),
    (
        "POST",
        "/api/v2/runs/{run}/actions/apply",
        Hidden(P::RunApprove),
    ),
    (
        "POST",
        "/api/v2/runs/{run}/actions/discard",
        Hidden(P::RunApprove),
    ),
    (
        "POST",
        "/api/v2/runs/{run}/actions/cancel",
        Hidden(P::RunCancel),
    ),
    ("GET", "/api/v2/plans/{plan}", Hidden(P::RunRead)),
    ("GET", "/api/v2/applies/{apply}", Hidden(P::RunRead)),
    ("GET", "/api/v2/logs/{signature}", Signature),
    (
        "GET",
        "/api/v2/workspaces/{workspace}/current-state-version",
        Absent,
    ),
    (
        "GET",
        "/api/v2/workspaces/{workspace}/current-state-version-outputs",
        HiddenOrRun(P::WorkspaceRead),
    ),
    (
        "POST",
        "/api/v2/workspaces/{workspace}/state-versions",
        Absent,
    ),
    ("GET", "/api/v2/state-versions/{state}", Absent),
    ("GET", "/api/v2/state-versions/{state}/download", Absent),
    ("GET", "/api/v2/state-version-outputs/{output}", Absent),
    ("PUT", "/api/v2/uploads/states/{signature}", Signature),
    ("PUT", "/api/v2/uploads/json-states/{signature}", Signature),
    ("POST", "/runner/v1/leases", Runner),
    ("POST", "/runner/v1/attempts/{attempt}/heartbeat", Runner),
    (
        "GET",
        "/runner/v1/attempts/{attempt}/inputs/{input}",
        Runner,
    ),
    (
        "PUT",
        "/runner/v1/attempts/{attempt}/artifacts/{kind}",
        Runner,
    ),
    ("POST", "/runner/v1/attempts/{attempt}/logs", Runner),
    ("POST", "/runner/v1/attempts/{attempt}/result", Runner),
    ("POST", "/runner/v1/attempts/{attempt}/hand-back", Runner),
];

/// Who calls, in the order in which each route is tried: the strongest member last, because some
/// calls change what is there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum As {
    Nobody,
    BadToken,
    ForeignOwner,
    Run,
    Is(Role),
}

const CALLERS: [As; 8] = [
    As::Nobody,
    As::BadToken,
    As::ForeignOwner,
    As::Run,
    As::Is(Role::Reader),
    As::Is(Role::Planner),
    As::Is(Role::Operator),
    As::Is(Role::Owner),
];

/// What a caller gets, as far as permission is concerned.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    /// 401.
    Unknown,
    /// 403.
    Forbidden,
    /// 404.
    NotThere,
    /// Anything else: the handler itself answered.
    Reached,
}

impl Outcome {
    fn of(answer: &Answer) -> Self {
        match answer.status.as_u16() {
            401 => Self::Unknown,
            403 => Self::Forbidden,
            404 => Self::NotThere,
            _ => Self::Reached,
        }
    }
}

impl Who {
    /// What this caller may get; any of these.
    #[expect(
        clippy::match_same_arms,
        reason = "the order of the arms is the order of the rules"
    )]
    fn expected(self, caller: As) -> &'static [Outcome] {
        const HIDDEN: &[Outcome] = &[Outcome::NotThere, Outcome::Forbidden];
        const REACHED: &[Outcome] = &[Outcome::Reached];
        const UNKNOWN: &[Outcome] = &[Outcome::Unknown];
        const FORBIDDEN: &[Outcome] = &[Outcome::Forbidden];
        const NOT_THERE: &[Outcome] = &[Outcome::NotThere];
        match (self, caller) {
            (Anybody, _) => REACHED,
            (Signature, _) => HIDDEN,
            (Runner, _) => UNKNOWN,
            (_, As::Nobody | As::BadToken) => UNKNOWN,
            (Themselves | Member | May(..), As::Run) => FORBIDDEN,
            (Themselves, _) | (Member, As::Is(_)) => REACHED,
            (Insider, As::Run | As::Is(_)) => REACHED,
            (Absent, As::Run | As::Is(_)) => HIDDEN,
            (HiddenOrRun(_) | RunAlone, As::Run) => REACHED,
            (RunAlone, As::Is(_)) => HIDDEN,
            (Hidden(_), As::Run) => HIDDEN,
            (_, As::ForeignOwner) => NOT_THERE,
            (May(permission, _) | Hidden(permission) | HiddenOrRun(permission), As::Is(role))
                if role.grants(permission) =>
            {
                REACHED
            }
            (May(_, seen_with), As::Is(role)) if role.grants(seen_with) => FORBIDDEN,
            (May(..), As::Is(_)) => NOT_THERE,
            (Hidden(_) | HiddenOrRun(_), As::Is(_)) => HIDDEN,
        }
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn every_route_lets_in_whom_the_table_says_and_nobody_else(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, fence) = world.run_that_asks().await;
    world.seen_run(run).await;
    let run_token = world.run_token(run, fence).await;
    let mut wrong = Vec::new();
    for (method, path, who) in TABLE {
        for caller in CALLERS {
            let filled = fill(&world, path, run).await;
            let mut call = Call::new(method, filled, credential(&world, caller, &run_token));
            call.token = call.token.filter(|_| caller != As::Nobody);
            call.body = body(&world, path).await.to_string().into_bytes();
            let answer = call.send(&world.router).await;
            let expected = who.expected(caller);
            if answer.status.is_server_error() || !expected.contains(&Outcome::of(&answer)) {
                wrong.push(format!(
                    "{method} {path} as {caller:?}: {} {}, not {expected:?}",
                    answer.status, answer.json
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_and_the_router_have_the_same_routes() {
    let document: Value = serde_json::from_str(&stackship_api::openapi_json()).unwrap();
    let mut routes = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            routes.insert((method.to_uppercase(), plain(path)));
        }
    }
    let others = [
        stackship_api::health::ROUTES,
        stackship_api::v1::UNDESCRIBED_ROUTES,
        stackship_api::v2::ROUTES,
        stackship_api::runner_v1::ROUTES,
    ];
    for (method, path) in others.concat() {
        routes.insert((method.to_owned(), plain(path)));
    }
    let rows: BTreeSet<_> = TABLE
        .iter()
        .map(|(method, path, _)| ((*method).to_owned(), plain(path)))
        .collect();
    let missing: Vec<_> = routes.difference(&rows).collect();
    let stale: Vec<_> = rows.difference(&routes).collect();
    assert!(missing.is_empty(), "routes without a row: {missing:?}");
    assert!(stale.is_empty(), "rows without a route: {stale:?}");
}

/// A path without the names of its parameters.
fn plain(path: &str) -> String {
    let is_parameter = |part: &&str| part.starts_with('{');
    let parts = path
        .split('/')
        .map(|part| if is_parameter(&part) { "{}" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

fn credential<'a>(world: &'a World, caller: As, run_token: &'a str) -> &'a str {
    match caller {
        As::Nobody | As::BadToken => "ss_0000000000000000000000000000000000000000000",
        As::ForeignOwner => &world.umbrella.owner.token,
        As::Run => run_token,
        As::Is(Role::Reader) => &world.acme.reader.token,
        As::Is(Role::Planner) => &world.acme.planner.token,
        As::Is(Role::Operator) => &world.acme.operator.token,
        As::Is(Role::Owner) => &world.acme.owner.token,
    }
}

/// Enough of a body to get to the check of the permission, where that comes after reading it.
async fn body(world: &World, path: &str) -> Value {
    match path {
        "/v1/organizations/{organization}/workspaces" => json!({"name": "w", "project": "network"}),
        "/api/v2/organizations/{organization}/workspaces" => {
            json!({"data": {"type": "workspaces", "attributes": {"name": "w2"}}})
        }
        "/api/v2/runs" => {
            let id = world.configuration(false).await;
            let named = json!({"data": {"type": "configuration-versions", "id": id}});
            let relationships = json!({"configuration-version": named});
            json!({"data": {"type": "runs", "attributes": {}, "relationships": relationships}})
        }
        _ => json!({}),
    }
}

/// Names something of acme's for every parameter; what a call may use up is made anew.
async fn fill(world: &World, path: &str, run: RunId) -> String {
    let acme = &world.acme;
    let digits = run.to_string().split_off("run-".len());
    let mut filled = path.to_owned();
    if path.ends_with("{attempt}/logs") {
        filled.push_str("?sequence=0");
    }
    for (name, value) in [
        ("organization", acme.name.to_owned()),
        ("project", acme.project.to_string()),
        ("workspace", acme.workspace.to_string()),
        ("name", "production".to_owned()),
        ("run", run.to_string()),
        ("phase", "plan".to_owned()),
        ("plan", format!("plan-{digits}")),
        ("apply", format!("apply-{digits}")),
        ("signature", "wrong".to_owned()),
        ("kind", "plan".to_owned()),
        ("input", "configuration".to_owned()),
        (
            "attempt",
            clock::fresh::<stackship_domain::ids::AttemptId>().to_string(),
        ),
        (
            "state",
            clock::fresh::<stackship_domain::ids::StateVersionId>().to_string(),
        ),
        ("output", "wsout-1".to_owned()),
    ] {
        filled = filled.replace(&format!("{{{name}}}"), &value);
    }
    if filled.contains("{configuration}") {
        filled = filled.replace(
            "{configuration}",
            &world.configuration(false).await.to_string(),
        );
    }
    if filled.contains("{variable}") {
        filled = filled.replace("{variable}", &fresh_variable(world).await);
    }
    if filled.contains("{user}") {
        filled = filled.replace("{user}", &fresh_member(world).await);
    }
    if filled.contains("{token}") {
        filled = filled.replace("{token}", &fresh_token(world).await);
    }
    filled
}

async fn fresh_variable(world: &World) -> String {
    let new = NewVariable {
        key: format!("v{}", clock::fresh_text()),
        value: "1".to_owned(),
        category: VariableCategory::Terraform,
        hcl: false,
        sensitive: false,
        description: String::new(),
    };
    let context = origin(world.acme.owner.user).within(world.acme.organization);
    let variable = variables::set(&world.store, &context, world.acme.workspace, &new).await;
    variable.unwrap().id.to_string()
}

async fn fresh_member(world: &World) -> String {
    let new = new_user(&clock::fresh_text());
    let user = users::create(&world.store, None, &new).await.unwrap();
    let context = origin(world.acme.owner.user).within(world.acme.organization);
    let grant = Grant {
        scope: Scope::Organization,
        user,
        role: Role::Reader,
    };
    grants::grant(&world.store, &context, grant).await.unwrap();
    user.to_string()
}

async fn fresh_token(world: &World) -> String {
    let user: String = fresh_member(world).await;
    let new = NewToken {
        user: user.parse().unwrap(),
        description: "test".to_owned(),
        expires_at: None,
    };
    let context = origin(world.acme.owner.user).within(world.acme.organization);
    let (id, _) = tokens::create(&world.store, &context, &new).await.unwrap();
    id.to_string()
}
