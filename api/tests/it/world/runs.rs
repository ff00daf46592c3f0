//! Runs of acme's workspace, as far along as a test needs them.

use std::time::Duration;

use stackship_domain::ids::{ConfigurationVersionId, RunId, WorkspaceId};
use stackship_domain::run::{
    Command, Phase, PlanRecord, PolicyOutcome, PolicyResult, Predecessor, RunKind, Source,
    SourceKind, samples,
};
use stackship_domain::{Fence, workspace};
use stackship_store::attempts::{self, LeasedAttempt, Offer};
use stackship_store::clock;
use stackship_store::objects::{NewObject, ObjectKind, StoredObject};
use stackship_store::records::configuration_versions::{self, NewConfigurationVersion};
use stackship_store::records::{runners, workspaces};
use stackship_workflow::create::{RunRequest, create_run};

use super::{World, origin, until};
use crate::http::Call;

/// A lease that no test outlives.
const LEASE_SECONDS: u32 = 600;
/// What people may see of every plan here; the blanks show whether it is passed on as it is.
pub const PLAN_DIFF: &[u8] = b"{ \"schema\" : \"stackship.plan-diff/v1\" }\n";

impl World {
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
        self.run_command(
            run,
            Command::GrantLock {
                fence: now.fence,
                warnings: Vec::new(),
            },
        )
        .await;
        (run, now.fence)
    }

    /// An object whose content is a plan-diff, whatever it is said to be.
    pub async fn object(&self, workspace: Option<WorkspaceId>, kind: ObjectKind) -> StoredObject {
        let object = NewObject {
            organization: self.acme.organization,
            workspace,
            kind,
            bytes_max: 1024,
        };
        let stored = self.store.objects.put_bytes(object, PLAN_DIFF).await;
        stored.unwrap()
    }

    /// A plan with a stored plan-diff.
    pub async fn plan(&self) -> PlanRecord {
        let diff = self.object(Some(self.acme.workspace), ObjectKind::PlanDiff);
        let diff = diff.await;
        PlanRecord {
            plan_diff: diff.sha256,
            plan_diff_object: diff.id,
            ..samples::plan()
        }
    }

    /// A run with this plan that holds nothing.
    pub async fn speculative_run(&self, plan: PlanRecord) -> RunId {
        let run = self.run(RunKind::Speculative).await;
        let attempt = samples::attempt(1);
        let record = Command::RecordPlan {
            attempt: attempt.id,
            plan: Box::new(plan),
        };
        for command in [Command::StartPlan { attempt }, record] {
            self.run_command(run, command).await;
        }
        run
    }

    /// A run that waits for a person.
    pub async fn run_that_asks(&self) -> (RunId, Fence) {
        let (run, fence) = self.holding_run().await;
        let attempt = samples::attempt(1);
        let plan = Command::RecordPlan {
            attempt: attempt.id,
            plan: Box::new(self.plan().await),
        };
        let stored = self.object(Some(self.acme.workspace), ObjectKind::PolicyResult);
        let stored = stored.await;
        let policy = Command::RecordPolicy {
            result: PolicyResult {
                digest: stored.sha256,
                object: stored.id,
                ..samples::policy(PolicyOutcome::Pass)
            },
            approval_expires_at: clock::now() + Duration::from_hours(1),
        };
        let start = Command::StartPlan { attempt };
        for command in [start, plan, Command::StartPolicyCheck, policy] {
            self.run_command(run, command).await;
        }
        (run, fence)
    }

    /// The lease of the plan phase of a run, by a runner of its own, with that runner's token.
    pub async fn lease(&self, run: RunId, fence: Option<Fence>) -> (String, LeasedAttempt) {
        let offer = Offer {
            organization: self.acme.organization,
            workspace: self.acme.workspace,
            run,
            phase: Phase::Plan,
            number: 1,
            region: "local".to_owned(),
            platform: "linux_amd64".to_owned(),
            fence,
            binding: None,
            predecessor: Predecessor::None,
        };
        attempts::offer(&self.store, &offer).await.unwrap();
        let (runner, token) = runners::create(&self.store, &clock::fresh_text())
            .await
            .unwrap();
        let leased =
            attempts::lease_next(&self.store, runner, "local", "linux_amd64", LEASE_SECONDS);
        let leased = leased.await.unwrap().unwrap();
        assert_eq!(leased.attempt.offer.run, run, "another run was waiting");
        (token.expose().to_owned(), leased)
    }

    /// A token of the plan phase of a run.
    pub async fn run_token(&self, run: RunId, fence: Fence) -> String {
        self.lease(run, Some(fence)).await.1.run_token
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
