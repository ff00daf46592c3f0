//! Runs whose every stored part holds something that must not be shown.

use std::time::Duration;

use serde_json::{Value, json};
use stackship_domain::Sha256Digest;
use stackship_domain::ids::RunId;
use stackship_domain::run::{
    ApplyReport, Attempt, Command, Counts, Doubt, DoubtReason, Phase, PlanRecord, PolicyOutcome,
    PolicyResult, samples,
};
use stackship_policy::{Evaluation, Finding, Level, PolicyEntry, RESULT_SCHEMA, set_digest};
use stackship_store::attempts::{self, Offer};
use stackship_store::clock;
use stackship_store::objects::{NewObject, ObjectKind, StoredObject};
use stackship_store::phase_logs::{self, Chunk, LogPhase};
use stackship_store::records::runners;

use crate::documents::assert_described;
use crate::http::Call;
use crate::world::World;

/// Stands in everything that must be left out (S-REV-17).
pub const SECRET: &str = "MUST-NOT-BE-SHOWN";
const LEASE_SECONDS: u32 = 600;

/// A run under review, and every secret text that was made on its way.
pub struct Reviewed<'a> {
    pub world: &'a World,
    pub run: RunId,
    pub evaluation: Evaluation,
    fence: stackship_domain::Fence,
    tokens: Vec<String>,
}

impl<'a> Reviewed<'a> {
    /// A run whose plan is recorded and fails a soft-mandatory policy.
    pub async fn soft_failed(world: &'a World) -> Self {
        let (run, fence) = world.holding_run().await;
        let mut reviewed = Self {
            world,
            run,
            evaluation: evaluation(run),
            fence,
            tokens: Vec::new(),
        };
        let attempt = reviewed.lease(Phase::Plan, None).await;
        let report = json!({"phase": "plan", "end": {"end": "planned", "sandbox": SECRET}});
        reviewed.close(&attempt, &report).await;
        let plan = Box::new(reviewed.plan().await);
        let id = attempt.id;
        reviewed.log(LogPhase::Plan, "the plan\n").await;
        for command in [
            Command::StartPlan { attempt },
            Command::RecordPlan { attempt: id, plan },
            Command::StartPolicyCheck,
            Command::RecordPolicy {
                result: reviewed.policy().await,
                approval_expires_at: in_an_hour(),
            },
        ] {
            world.run_command(run, command).await;
        }
        reviewed
    }

    /// Any other run, to be looked at.
    pub fn of(world: &'a World, run: RunId) -> Self {
        Self {
            world,
            run,
            evaluation: evaluation(run),
            fence: samples::fence(),
            tokens: Vec::new(),
        }
    }

    pub async fn overridden(&self) {
        let command = Command::OverridePolicy {
            by: self.owner(),
            result: self.evaluation.digest(),
            reason: "Agreed in review.".to_owned(),
            at: clock::now(),
            expires_at: in_an_hour(),
            approval_expires_at: in_an_hour(),
        };
        self.world.run_command(self.run, command).await;
    }

    /// Approved, applied, and in doubt.
    pub async fn doubtful(&mut self) {
        let seen = self.seen("owner").await;
        let binding = seen["stages"]["approval"]["binding_digest"].clone();
        let binding: Sha256Digest = binding.as_str().unwrap().parse().unwrap();
        let approve = Command::Approve {
            by: self.owner(),
            binding,
            at: clock::now(),
        };
        self.world.run_command(self.run, approve).await;
        let attempt = self.lease(Phase::Apply, Some(binding)).await;
        let end = json!({"end": "killed", "limit_exceeded": false, "detail": SECRET, "seen": null,
            "errored_state": null});
        self.close(&attempt, &json!({"phase": "apply", "end": end}))
            .await;
        let errored = self.plant(ObjectKind::ErroredState).await;
        let doubt = Doubt {
            reason: DoubtReason::SandboxLost,
            detail: "The sandbox vanished.".to_owned(),
            emergency: None,
            errored_state_object: Some(errored.id),
        };
        let (fence, at, id) = (self.fence, clock::now(), attempt.id);
        let start = Command::StartApply {
            attempt,
            fence,
            binding,
            at,
        };
        let record = Command::RecordApply {
            attempt: id,
            fence,
            report: Box::new(ApplyReport::Doubt(doubt)),
            at,
        };
        for command in [start, record] {
            self.world.run_command(self.run, command).await;
        }
    }

    /// What a member sees, held against the OpenAPI document.
    pub async fn seen(&self, role: &str) -> Value {
        self.world.seen_run(self.run).await;
        let acme = &self.world.acme;
        let member = match role {
            "reader" => &acme.reader,
            "planner" => &acme.planner,
            "operator" => &acme.operator,
            _ => &acme.owner,
        };
        let path = format!("/v1/runs/{}/review", self.run);
        let answer = Call::new("GET", path, &member.token)
            .send(&self.world.router)
            .await;
        assert_described("GET", "/v1/runs/{run}/review", &answer);
        answer.data(200)
    }

    /// Every text that names or opens something which stays behind the edge.
    pub async fn unspeakable(&self) -> Vec<String> {
        let mut texts = vec![SECRET.to_owned()];
        texts.extend(self.tokens.iter().cloned());
        for column in ["object_id", "storage_key", "key_id"] {
            let query = format!("select distinct {column} from record.objects");
            let found = sqlx::query_scalar::<_, String>(&query);
            texts.extend(found.fetch_all(&self.world.owner).await.unwrap());
        }
        let digests = "select encode(lease_token_sha256, 'hex') from record.attempts \
            where lease_token_sha256 is not null \
            union select encode(secret_sha256, 'hex') from record.runners";
        let found = sqlx::query_scalar::<_, String>(digests);
        texts.extend(found.fetch_all(&self.world.owner).await.unwrap());
        texts
    }

    pub async fn log(&self, phase: LogPhase, text: &str) {
        let chunk = Chunk {
            attempt_number: 1,
            sequence: 0,
            bytes: text.as_bytes(),
        };
        phase_logs::append(&self.world.store, self.run, phase, chunk)
            .await
            .unwrap();
    }

    fn owner(&self) -> stackship_domain::Actor {
        stackship_domain::Actor::User(self.world.acme.owner.user)
    }

    async fn lease(&mut self, phase: Phase, binding: Option<Sha256Digest>) -> Attempt {
        let (world, acme) = (self.world, &self.world.acme);
        let offer = Offer {
            organization: acme.organization,
            workspace: acme.workspace,
            run: self.run,
            phase,
            number: 1,
            region: "north".to_owned(),
            platform: "linux_amd64".to_owned(),
            fence: Some(self.fence),
            binding,
            predecessor: samples::plan().predecessor,
        };
        attempts::offer(&world.store, &offer).await.unwrap();
        let name = format!("{SECRET}-{}", phase.as_str());
        let (runner, token) = runners::create(&world.store, &name).await.unwrap();
        let leased =
            attempts::lease_next(&world.store, runner, "north", "linux_amd64", LEASE_SECONDS);
        let leased = leased.await.unwrap().unwrap();
        self.tokens.extend([
            token.expose().to_owned(),
            leased.lease_token,
            leased.run_token,
        ]);
        Attempt {
            id: leased.attempt.id,
            number: 1,
            runner,
        }
    }

    async fn close(&self, attempt: &Attempt, report: &Value) {
        attempts::record_result(&self.world.store, attempt.id, report)
            .await
            .unwrap();
    }

    /// A stored document of this kind, with a secret in it.
    async fn plant(&self, kind: ObjectKind) -> StoredObject {
        let content = format!("{{\"{SECRET}\": \"{}\"}}", kind.as_str());
        self.put(kind, content.as_bytes()).await
    }

    async fn put(&self, kind: ObjectKind, bytes: &[u8]) -> StoredObject {
        let object = NewObject {
            organization: self.world.acme.organization,
            workspace: Some(self.world.acme.workspace),
            kind,
            bytes_max: 1 << 20,
        };
        let stored = self.world.store.objects.put_bytes(object, bytes).await;
        stored.unwrap()
    }

    async fn plan(&self) -> PlanRecord {
        let (plan, json) = (
            self.plant(ObjectKind::Plan).await,
            self.plant(ObjectKind::PlanJson).await,
        );
        let diff = self.plant(ObjectKind::PlanDiff).await;
        let input = self.plant(ObjectKind::PolicyInput).await;
        PlanRecord {
            plan: plan.sha256,
            plan_bytes: plan.bytes,
            plan_json: json.sha256,
            plan_json_bytes: json.bytes,
            plan_diff: diff.sha256,
            policy_input: Some(input.sha256),
            counts: Counts {
                create: 3,
                destroy: 2,
                ..Counts::default()
            },
            plan_object: plan.id,
            plan_json_object: json.id,
            plan_diff_object: diff.id,
            policy_input_object: Some(input.id),
            lock_file_object: Some(self.plant(ObjectKind::LockFile).await.id),
            sandbox: json!({"driver": SECRET, "cgroup": SECRET, "landlock": {"abi": SECRET},
                "labels": [SECRET], "base_profile": "confined/3", "release": "0.1.0",
                "protocol": "runner/v1"}),
            ..samples::plan()
        }
    }

    async fn policy(&self) -> PolicyResult {
        let bytes = self.evaluation.to_bytes();
        let stored = self.put(ObjectKind::PolicyResult, &bytes).await;
        PolicyResult {
            digest: stored.sha256,
            engine: self.evaluation.engine.clone(),
            policies: self.evaluation.policies_count(),
            object: stored.id,
            ..samples::policy(self.evaluation.outcome)
        }
    }
}

fn in_an_hour() -> stackship_domain::Timestamp {
    clock::now() + Duration::from_hours(1)
}

/// One soft-mandatory denial, with secrets where nobody looks.
fn evaluation(run: RunId) -> Evaluation {
    let bundle = Sha256Digest::of(b"a bundle");
    Evaluation {
        schema: RESULT_SCHEMA.to_owned(),
        run_id: run,
        plan_digest: Sha256Digest::of(b"plan"),
        redacted_plan_digest: Some(Sha256Digest::of(b"redacted")),
        policy_input_digest: Some(Sha256Digest::of(b"input")),
        bundle_digest: set_digest(&[bundle]),
        bundles: vec![bundle],
        engine: stackship_policy::ENGINE.to_owned(),
        features: vec![SECRET.to_owned()],
        evaluated_at: samples::at(0),
        outcome: PolicyOutcome::SoftFailed,
        error_code: None,
        policies: vec![PolicyEntry {
            bundle,
            policy_id: "zones".to_owned(),
            level: Level::SoftMandatory,
            enabled: true,
            denials: 1,
            warnings: 0,
        }],
        findings: vec![Finding {
            policy_id: "zones".to_owned(),
            rule_id: SECRET.to_owned(),
            resource_address: Some("aws_eks_node_group.green".to_owned()),
            message: "It lists two subnets.".to_owned(),
            title: "Node groups span three zones".to_owned(),
            level: Level::SoftMandatory,
            bundle: Some(bundle),
        }],
        truncated: false,
    }
}
