//! A world with two organizations and one member of each role, behind the whole router.

use std::time::Duration;

use axum::Router;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor as _, PgPool};
use stackship_api::signed_path::SignedPaths;
use stackship_api::{ApiSettings, App, AppInner};
use stackship_domain::ids::{
    ConfigurationVersionId, OrganizationId, ProjectId, RunId, UserId, WorkspaceId,
};
use stackship_domain::run::{
    Command, Phase, PolicyOutcome, Predecessor, RunKind, Source, SourceKind, samples,
};
use stackship_domain::{Actor, Fence, Role, Timestamp, workspace};
use stackship_projections::{CursorKey, Projector, ViewWaiter, Views};
use stackship_store::attempts::{self, LeasedAttempt, Offer};
use stackship_store::notify::Nudges;
use stackship_store::objects::{KeyRing, NewObject, ObjectKind, Objects};
use stackship_store::records::configuration_versions::{self, NewConfigurationVersion};
use stackship_store::records::grants::{self, Grant, Scope};
use stackship_store::records::tokens::{self, NewToken};
use stackship_store::records::users::{self, NewUser, UserKind};
use stackship_store::records::workspaces::{self, NewWorkspace};
use stackship_store::records::{Origin, organizations, projects, runners};
use stackship_store::{Store, clock};
use stackship_workflow::create::{RunRequest, create_run};
use tokio_util::sync::CancellationToken;

use crate::http::{Answer, Call};

/// How long something that must come true may take. The log's reader can be held back by other
/// databases of the same cluster.
const SOON: Duration = Duration::from_mins(1);
/// A lease that no test outlives.
const LEASE_SECONDS: u32 = 600;
/// A lag that no test waits for.
const READY_LAG_SECONDS: u32 = 600;
const CONNECTIONS_MAX: u32 = 6;

pub struct World {
    /// Superuser connections, for counting what the API wrote.
    pub owner: PgPool,
    pub store: Store,
    pub router: Router,
    /// The same for who takes no read model that is behind at all.
    pub router_ready_without_lag: Router,
    pub acme: Tenant,
    pub umbrella: Tenant,
    stop: CancellationToken,
    _directory: tempfile::TempDir,
}

/// One organization with its people.
pub struct Tenant {
    pub name: &'static str,
    pub organization: OrganizationId,
    pub project: ProjectId,
    pub workspace: WorkspaceId,
    pub owner: Member,
    pub operator: Member,
    pub planner: Member,
    pub reader: Member,
}

pub struct Member {
    pub user: UserId,
    pub token: String,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    pub async fn new(owner: PgPool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pool = pool_as(&owner, "set role stackship_api");
        let keys = KeyRing::load_or_create(&directory.path().join("keys/key")).unwrap();
        let objects = Objects::open(&directory.path().join("objects"), keys, pool.clone()).unwrap();
        let store = Store::new(pool.clone(), objects);
        let (nudges, stop) = (Nudges::default(), CancellationToken::new());
        let projector = Projector::new(
            pool_as(&owner, "set role stackship_projector"),
            nudges.clone(),
        );
        tokio::spawn(nudges.clone().listen(pool, stop.clone()));
        tokio::spawn(projector.run(stop.clone()));
        let acme = Tenant::new(&store, "acme").await;
        let umbrella = Tenant::new(&store, "umbrella").await;
        Self {
            router: stackship_api::router(app(&store, &nudges, READY_LAG_SECONDS)),
            router_ready_without_lag: stackship_api::router(app(&store, &nudges, 0)),
            owner,
            store,
            acme,
            umbrella,
            stop,
            _directory: directory,
        }
    }

    /// Sends a request of acme's owner.
    pub async fn send(&self, method: &str, path: &str, body: &serde_json::Value) -> Answer {
        Call::new(method, path, &self.acme.owner.token)
            .json(body)
            .send(&self.router)
            .await
    }

    pub async fn count(&self, table: &str) -> i64 {
        let query = format!("select count(*) from {table}");
        sqlx::query_scalar(&query)
            .fetch_one(&self.owner)
            .await
            .unwrap()
    }

    /// A configuration version of acme's workspace whose archive has arrived.
    pub async fn configuration(&self, speculative: bool) -> ConfigurationVersionId {
        let acme = &self.acme;
        let new = NewConfigurationVersion {
            workspace: acme.workspace,
            speculative,
            source: SourceKind::Api,
        };
        let context = origin(acme.owner.user).within(acme.organization);
        let version = configuration_versions::create(&self.store, &context, new)
            .await
            .unwrap();
        let object = NewObject {
            organization: acme.organization,
            workspace: Some(acme.workspace),
            kind: ObjectKind::Configuration,
            bytes_max: 1024,
        };
        let stored = self
            .store
            .objects
            .put_bytes(object, b"archive")
            .await
            .unwrap();
        configuration_versions::uploaded(&self.store, &context, version.id, stored)
            .await
            .unwrap();
        version.id
    }

    /// A queued run of acme's workspace.
    pub async fn run(&self, kind: RunKind) -> RunId {
        let acme = &self.acme;
        let pool = &self.store.pool;
        let id = self.configuration(kind == RunKind::Speculative).await;
        let configuration = configuration_versions::by_id(pool, acme.organization, id).await;
        let workspace = workspaces::by_id(pool, acme.organization, acme.workspace).await;
        let request = RunRequest {
            organization: acme.organization,
            workspace: workspace.unwrap().unwrap(),
            configuration: configuration.unwrap().unwrap(),
            kind,
            message: "Grow the network".to_owned(),
            source: Source::plain(SourceKind::Api),
            auto_apply: false,
            destroy: false,
            options: stackship_domain::variable::PlanOptions::default(),
            variables: Vec::new(),
        };
        let context = origin(acme.owner.user).within(acme.organization);
        create_run(&self.store, &context, request)
            .await
            .unwrap()
            .run
    }

    pub async fn run_command(&self, run: RunId, command: Command) {
        let context = origin(self.acme.owner.user).within(self.acme.organization);
        self.store
            .runs
            .execute(run, command, &context)
            .await
            .unwrap();
    }

    pub async fn workspace_command(&self, command: workspace::Command) {
        let context = origin(self.acme.owner.user).within(self.acme.organization);
        let workspace = self.acme.workspace;
        self.store
            .workspaces
            .execute(workspace, command, &context)
            .await
            .unwrap();
    }

    /// A run that holds acme's workspace.
    pub async fn holding_run(&self) -> (RunId, Fence) {
        let run = self.run(RunKind::PlanAndApply).await;
        self.workspace_command(workspace::Command::Enqueue { run })
            .await;
        self.workspace_command(workspace::Command::AcquireForRun { run })
            .await;
        let (now, _) = self
            .store
            .workspaces
            .load(self.acme.workspace)
            .await
            .unwrap();
        self.run_command(run, Command::GrantLock { fence: now.fence })
            .await;
        (run, now.fence)
    }

    /// A run that waits for a person.
    pub async fn run_that_asks(&self) -> (RunId, Fence) {
        let (run, fence) = self.holding_run().await;
        let attempt = samples::attempt(1);
        let plan = Command::RecordPlan {
            attempt: attempt.id,
            plan: Box::new(samples::plan()),
        };
        let policy = Command::RecordPolicy {
            result: samples::policy(PolicyOutcome::Pass),
            approval_expires_at: clock::now() + Duration::from_hours(1),
        };
        let start = Command::StartPlan { attempt };
        for command in [start, plan, Command::StartPolicyCheck, policy] {
            self.run_command(run, command).await;
        }
        (run, fence)
    }

    /// A token of the plan phase of a run.
    pub async fn run_token(&self, run: RunId, fence: Fence) -> String {
        self.leased_plan(run, fence).await.run_token
    }

    /// The plan phase of a run, in the hands of a runner.
    pub async fn leased_plan(&self, run: RunId, fence: Fence) -> LeasedAttempt {
        let offer = Offer {
            organization: self.acme.organization,
            workspace: self.acme.workspace,
            run,
            phase: Phase::Plan,
            number: 1,
            region: "local".to_owned(),
            platform: "linux_amd64".to_owned(),
            fence: Some(fence),
            binding: None,
            predecessor: Predecessor::None,
        };
        attempts::offer(&self.store, &offer).await.unwrap();
        let (runner, _) = runners::create(&self.store, "one").await.unwrap();
        let leased =
            attempts::lease_next(&self.store, runner, "local", "linux_amd64", LEASE_SECONDS);
        leased.await.unwrap().unwrap()
    }

    /// What acme's owner sees of a run once the read models hold this event of it.
    pub async fn seen_run(&self, run: RunId) -> serde_json::Value {
        let (_, sequence) = self.store.runs.load(run).await.unwrap();
        let seen =
            "select exists (select from view.run_review where run_id = $1 and last_sequence >= $2)";
        let look = async || {
            let query = sqlx::query_scalar::<_, bool>(seen)
                .bind(run.to_string())
                .bind(sequence);
            query.fetch_one(&self.owner).await.unwrap()
        };
        until("the run can be seen", look).await;
        let path = format!("/v1/runs/{run}");
        Call::new("GET", path, &self.acme.owner.token)
            .send(&self.router)
            .await
            .data(200)
    }
}

/// Waits for a condition that must come true.
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let waiting = async {
        let mut tick = tokio::time::interval(Duration::from_millis(5));
        while !condition().await {
            tick.tick().await;
        }
    };
    assert!(
        tokio::time::timeout(SOON, waiting).await.is_ok(),
        "it did not come true that {what}"
    );
}

impl Tenant {
    async fn new(store: &Store, name: &'static str) -> Self {
        let owner = users::create(store, None, &new_user(&format!("{name}-owner")))
            .await
            .unwrap();
        let origin = origin(owner);
        let organization = organizations::create(store, &origin, &name.parse().unwrap(), owner)
            .await
            .unwrap();
        let context = origin.within(organization);
        let project = projects::create(store, &context, &"network".parse().unwrap())
            .await
            .unwrap();
        let new = new_workspace(project, "production");
        let workspace = workspaces::create(store, &context, &new).await.unwrap();
        let mut tenant = Self {
            name,
            organization,
            project,
            workspace,
            owner: Member {
                user: owner,
                token: token(store, organization, owner).await,
            },
            operator: Member::none(),
            planner: Member::none(),
            reader: Member::none(),
        };
        tenant.operator = tenant.member(store, Role::Operator).await;
        tenant.planner = tenant.member(store, Role::Planner).await;
        tenant.reader = tenant.member(store, Role::Reader).await;
        tenant
    }

    async fn member(&self, store: &Store, role: Role) -> Member {
        let user = users::create(store, None, &new_user(&format!("{}-{role}", self.name)))
            .await
            .unwrap();
        let context = origin(self.owner.user).within(self.organization);
        let grant = Grant {
            scope: Scope::Organization,
            user,
            role,
        };
        grants::grant(store, &context, grant).await.unwrap();
        Member {
            user,
            token: token(store, self.organization, user).await,
        }
    }

    pub fn path(&self, rest: &str) -> String {
        format!("/v1/organizations/{}/{rest}", self.name)
    }
}

impl Member {
    fn none() -> Self {
        Self {
            user: clock::fresh(),
            token: String::new(),
        }
    }
}

pub fn new_user(login: &str) -> NewUser {
    NewUser {
        login: login.to_owned(),
        display_name: "Somebody".to_owned(),
        kind: UserKind::Service,
    }
}

pub fn new_workspace(project: ProjectId, name: &str) -> NewWorkspace {
    NewWorkspace {
        project,
        name: name.parse().unwrap(),
        tofu_version: "1.12.6".parse().unwrap(),
        working_directory: String::new(),
        region: "local".to_owned(),
        platform: "linux_amd64".to_owned(),
        approval_seconds: 3600,
    }
}

pub async fn token(store: &Store, organization: OrganizationId, user: UserId) -> String {
    let new = NewToken {
        user,
        description: "test".to_owned(),
        expires_at: None,
    };
    let (_, secret) = tokens::create(store, &origin(user).within(organization), &new)
        .await
        .unwrap();
    secret.expose().to_owned()
}

pub fn origin(user: UserId) -> Origin {
    Origin {
        actor: Actor::User(user),
        request_id: "test".to_owned(),
        command_id: clock::fresh_text(),
    }
}

pub fn in_an_hour() -> Timestamp {
    clock::now() + Duration::from_hours(1)
}

fn app(store: &Store, nudges: &Nudges, ready_lag_seconds: u32) -> App {
    let pool = store.pool.clone();
    let signer = SignedPaths::new(
        store
            .objects
            .keys()
            .derive(stackship_api::signed_path::KEY_LABEL),
    );
    App::new(AppInner {
        store: store.clone(),
        views: Views::new(pool.clone(), CursorKey::new([7; 32])),
        waiter: ViewWaiter::new(pool, nudges.clone()),
        nudges: nudges.clone(),
        signer,
        settings: ApiSettings {
            public_url: "https://stackship.test".to_owned(),
            hostname: "stackship.test".to_owned(),
            gateway_url: "http://127.0.0.1:8080".to_owned(),
            default_tofu_version: "1.12.6".parse().unwrap(),
            default_region: "local".to_owned(),
            ready_lag_seconds,
            lease_seconds: 30,
            plan_seconds_max: 3600,
            apply_seconds_max: 3600,
            snapshot_interval_seconds: 20,
        },
    })
}

fn pool_as(owner: &PgPool, set_role: &'static str) -> PgPool {
    PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .after_connect(move |connection, _| {
            Box::pin(async move { connection.execute(set_role).await.map(drop) })
        })
        .connect_lazy_with((*owner.connect_options()).clone())
}
