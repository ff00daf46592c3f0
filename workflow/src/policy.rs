//! The policy phase. The policy set is empty in this release, so every plan passes, and that is
//! recorded like any other result: a document, its digest, the engine, the bundle.

use serde::Serialize;
use stackship_domain::ids::{OrganizationId, RunId, WorkspaceId};
use stackship_domain::run::{PlanRecord, PolicyOutcome, PolicyResult};
use stackship_domain::{Sha256Digest, canonical};
use stackship_store::Store;
use stackship_store::objects::{NewObject, ObjectKind};
use stackship_store::phase_logs::{self, Chunk, LogPhase};

use crate::StepError;

/// The engine's name while no policy can be attached.
const ENGINE: &str = "stackship-empty-set/1";
/// Attempt number of the phase's log, which the control plane alone writes.
const LOG_ATTEMPT: u32 = 1;
/// The largest result document, in bytes.
pub const POLICY_RESULT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A policy result, as it is stored and digested.
#[derive(Debug, Serialize)]
struct ResultDocument<'a> {
    schema: &'static str,
    run: RunId,
    plan: Sha256Digest,
    plan_json: Sha256Digest,
    bundle: Sha256Digest,
    engine: &'a str,
    outcome: PolicyOutcome,
    findings: [(); 0],
}

/// Evaluates the policy set over a plan, stores the result and says so in the phase's log.
pub async fn evaluate(
    store: &Store,
    organization: OrganizationId,
    workspace: WorkspaceId,
    run: RunId,
    plan: &PlanRecord,
) -> Result<PolicyResult, StepError> {
    let bundle = Sha256Digest::of(&canonical::to_bytes(&serde_json::json!({"policies": []}))?);
    let document = ResultDocument {
        schema: "stackship.policy-result/v1",
        run,
        plan: plan.plan,
        plan_json: plan.plan_json,
        bundle,
        engine: ENGINE,
        outcome: PolicyOutcome::Pass,
        findings: [],
    };
    let bytes = canonical::to_bytes(&document)?;
    let object = NewObject {
        organization,
        workspace: Some(workspace),
        kind: ObjectKind::PolicyResult,
        bytes_max: POLICY_RESULT_BYTES_MAX,
    };
    let stored = store.objects.put_bytes(object, &bytes).await?;
    write_log(store, run).await?;
    Ok(PolicyResult {
        outcome: PolicyOutcome::Pass,
        digest: stored.sha256,
        bundle,
        engine: ENGINE.to_owned(),
        policies: 0,
        object: stored.id,
    })
}

/// The whole log of a phase that has no policy to evaluate. An evaluation that is repeated finds its
/// line written and the log closed.
async fn write_log(store: &Store, run: RunId) -> Result<(), StepError> {
    let line = format!("No policy set is attached: passed. Engine: {ENGINE}.\n");
    let chunk = Chunk {
        attempt_number: LOG_ATTEMPT,
        sequence: 0,
        bytes: line.as_bytes(),
    };
    phase_logs::append(store, run, LogPhase::Policy, chunk).await?;
    phase_logs::close(store, run, LogPhase::Policy).await?;
    Ok(())
}
