//! `stackship bench review`: the review of one run among many, against reading its row bare.

use std::time::{Duration, Instant};

use stackship_domain::ids::RunId;
use stackship_domain::run::{
    Command, Facts, NewRun, PlanRecord, PolicyOutcome, PolicyResult, Run, samples,
};
use stackship_domain::{Actor, Sha256Digest};
use stackship_policy::{Evaluation, Finding, Level, PolicyEntry, RESULT_SCHEMA, set_digest};
use stackship_projections::{Recorded, RunReview};
use stackship_store::objects::{NewObject, ObjectKind, StoredObject};

use super::Bench;
use super::figures::{Figure, percentiles};
use super::served::{Served, WORKSPACES};
use crate::Failure;
use crate::answer::remark;

/// How many runs there are.
const RUNS: i32 = 100_000;
/// How many findings the policy result of each has.
const FINDINGS: u32 = 20;
/// How many reads one pair of measurements has on each side.
const READS: usize = 20;
/// Reads go through the runs in steps of this length, so that hardly any is read twice.
const STEP: usize = 7_919;

/// Measures pairs, one after the other, so that both sides see the same machine.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let served = Served::start().await?;
    fill(&served).await?;
    let mut runs = (0..).map(|number: usize| {
        let number = (number * STEP) % usize::try_from(RUNS).unwrap_or(usize::MAX) + 1;
        format!("run-{number:0>26}")
    });
    // Some first: connections and plans are there for every measured pair.
    for run in runs.by_ref().take(READS) {
        read(&served, &run).await?;
        bare(&served, &run).await?;
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..bench.n {
        for run in runs.by_ref().take(READS) {
            ours.push(read(&served, &run).await?);
        }
        for run in runs.by_ref().take(READS) {
            theirs.push(bare(&served, &run).await?);
        }
    }
    served.stop().await?;
    let names = [
        "review among 100,000 runs, p50",
        "review among 100,000 runs, p99",
    ];
    Ok(percentiles(names, &ours, &theirs).into())
}

/// Fills the rows that a review reads, without a log. Every run is the same but for its ids and its
/// workspace, and shares its stored documents with the others.
async fn fill(served: &Served) -> Result<(), Failure> {
    let began = Instant::now();
    let review = asking(served).await?;
    let mut connection = served.filler().await?;
    let number = "lpad(n::text, 26, '0')";
    let workspace = format!("lpad((n % {WORKSPACES})::text, 26, '0')");
    let statements = [
        format!(
            "insert into view.run_review (run_id, organization_id, workspace_id, last_sequence, doc) \
             select 'run-' || {number}, $1, 'ws-' || {workspace}, $2, \
                 jsonb_set(jsonb_set(jsonb_set($3, '{{run}}', to_jsonb('run-' || {number})), \
                     '{{facts,workspace}}', to_jsonb('ws-' || {workspace})), \
                     '{{plan,attempts,0,id}}', to_jsonb('att-' || {number})) \
             from generate_series(1, $4) n"
        ),
        format!(
            "insert into record.runs (run_id, organization_id, project_id, workspace_id, kind, \
                 configuration_version_id, input_snapshot_id, configuration_digest, inputs_digest, tofu_version, \
                 region, platform, auto_apply, fence, created_at) \
             select 'run-' || {number}, $1, $3 #>> '{{facts,project}}', 'ws-' || {workspace}, 'plan_and_apply', \
                 'cv-' || {number}, 'snap-' || {number}, repeat('0', 64), repeat('0', 64), '1.12.6', 'local', 'linux_amd64', \
                 false, $2, clock_timestamp() from generate_series(1, $4) n"
        ),
        format!(
            "insert into record.attempts (attempt_id, organization_id, workspace_id, run_id, phase, number, region, \
                 platform, predecessor, closed_at, close_cause) \
             select 'att-' || {number}, $1, 'ws-' || {workspace}, 'run-' || {number}, 'plan', 1, 'local', \
                 'linux_amd64', $3 #> '{{plan,record,predecessor}}', clock_timestamp(), 'handed_back' \
             from generate_series(1, $4) n where $2::bigint > 0"
        ),
    ];
    for statement in &statements {
        sqlx::query(statement)
            .bind(served.made.organization.to_string())
            .bind(review.last_sequence)
            .bind(serde_json::to_value(&review)?)
            .bind(RUNS)
            .execute(&mut connection)
            .await?;
    }
    for table in ["view.run_review", "record.runs", "record.attempts"] {
        sqlx::query(&format!("vacuum (analyze) {table}"))
            .execute(&mut connection)
            .await?;
    }
    remark(format_args!(
        "Filled view.run_review, record.runs and record.attempts with {RUNS} rows each by one statement a table, not \
         through the log: runs that ask, all alike, with {FINDINGS} findings; {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    Ok(())
}

/// The review of a run that asks, by the rules and the fold that make every review.
async fn asking(served: &Served) -> Result<RunReview, Failure> {
    let attempt = samples::attempt(1);
    let (id, plan) = (attempt.id, Box::new(plan(served).await?));
    let facts = Facts {
        organization: served.made.organization,
        project: served.made.project,
        created_by: Actor::User(served.made.owner),
        ..samples::facts()
    };
    let commands = [
        Command::Create(Box::new(NewRun {
            facts,
            auto_apply: false,
            destroy: false,
        })),
        Command::GrantLock {
            fence: samples::fence(),
            warnings: Vec::new(),
        },
        Command::StartPlan { attempt },
        Command::RecordPlan { attempt: id, plan },
        Command::StartPolicyCheck,
        Command::RecordPolicy {
            result: policy(served).await?,
            approval_expires_at: samples::at(100_000_000),
        },
    ];
    let (mut run, mut review, mut sequence) = (Run::default(), None::<RunReview>, 0);
    for command in commands {
        for event in run.decide(command)? {
            run.evolve(&event);
            sequence += 1;
            let recorded = Recorded {
                event,
                sequence,
                recorded_at: samples::at(sequence),
                actor: Actor::System,
            };
            match &mut review {
                Some(review) => review.take(&recorded),
                none => *none = RunReview::begin(samples::id::<RunId>(1), &recorded),
            }
        }
    }
    review.ok_or_else(|| "no event created the run".into())
}

async fn plan(served: &Served) -> Result<PlanRecord, Failure> {
    let plan = put(served, ObjectKind::Plan, b"plan").await?;
    let json = put(served, ObjectKind::PlanJson, b"{}").await?;
    let diff = put(served, ObjectKind::PlanDiff, b"{}").await?;
    Ok(PlanRecord {
        plan: plan.sha256,
        plan_bytes: plan.bytes,
        plan_json: json.sha256,
        plan_json_bytes: json.bytes,
        plan_diff: diff.sha256,
        plan_object: plan.id,
        plan_json_object: json.id,
        plan_diff_object: diff.id,
        ..samples::plan()
    })
}

async fn policy(served: &Served) -> Result<PolicyResult, Failure> {
    let bundle = Sha256Digest::of(b"bench");
    let finding = |number| Finding {
        policy_id: "zones".to_owned(),
        rule_id: "warn".to_owned(),
        resource_address: Some(format!("aws_eks_node_group.pool[{number:04}]")),
        message: "It lists two subnets; three zones need three.".to_owned(),
        title: "Node groups span three zones".to_owned(),
        level: Level::Advisory,
        bundle: Some(bundle),
    };
    let evaluation = Evaluation {
        schema: RESULT_SCHEMA.to_owned(),
        run_id: samples::id(1),
        plan_digest: bundle,
        redacted_plan_digest: Some(bundle),
        policy_input_digest: Some(bundle),
        bundle_digest: set_digest(&[bundle]),
        bundles: vec![bundle],
        engine: stackship_policy::ENGINE.to_owned(),
        features: Vec::new(),
        evaluated_at: samples::at(0),
        outcome: PolicyOutcome::Pass,
        error_code: None,
        policies: vec![PolicyEntry {
            bundle,
            policy_id: "zones".to_owned(),
            level: Level::Advisory,
            enabled: true,
            denials: 0,
            warnings: FINDINGS,
        }],
        findings: (0..FINDINGS).map(finding).collect(),
        truncated: false,
    };
    let stored = put(served, ObjectKind::PolicyResult, &evaluation.to_bytes()).await?;
    Ok(PolicyResult {
        digest: stored.sha256,
        object: stored.id,
        engine: evaluation.engine,
        ..samples::policy(PolicyOutcome::Pass)
    })
}

/// Of no workspace: the runs that share it are in all of them.
async fn put(served: &Served, kind: ObjectKind, bytes: &[u8]) -> Result<StoredObject, Failure> {
    let object = NewObject {
        organization: served.made.organization,
        workspace: None,
        kind,
        bytes_max: 1 << 20,
    };
    Ok(served.store.objects.put_bytes(object, bytes).await?)
}

async fn read(served: &Served, run: &str) -> Result<Duration, Failure> {
    let path = format!("/v1/runs/{run}/review");
    let (took, body) = served.read(&path).await?;
    let answer: serde_json::Value = serde_json::from_slice(&body)?;
    let findings = &answer["data"]["stages"]["policy"]["findings"]["value"]["items"];
    if findings.as_array().map(Vec::len) == usize::try_from(FINDINGS).ok() {
        Ok(took)
    } else {
        Err(format!("{path} lacks findings").into())
    }
}

/// The baseline: the row that the review is made of.
async fn bare(served: &Served, run: &str) -> Result<Duration, Failure> {
    let began = Instant::now();
    let found: serde_json::Value =
        sqlx::query_scalar("select doc from view.run_review where run_id = $1")
            .bind(run)
            .fetch_one(&served.bare)
            .await?;
    let took = began.elapsed();
    std::hint::black_box(found);
    Ok(took)
}
