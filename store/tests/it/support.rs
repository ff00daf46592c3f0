//! One small world for each test: an organization with an owner, a project and a workspace.

use std::path::{Path, PathBuf};

use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor as _, PgPool};
use stackship_domain::ids::{OrganizationId, ProjectId, RunId, UserId, WorkspaceId};
use stackship_domain::run::{
    Command, Facts, NewRun, Pins, PolicyPins, RunKind, Source, SourceKind,
};
use stackship_domain::variable::{InputSnapshot, PlanOptions, SnapshotSchema};
use stackship_domain::workspace::Command as WorkspaceCommand;
use stackship_domain::{Actor, Fence, Name, run, workspace};
use stackship_store::attempts::{self, LeasedAttempt, Offer};
use stackship_store::log::{Committed, Context};
use stackship_store::objects::{KeyRing, NewObject, ObjectKind, Objects};
use stackship_store::records::users::{NewUser, UserKind};
use stackship_store::records::workspaces::NewWorkspace;
use stackship_store::records::{
    Origin, configuration_versions, organizations, projects, runners, snapshots, users, workspaces,
};
use stackship_store::{Store, StoreError, clock};

/// Connections of a world's API pool: enough for eight writers and a reader.
const CONNECTIONS_MAX: u32 = 12;
/// A lease that no test outlives.
pub const LEASE_SECONDS: u32 = 600;

pub struct World {
    /// Superuser connections, for what the server itself can never do.
    pub owner: PgPool,
    /// The write side, with the rights of the API.
    pub store: Store,
    pub organization: OrganizationId,
    pub user: UserId,
    pub project: ProjectId,
    pub workspace: WorkspaceId,
    directory: tempfile::TempDir,
}

impl World {
    pub async fn new(owner: PgPool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pool = api_pool(&owner).await;
        let keys = KeyRing::load_or_create(&directory.path().join("keys/key")).unwrap();
        let objects = Objects::open(&directory.path().join("objects"), keys, pool.clone()).unwrap();
        let store = Store::new(pool, objects);
        let user = users::create(&store, None, &person("ada")).await.unwrap();
        let (organization, project, workspace) = tenant(&store, user, "acme").await;
        Self {
            owner,
            store,
            organization,
            user,
            project,
            workspace,
            directory,
        }
    }

    pub fn context(&self) -> Context {
        origin(self.user).within(self.organization)
    }

    /// A second tenant with the same owner.
    pub async fn other_tenant(&self) -> (OrganizationId, ProjectId, WorkspaceId) {
        tenant(&self.store, self.user, "umbrella").await
    }

    pub fn new_object(&self, kind: ObjectKind) -> NewObject {
        NewObject {
            organization: self.organization,
            workspace: Some(self.workspace),
            kind,
            bytes_max: 64 << 20,
        }
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Every file below the objects' root.
    pub fn object_files(&self) -> Vec<PathBuf> {
        files_below(&self.directory.path().join("objects"))
    }

    /// What a run of this workspace pins, with a configuration and a snapshot of its own.
    pub async fn facts(&self, kind: RunKind) -> Facts {
        let context = self.context();
        let object = self
            .store
            .objects
            .put_bytes(self.new_object(ObjectKind::Configuration), b"tar")
            .await
            .unwrap();
        let new = configuration_versions::NewConfigurationVersion {
            workspace: self.workspace,
            speculative: kind == RunKind::Speculative,
            source: SourceKind::Api,
        };
        let version = configuration_versions::create(&self.store, &context, new)
            .await
            .unwrap();
        configuration_versions::uploaded(&self.store, &context, version.id, object)
            .await
            .unwrap();
        let (snapshot, inputs) =
            snapshots::store(&self.store, &context, self.workspace, &empty_snapshot())
                .await
                .unwrap();
        Facts {
            organization: self.organization,
            project: self.project,
            workspace: self.workspace,
            kind,
            source: Source::plain(SourceKind::Api),
            message: "Grow the network".to_owned(),
            created_by: Actor::User(self.user),
            created_at: clock::now(),
            configuration_version: version.id,
            input_snapshot: snapshot,
            withheld_variables: vec![],
            working_directory: String::new(),
            pins: Pins {
                configuration: object.sha256,
                inputs,
                tofu_version: "1.12.6".parse().unwrap(),
                region: "local".to_owned(),
                platform: "linux_amd64".to_owned(),
                policies: PolicyPins::default(),
            },
        }
    }

    /// A run that was just created.
    pub async fn run(&self, kind: RunKind) -> RunId {
        let facts = self.facts(kind).await;
        let id = clock::fresh();
        self.command_run(
            id,
            Command::Create(Box::new(NewRun {
                facts,
                auto_apply: false,
                destroy: false,
            })),
        )
        .await;
        id
    }

    /// A run that holds the workspace's lock.
    pub async fn run_with_lock(&self) -> (RunId, Fence) {
        let run = self.run(RunKind::PlanAndApply).await;
        self.command_workspace(WorkspaceCommand::Enqueue { run })
            .await;
        self.command_workspace(WorkspaceCommand::AcquireForRun { run })
            .await;
        let (workspace, _) = self.store.workspaces.load(self.workspace).await.unwrap();
        self.command_run(
            run,
            Command::GrantLock {
                fence: workspace.fence,
                warnings: Vec::new(),
            },
        )
        .await;
        (run, workspace.fence)
    }

    pub async fn release(&self, run: RunId, fence: Fence) {
        self.command_workspace(WorkspaceCommand::ReleaseByRun {
            run,
            fence,
            left_behind: None,
        })
        .await;
    }

    pub async fn command_run(&self, id: RunId, command: run::Command) -> Committed {
        self.store
            .runs
            .execute(id, command, &self.context())
            .await
            .unwrap()
    }

    pub async fn command_workspace(&self, command: workspace::Command) -> Committed {
        self.store
            .workspaces
            .execute(self.workspace, command, &self.context())
            .await
            .unwrap()
    }

    pub fn apply_offer(&self, run: RunId, fence: Fence) -> Offer {
        Offer {
            organization: self.organization,
            workspace: self.workspace,
            run,
            phase: run::Phase::Apply,
            number: 1,
            region: "local".to_owned(),
            platform: "linux_amd64".to_owned(),
            fence: Some(fence),
            binding: Some(run::samples::evidence().binding()),
            predecessor: run::Predecessor::None,
        }
    }

    /// A leased apply of this run.
    pub async fn leased_apply(&self, run: RunId, fence: Fence) -> LeasedAttempt {
        attempts::offer(&self.store, &self.apply_offer(run, fence))
            .await
            .unwrap();
        let (runner, _) = runners::create(&self.store, &clock::fresh_text())
            .await
            .unwrap();
        attempts::lease_next(&self.store, runner, "local", "linux_amd64", LEASE_SECONDS)
            .await
            .unwrap()
            .unwrap()
    }

    /// How many events the log holds.
    pub async fn event_count(&self) -> i64 {
        sqlx::query_scalar("select count(*) from log.events")
            .fetch_one(&self.owner)
            .await
            .unwrap()
    }
}

pub fn origin(user: UserId) -> Origin {
    Origin {
        actor: Actor::User(user),
        request_id: clock::fresh_text(),
        command_id: clock::fresh_text(),
    }
}

pub fn person(login: &str) -> NewUser {
    NewUser {
        login: login.to_owned(),
        display_name: login.to_uppercase(),
        kind: UserKind::Person,
    }
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub fn new_workspace(project: ProjectId, text: &str) -> NewWorkspace {
    NewWorkspace {
        project,
        name: name(text),
        tofu_version: "1.12.6".parse().unwrap(),
        working_directory: String::new(),
        region: "local".to_owned(),
        platform: "linux_amd64".to_owned(),
        approval_seconds: 3600,
    }
}

pub fn empty_snapshot() -> InputSnapshot {
    InputSnapshot {
        schema: SnapshotSchema::V1,
        working_directory: String::new(),
        variables: vec![],
        withheld: vec![],
        options: PlanOptions::default(),
    }
}

async fn tenant(
    store: &Store,
    owner: UserId,
    text: &str,
) -> (OrganizationId, ProjectId, WorkspaceId) {
    let organization = organizations::create(store, &origin(owner), &name(text), owner)
        .await
        .unwrap();
    let context = origin(owner).within(organization);
    let project = projects::create(store, &context, &name("platform"))
        .await
        .unwrap();
    let workspace = workspaces::create(store, &context, &new_workspace(project, "network"))
        .await
        .unwrap();
    (organization, project, workspace)
}

async fn api_pool(owner: &PgPool) -> PgPool {
    PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute("set role stackship_api").await.map(drop) })
        })
        .connect_with((*owner.connect_options()).clone())
        .await
        .unwrap()
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                files_below(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

/// The SQLSTATE with which PostgreSQL refuses a statement.
pub async fn refusal(pool: &PgPool, statement: &str) -> String {
    let error = sqlx::raw_sql(statement)
        .execute(pool)
        .await
        .expect_err(statement);
    code(&error)
}

/// The SQLSTATE of a refusal.
pub fn code(error: &sqlx::Error) -> String {
    let database = error
        .as_database_error()
        .unwrap_or_else(|| panic!("not PostgreSQL's refusal: {error}"));
    database
        .code()
        .expect("PostgreSQL tells a SQLSTATE")
        .into_owned()
}

/// "Permission denied".
pub const DENIED: &str = "42501";
/// A check constraint.
pub const CHECK: &str = "23514";
/// A null where none may be.
pub const NOT_NULL: &str = "23502";
/// A duplicate.
pub const UNIQUE: &str = "23505";
/// A stale fence.
pub const STALE_FENCE: &str = "SS001";
/// The log is append-only.
pub const APPEND_ONLY: &str = "SS002";
/// What was pinned cannot change.
pub const PINNED: &str = "SS003";
/// Not allowed now.
pub const NOT_NOW: &str = "SS004";

/// The rule by which the store refused.
pub fn violation<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> stackship_store::Violation {
    match outcome {
        Err(StoreError::Refused(violation)) => violation,
        other => panic!("not refused by a rule: {other:?}"),
    }
}
