//! A database with organizations, workspaces and runs, through the log's own door.

use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use stackship_domain::ids::{
    ConfigurationVersionId, Id as _, InputSnapshotId, ObjectId, OrganizationId, ProjectId, RunId,
    UserId, WorkspaceId,
};
use stackship_domain::run::{
    self, ApplyReport, Facts, NewRun, PlanChanges, PlanRecord, PolicyOutcome, Run, RunKind, samples,
};
use stackship_domain::workspace::{self, Workspace};
use stackship_domain::{Actor, Fence};
use stackship_projections::{CursorKey, Projector, Views};
use stackship_store::clock;
use stackship_store::log::{Committed, Context, EventLog};
use stackship_store::notify::Nudges;

/// The longest that something which must happen may take. Other databases of the same cluster can
/// hold the log's reader back for a while.
pub const SOON: Duration = Duration::from_mins(1);

/// A pool whose sessions have the rights of `role` and show its name.
pub fn pool_as(pool: &PgPool, role: &'static str, connections: u32) -> PgPool {
    let options = (*pool.connect_options()).clone().application_name(role);
    PgPoolOptions::new()
        .max_connections(connections)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                sqlx::query(&format!("set role {role}"))
                    .execute(connection)
                    .await?;
                Ok(())
            })
        })
        .connect_lazy_with(options)
}

/// A tenant with one workspace.
#[derive(Debug, Clone, Copy)]
pub struct Tenant {
    pub organization: OrganizationId,
    pub project: ProjectId,
    pub workspace: WorkspaceId,
    pub person: UserId,
    snapshot: InputSnapshotId,
}

#[derive(Clone)]
pub struct World {
    /// With every right: for what must be prepared, and for breaking things.
    pub owner: PgPool,
    pub runs: EventLog<Run>,
    pub workspaces: EventLog<Workspace>,
    pub views: Views,
    pub projector: Projector,
    pub nudges: Nudges,
}

impl World {
    pub fn new(owner: PgPool) -> Self {
        let api = pool_as(&owner, "stackship_api", 10);
        let projector_pool = pool_as(&owner, "stackship_projector", 4);
        let nudges = Nudges::default();
        Self {
            runs: EventLog::new(api.clone()),
            workspaces: EventLog::new(api.clone()),
            views: Views::new(api, CursorKey::new([7; 32])),
            projector: Projector::new(projector_pool, nudges.clone()),
            nudges,
            owner,
        }
    }

    pub async fn tenant(&self) -> Tenant {
        let tenant = Tenant {
            organization: clock::fresh(),
            project: clock::fresh(),
            workspace: clock::fresh(),
            person: clock::fresh(),
            snapshot: clock::fresh(),
        };
        let name = format!("o{}", tenant.organization.uuid().simple());
        self.prepare(
            "insert into record.organizations (organization_id, name) values ($1, $2)",
            &[&tenant.organization.to_string(), &name],
        )
        .await;
        self.prepare(
            "insert into record.users (user_id, login, display_name) values ($1, $2, 'Ada')",
            &[&tenant.person.to_string(), &name],
        )
        .await;
        self.prepare(
            "insert into record.projects (project_id, organization_id, name) values ($1, $2, 'p')",
            &[
                &tenant.project.to_string(),
                &tenant.organization.to_string(),
            ],
        )
        .await;
        self.workspace(&tenant, tenant.workspace).await;
        let object: ObjectId = clock::fresh();
        self.prepare(
            "insert into record.objects (object_id, organization_id, kind, storage_key, bytes, sha256, wrapped_key, \
             key_id) values ($1, $2, 'input_snapshot', $1, 0, decode(repeat('00', 32), 'hex'), '', 'k')",
            &[&object.to_string(), &tenant.organization.to_string()],
        )
        .await;
        self.prepare(
            "insert into record.input_snapshots (input_snapshot_id, organization_id, workspace_id, object_id, sha256) \
             values ($1, $2, $3, $4, decode(repeat('00', 32), 'hex'))",
            &[
                &tenant.snapshot.to_string(),
                &tenant.organization.to_string(),
                &tenant.workspace.to_string(),
                &object.to_string(),
            ],
        )
        .await;
        tenant
    }

    pub async fn workspace(&self, tenant: &Tenant, workspace: WorkspaceId) {
        let name = format!("w{}", workspace.uuid().simple());
        self.prepare(
            "insert into record.workspaces (workspace_id, organization_id, project_id, name, tofu_version, region) \
             values ($1, $2, $3, $4, '1.12.6', 'local')",
            &[
                &workspace.to_string(),
                &tenant.organization.to_string(),
                &tenant.project.to_string(),
                &name,
            ],
        )
        .await;
    }

    async fn prepare(&self, statement: &str, values: &[&str]) {
        let mut query = sqlx::query(statement);
        for value in values {
            query = query.bind(*value);
        }
        query.execute(&self.owner).await.unwrap();
    }

    /// Facts of a new run, with the configuration version they name.
    pub async fn facts(&self, tenant: &Tenant, kind: RunKind) -> Facts {
        let configuration_version: ConfigurationVersionId = clock::fresh();
        self.prepare(
            "insert into record.configuration_versions (configuration_version_id, organization_id, workspace_id, \
             speculative, source, created_by) values ($1, $2, $3, false, 'api', 'system')",
            &[
                &configuration_version.to_string(),
                &tenant.organization.to_string(),
                &tenant.workspace.to_string(),
            ],
        )
        .await;
        Facts {
            organization: tenant.organization,
            project: tenant.project,
            workspace: tenant.workspace,
            kind,
            created_by: Actor::User(tenant.person),
            created_at: clock::now(),
            configuration_version,
            input_snapshot: tenant.snapshot,
            ..samples::facts()
        }
    }

    pub async fn command(&self, tenant: &Tenant, run: RunId, command: run::Command) -> Committed {
        self.runs
            .execute(run, command, &context(tenant))
            .await
            .unwrap()
    }

    pub async fn ask(&self, tenant: &Tenant, command: workspace::Command) -> Committed {
        self.workspaces
            .execute(tenant.workspace, command, &context(tenant))
            .await
            .unwrap()
    }

    pub async fn create(&self, tenant: &Tenant, facts: Facts) -> RunId {
        let run = clock::fresh();
        let new = NewRun {
            facts,
            auto_apply: false,
            destroy: false,
        };
        self.command(tenant, run, run::Command::Create(Box::new(new)))
            .await;
        run
    }

    /// A speculative run, from its creation to its end: six events.
    pub async fn speculative_run(&self, tenant: &Tenant) -> RunId {
        let facts = self.facts(tenant, RunKind::Speculative).await;
        let run = self.create(tenant, facts).await;
        self.plan(tenant, run, samples::plan()).await;
        run
    }

    /// From the start of a plan to what policy says about it.
    pub async fn plan(&self, tenant: &Tenant, run: RunId, plan: PlanRecord) {
        let attempt = samples::attempt(1);
        for command in [
            run::Command::StartPlan {
                attempt: attempt.clone(),
            },
            run::Command::RecordPlan {
                attempt: attempt.id,
                plan: Box::new(plan),
            },
            run::Command::StartPolicyCheck,
            run::Command::RecordPolicy {
                result: samples::policy(PolicyOutcome::Pass),
                approval_expires_at: samples::at(3600),
            },
        ] {
            self.command(tenant, run, command).await;
        }
    }

    /// A run that waits for its workspace and gets it.
    pub async fn holding_run(&self, tenant: &Tenant) -> (RunId, Fence) {
        let facts = self.facts(tenant, RunKind::PlanAndApply).await;
        let run = self.create(tenant, facts).await;
        self.ask(tenant, workspace::Command::Enqueue { run }).await;
        self.ask(tenant, workspace::Command::AcquireForRun { run })
            .await;
        let (now, _) = self.workspaces.load(tenant.workspace).await.unwrap();
        let command = run::Command::GrantLock {
            fence: now.fence,
            warnings: Vec::new(),
        };
        self.command(tenant, run, command).await;
        (run, now.fence)
    }

    /// A run that is approved and applied, and gives its workspace back.
    pub async fn applied_run(&self, tenant: &Tenant) -> RunId {
        let (run, fence) = self.holding_run(tenant).await;
        self.plan(tenant, run, samples::plan()).await;
        let attempt = samples::attempt(1);
        let binding = samples::evidence().binding();
        for command in [
            run::Command::Approve {
                by: Actor::User(tenant.person),
                binding,
                at: samples::at(60),
            },
            run::Command::StartApply {
                attempt: attempt.clone(),
                fence,
                binding,
                at: samples::at(90),
            },
            run::Command::RecordApply {
                attempt: attempt.id,
                fence,
                report: Box::new(ApplyReport::Published {
                    publication: samples::publication(),
                }),
                at: samples::at(120),
            },
        ] {
            self.command(tenant, run, command).await;
        }
        self.ask(
            tenant,
            workspace::Command::ReleaseByRun {
                run,
                fence,
                left_behind: None,
            },
        )
        .await;
        run
    }

    /// A run whose plan changes nothing.
    pub async fn unchanged_run(&self, tenant: &Tenant) -> RunId {
        let (run, fence) = self.holding_run(tenant).await;
        let plan = PlanRecord {
            changes: PlanChanges::None,
            ..samples::plan()
        };
        self.plan(tenant, run, plan).await;
        self.ask(
            tenant,
            workspace::Command::ReleaseByRun {
                run,
                fence,
                left_behind: None,
            },
        )
        .await;
        run
    }

    /// An event of its own, outside runs and workspaces.
    pub async fn fact(&self, tenant: &Tenant) {
        let mut connection = self.owner.acquire().await.unwrap();
        let fact = stackship_store::log::Fact {
            name: "token_created",
            detail: serde_json::json!({"description": "ci", "ratio": 0.25}),
        };
        stackship_store::log::fact_append(&mut connection, &context(tenant), &fact)
            .await
            .unwrap();
    }

    /// Follows the log by hand until every event in it is applied.
    pub async fn settle(&self) {
        until("every event is applied", async || {
            self.projector.catch_up().await.unwrap();
            self.applied().await == self.events().await
        })
        .await;
    }

    pub async fn events(&self) -> i64 {
        self.number("select count(*) from log.events").await
    }

    pub async fn applied(&self) -> i64 {
        self.number("select applied from view.checkpoints where name = 'live'")
            .await
    }

    pub async fn number(&self, query: &str) -> i64 {
        sqlx::query_scalar(query)
            .fetch_one(&self.owner)
            .await
            .unwrap()
    }

    /// Every row of every read model, as text.
    pub async fn dump(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (table, key) in [
            ("run_review", "run_id"),
            ("run_inventory", "run_id"),
            ("workspace_status", "workspace_id"),
            ("audit_entries", "organization_id, number"),
            ("audit_heads", "organization_id"),
        ] {
            let query = format!("select row.*::text from view.{table} as row order by {key}");
            let rows: Vec<String> = sqlx::query_scalar(&query)
                .fetch_all(&self.owner)
                .await
                .unwrap();
            lines.extend(rows.into_iter().map(|row| format!("{table}: {row}")));
        }
        lines
    }
}

/// Waits for a condition that must come true.
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let waiting = async {
        let mut tick = tokio::time::interval(Duration::from_millis(2));
        while !condition().await {
            tick.tick().await;
        }
    };
    assert!(
        tokio::time::timeout(SOON, waiting).await.is_ok(),
        "it did not come true that {what}"
    );
}

pub fn context(tenant: &Tenant) -> Context {
    Context {
        organization: tenant.organization,
        actor: Actor::User(tenant.person),
        request_id: clock::fresh_text(),
        command_id: clock::fresh_text(),
    }
}
