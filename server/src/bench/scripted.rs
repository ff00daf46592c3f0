//! A runner that runs nothing: it leases one plan and hands in what it was given.

use reqwest::Method;
use serde_json::{Value, json};
use stackship_domain::Sha256Digest;
use stackship_domain::run::Counts;
use stackship_runner_protocol::{
    ArtifactKind, Lease, LeaseRequest, PhaseResult, PlanEnd, PlanJsonFacts, SHA256_HEADER,
    StoredArtifact,
};

use super::product::{Product, text};
use crate::Failure;

/// Where only this runner is.
const REGION: &str = "bench";
/// How long it waits for the plan that it was made for.
const LEASE_WAIT_MS: u64 = 20_000;

/// Makes a run and plans it: `document` is its plan as JSON. Says which run it is.
pub async fn plan(product: &Product, document: Vec<u8>) -> Result<String, Failure> {
    let workspace = product.workspace_in(REGION).await?;
    let run = product.create_run(text(&workspace["id"])?).await?;
    let token = product.register_runner("bench").await?;
    let request = LeaseRequest {
        region: REGION.to_owned(),
        platform: text(&workspace["platform"])?.to_owned(),
        wait_ms: LEASE_WAIT_MS,
        release: env!("CARGO_PKG_VERSION").to_owned(),
        isolation: "none".to_owned(),
    };
    let asked = product.as_runner(Method::POST, "/runner/v1/leases", &token);
    let lease: Lease = asked
        .json(&request)
        .send()
        .await?
        .error_for_status()?
        .json()
        .await?;
    let runner = Handing {
        product,
        lease: &lease,
    };
    let end = PlanEnd::Planned {
        exit_code: 2,
        json: PlanJsonFacts {
            counts: Counts {
                create: 1,
                ..Counts::default()
            },
            errored: false,
            doubtful: 0,
        },
        plan: runner.put(ArtifactKind::Plan, b"plan".to_vec()).await?,
        plan_json: runner.put(ArtifactKind::PlanJson, document).await?,
        plan_diff: runner.put(ArtifactKind::PlanDiff, b"{}".to_vec()).await?,
        policy_input: Some(
            runner
                .put(ArtifactKind::PolicyInput, b"{}".to_vec())
                .await?,
        ),
        lock_file: None,
        dependencies: Sha256Digest::of(b"none"),
        sandbox: Value::Null,
    };
    runner.report(&PhaseResult::Plan { end }).await?;
    product.until(&run, "awaiting_approval").await?;
    Ok(run)
}

/// The holder of a lease.
struct Handing<'a> {
    product: &'a Product,
    lease: &'a Lease,
}

impl Handing<'_> {
    async fn put(&self, kind: ArtifactKind, bytes: Vec<u8>) -> Result<StoredArtifact, Failure> {
        let sha256 = Sha256Digest::of(&bytes);
        let request = self.request(Method::PUT, &format!("artifacts/{}", kind.as_str()));
        let request = request
            .header(SHA256_HEADER, sha256.to_string())
            .body(bytes);
        Ok(request.send().await?.error_for_status()?.json().await?)
    }

    async fn report(&self, result: &PhaseResult) -> Result<(), Failure> {
        let request = self.request(Method::POST, "result").json(&json!(result));
        request.send().await?.error_for_status()?;
        Ok(())
    }

    fn request(&self, method: Method, what: &str) -> reqwest::RequestBuilder {
        let path = format!("/runner/v1/attempts/{}/{what}", self.lease.attempt);
        self.product
            .as_runner(method, &path, self.lease.lease_token.expose())
    }
}
