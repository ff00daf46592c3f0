//! A runner without a sandbox: it leases like a real one, runs the real `tofu` with the run's token
//! against the server, and reports what it saw.

use std::path::Path;

use serde_json::{Value, json};
use stackship_domain::Sha256Digest;
use stackship_domain::run::{Counts, Phase};
use stackship_runner_protocol::{
    ApplyEnd, PhaseResult, PlanEnd, PlanJsonFacts, SeenState, StoredArtifact,
};
use stackship_store::attempts::{self, AttemptRow};
use stackship_store::notify::{Nudges, Topic};
use stackship_store::objects::{NewObject, ObjectKind};
use stackship_store::phase_logs::{self, Chunk, LogPhase};
use stackship_store::records::configuration_versions;
use stackship_store::states;
use stackship_workflow::leasing::{self, Leased};

use crate::v2::tofu::Tofu;
use crate::v2::world::{SOON, Served};

const LEASE_SECONDS: u32 = 600;
const BYTES_MAX: u64 = 1 << 20;

impl Served {
    /// Waits for an attempt and leases it.
    pub async fn lease(&self) -> Leased {
        let looking = async {
            let mut nudges = self.nudges.subscribe();
            loop {
                let leased = leasing::lease(
                    &self.store,
                    self.runner,
                    "local",
                    "linux_amd64",
                    LEASE_SECONDS,
                );
                if let Some(leased) = leased.await.unwrap() {
                    return leased;
                }
                let pause = std::time::Duration::from_millis(200);
                Nudges::wait(&mut nudges, Topic::Attempts, None, pause).await;
            }
        };
        tokio::time::timeout(SOON, looking)
            .await
            .expect("an attempt is offered")
    }

    pub async fn log(&self, attempt: &AttemptRow, sequence: u64, text: &str) {
        let chunk = Chunk {
            attempt_number: attempt.offer.number,
            sequence,
            bytes: text.as_bytes(),
        };
        let phase = match attempt.offer.phase {
            Phase::Plan => LogPhase::Plan,
            Phase::Apply => LogPhase::Apply,
        };
        phase_logs::append(&self.store, attempt.offer.run, phase, chunk)
            .await
            .unwrap();
    }

    pub async fn report(&self, attempt: &AttemptRow, result: &PhaseResult) {
        let result = serde_json::to_value(result).unwrap();
        attempts::record_result(&self.store, attempt.id, &result)
            .await
            .unwrap();
    }

    pub async fn store_file(&self, kind: ObjectKind, bytes: &[u8]) -> StoredArtifact {
        let new = NewObject {
            organization: self.acme.organization,
            workspace: Some(self.acme.workspace),
            kind,
            bytes_max: BYTES_MAX,
        };
        let stored = self.store.objects.put_bytes(new, bytes).await.unwrap();
        StoredArtifact {
            object: stored.id,
            sha256: stored.sha256,
            bytes: stored.bytes,
        }
    }

    /// A plan that found `create` new resources.
    pub async fn planned(&self, plan: &[u8], create: u32) -> PhaseResult {
        let counts = Counts {
            create,
            ..Counts::default()
        };
        PhaseResult::Plan {
            end: PlanEnd::Planned {
                exit_code: if create == 0 { 0 } else { 2 },
                json: PlanJsonFacts {
                    counts,
                    errored: false,
                    doubtful: 0,
                },
                plan: self.store_file(ObjectKind::Plan, plan).await,
                plan_json: self.store_file(ObjectKind::PlanJson, b"{}").await,
                plan_diff: self.store_file(ObjectKind::PlanDiff, b"{}").await,
                policy_input: Some(self.store_file(ObjectKind::PolicyInput, b"{}").await),
                lock_file: None,
                dependencies: Sha256Digest::of(b"none"),
                sandbox: Value::Null,
            },
        }
    }

    /// Plays the runner of one plan: real `tofu`, the uploaded configuration, the run's token.
    pub async fn work_on_plan(&self) -> Work {
        let leased = self.lease().await;
        assert_eq!(leased.attempt.offer.phase, Phase::Plan);
        let tofu = self.sandbox(&leased);
        self.unpack(&leased, &tofu.root()).await;
        tofu.run(&["init", "-input=false", "-no-color"], "")
            .await
            .ok();
        let arguments = [
            "plan",
            "-input=false",
            "-no-color",
            "-lock=false",
            "-detailed-exitcode",
            "-out=plan.bin",
        ];
        let ended = tofu.run(&arguments, "").await;
        self.log(&leased.attempt, 0, &ended.text).await;
        let result = match ended.code {
            Some(code @ (0 | 2)) => {
                let plan = std::fs::read(tofu.root().join("plan.bin")).unwrap();
                self.planned(&plan, u32::from(code == 2)).await
            }
            _ => PhaseResult::Plan {
                end: PlanEnd::Failed {
                    reason: stackship_domain::run::TerminalReason::PlanFailed,
                    detail: "tofu plan failed".to_owned(),
                },
            },
        };
        self.report(&leased.attempt, &result).await;
        Work { tofu }
    }

    /// Plays the runner of the apply that follows a plan, in the plan's own directory.
    pub async fn work_on_apply(&self, work: Work) {
        let leased = self.lease().await;
        assert_eq!(leased.attempt.offer.phase, Phase::Apply);
        let mut tofu = self.sandbox(&leased);
        tofu.take_root_of(work.tofu);
        let arguments = ["apply", "-input=false", "-no-color", "plan.bin"];
        let ended = tofu.run(&arguments, "").await;
        self.log(&leased.attempt, 0, &ended.text).await;
        let staged = states::newest_staged(
            &self.store,
            self.acme.organization,
            leased.attempt.offer.run,
        )
        .await;
        let seen = staged.unwrap().map(|row| SeenState {
            version: row.id,
            sha256: row.sha256.unwrap(),
        });
        let end = ApplyEnd::Exited {
            exit_code: ended.code.unwrap(),
            interrupted: false,
            seen,
            errored_state: None,
            sandbox: json!({}),
        };
        self.report(&leased.attempt, &PhaseResult::Apply { end })
            .await;
    }

    /// `tofu` with the environment of a sandbox.
    pub fn sandbox(&self, leased: &Leased) -> Tofu {
        Tofu::new(&self.url, &leased.run_token, "net")
            .with("TF_FORCE_LOCAL_BACKEND", "1")
            .with("TF_IN_AUTOMATION", "1")
            .with("TFE_RUN_ID", &leased.attempt.offer.run.to_string())
    }

    async fn unpack(&self, leased: &Leased, root: &Path) {
        let facts = leased.run.facts().unwrap();
        let pool = &self.store.pool;
        let version = configuration_versions::by_id(
            pool,
            self.acme.organization,
            facts.configuration_version,
        )
        .await
        .unwrap()
        .unwrap();
        let object = version.upload.unwrap().object;
        let objects = &self.store.objects;
        let packed = objects
            .read_to_vec(
                self.acme.organization,
                object,
                ObjectKind::Configuration,
                BYTES_MAX,
            )
            .await
            .unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&packed[..]));
        archive.unpack(root).unwrap();
    }
}

/// What a plan leaves for its apply.
pub struct Work {
    tofu: Tofu,
}
