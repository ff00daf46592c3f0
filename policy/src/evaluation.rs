//! The policy result: one canonical document, and the digest that an approval or an override names.

use serde::{Deserialize, Serialize};
use stackship_domain::ids::RunId;
use stackship_domain::run::{DenyingPolicies, PolicyOutcome};
use stackship_domain::{Sha256Digest, Timestamp, canonical};

use crate::finding::{FINDINGS_MAX, Finding};
use crate::{ENGINE, ErrorCode, FEATURES, Level, set_digest};

/// Names the form of the document.
pub const RESULT_SCHEMA: &str = "stackship.policy-result/v2";
/// The largest result document.
pub const RESULT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What an evaluation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// The run.
    pub run: RunId,
    /// SHA-256 of its plan file.
    pub plan: Sha256Digest,
    /// SHA-256 of its plan as policies see it, as it was recorded; `None` when there is none.
    pub redacted_plan: Option<Sha256Digest>,
    /// SHA-256 of the whole policy input; `None` when there is none, and nothing can be evaluated.
    pub policy_input: Option<Sha256Digest>,
    /// The time that policies see in `input.stackship.evaluated_at`.
    pub evaluated_at: Timestamp,
}

/// One policy of the attached bundles, and how many members its sets have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyEntry {
    /// Its bundle.
    pub bundle: Sha256Digest,
    /// Its id in that bundle.
    pub policy_id: String,
    /// How much its failure weighs.
    pub level: Level,
    /// Whether it was to be evaluated.
    pub enabled: bool,
    /// How many denials, those that were cut included.
    pub denials: u32,
    /// How many warnings, those that were cut included.
    pub warnings: u32,
}

/// A policy result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// [`RESULT_SCHEMA`].
    pub schema: String,
    /// The run.
    pub run_id: RunId,
    /// SHA-256 of its plan file.
    pub plan_digest: Sha256Digest,
    /// SHA-256 of its plan as policies see it, as it was recorded.
    pub redacted_plan_digest: Option<Sha256Digest>,
    /// SHA-256 of the whole policy input: that plan and what stands around it.
    pub policy_input_digest: Option<Sha256Digest>,
    /// SHA-256 over the attached bundles.
    pub bundle_digest: Sha256Digest,
    /// The digest of each attached bundle, sorted.
    pub bundles: Vec<Sha256Digest>,
    /// The engine and its version.
    pub engine: String,
    /// The engine's features.
    pub features: Vec<String>,
    /// The time that the policies saw.
    pub evaluated_at: Timestamp,
    /// What the policies say.
    pub outcome: PolicyOutcome,
    /// Why they could not be evaluated; only with the outcome `error`.
    pub error_code: Option<ErrorCode>,
    /// The policies, disabled ones included, by bundle and id.
    pub policies: Vec<PolicyEntry>,
    /// What was found, sorted.
    pub findings: Vec<Finding>,
    /// Whether some findings were left out. They count for the outcome all the same.
    pub truncated: bool,
}

/// Bytes that are not a policy result.
#[derive(Debug, thiserror::Error)]
pub enum InvalidResult {
    /// Longer than a result can be.
    #[error("a policy result has at most {RESULT_BYTES_MAX} bytes")]
    TooLarge,
    /// Not the document.
    #[error("the document is not a policy result")]
    Json(#[from] serde_json::Error),
    /// The parts contradict each other, or a bound.
    #[error("the policy result is inconsistent: {0}")]
    Inconsistent(&'static str),
}

impl Evaluation {
    /// The result of a run whose policies were not even asked. `bundles` are the pinned ones.
    pub fn not_asked(
        context: Context,
        bundles: &[Sha256Digest],
        code: ErrorCode,
        detail: &str,
    ) -> Self {
        let mut sorted = bundles.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        Self {
            findings: vec![Finding::of_an_error(code, detail, None)],
            error_code: Some(code),
            ..Self::blank(context, sorted)
        }
    }

    /// About sorted, distinct bundles, with nothing said about any policy.
    pub(crate) fn blank(context: Context, bundles: Vec<Sha256Digest>) -> Self {
        Self {
            schema: RESULT_SCHEMA.to_owned(),
            run_id: context.run,
            plan_digest: context.plan,
            redacted_plan_digest: context.redacted_plan,
            policy_input_digest: context.policy_input,
            bundle_digest: set_digest(&bundles),
            bundles,
            engine: ENGINE.to_owned(),
            features: FEATURES.iter().map(|name| (*name).to_owned()).collect(),
            evaluated_at: context.evaluated_at,
            outcome: PolicyOutcome::Error,
            error_code: None,
            policies: vec![],
            findings: vec![],
            truncated: false,
        }
    }

    /// How many policies denied, by level.
    pub fn denying(&self) -> DenyingPolicies {
        let at = |level| {
            let denying = |entry: &&PolicyEntry| entry.level == level && entry.denials > 0;
            u32::try_from(self.policies.iter().filter(denying).count()).unwrap_or(u32::MAX)
        };
        DenyingPolicies {
            advisory: at(Level::Advisory),
            soft_mandatory: at(Level::SoftMandatory),
            hard_mandatory: at(Level::HardMandatory),
        }
    }

    /// How many denials the policies gave, those that are not kept included.
    pub fn denials(&self) -> u64 {
        self.policies
            .iter()
            .map(|entry| u64::from(entry.denials))
            .sum()
    }

    /// How many warnings they gave, those that are not kept included.
    pub fn warnings(&self) -> u64 {
        self.policies
            .iter()
            .map(|entry| u64::from(entry.warnings))
            .sum()
    }

    /// The canonical bytes, which are what is stored and digested.
    pub fn to_bytes(&self) -> Vec<u8> {
        canonical::to_bytes(self).expect("a result has only texts, booleans and integers")
    }

    /// SHA-256 of the canonical bytes.
    pub fn digest(&self) -> Sha256Digest {
        Sha256Digest::of(&self.to_bytes())
    }

    /// How many policies were to be evaluated.
    pub fn policies_count(&self) -> u32 {
        let enabled = self.policies.iter().filter(|policy| policy.enabled);
        u32::try_from(enabled.count()).unwrap_or(u32::MAX)
    }

    /// Reads what [`Evaluation::to_bytes`] wrote, and nothing else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidResult> {
        if bytes.len() > RESULT_BYTES_MAX {
            return Err(InvalidResult::TooLarge);
        }
        let parsed: Self = serde_json::from_slice(bytes)?;
        parsed.check().map_err(InvalidResult::Inconsistent)?;
        if parsed.to_bytes() != bytes {
            return Err(InvalidResult::Inconsistent(
                "its bytes are not the canonical ones",
            ));
        }
        Ok(parsed)
    }

    /// What must hold between the parts of a result, whoever made it.
    fn check(&self) -> Result<(), &'static str> {
        let named = |entry: &PolicyEntry| (entry.bundle, entry.policy_id.clone());
        let policies: Vec<_> = self.policies.iter().map(named).collect();
        let failed = self.outcome == PolicyOutcome::Error;
        let rules = [
            (self.schema == RESULT_SCHEMA, "another schema"),
            (
                self.bundles.is_sorted_by(|one, next| one < next),
                "the bundles are not sorted",
            ),
            (
                self.bundle_digest == set_digest(&self.bundles),
                "the bundle digest differs",
            ),
            (
                policies.is_sorted_by(|one, next| one < next),
                "the policies are not sorted",
            ),
            (self.findings.is_sorted(), "the findings are not sorted"),
            (self.findings.len() <= FINDINGS_MAX, "too many findings"),
            (
                self.findings.iter().all(Finding::is_well_formed),
                "a malformed finding",
            ),
            (
                failed == self.error_code.is_some(),
                "the error code and the outcome differ",
            ),
            (
                failed || self.outcome == outcome(&self.policies),
                "the outcome is not that of the policies",
            ),
            (
                failed || self.truncated == self.lacks_findings(),
                "findings are missing",
            ),
            (
                !failed || self.findings.len() == 1,
                "an error is one finding",
            ),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, problem)) => Err(problem),
            None => Ok(()),
        }
    }

    fn lacks_findings(&self) -> bool {
        let counted = self.denials().saturating_add(self.warnings());
        usize::try_from(counted) != Ok(self.findings.len())
    }
}

/// What the weightiest policy with a denial leads to. Denials that were cut count like the others,
/// so a result that was cut cannot pass by being cut.
pub(crate) fn outcome(policies: &[PolicyEntry]) -> PolicyOutcome {
    let denied = policies.iter().filter(|policy| policy.denials > 0);
    match denied.map(|policy| policy.level).max() {
        Some(Level::HardMandatory) => PolicyOutcome::HardFailed,
        Some(Level::SoftMandatory) => PolicyOutcome::SoftFailed,
        Some(Level::Advisory) | None => PolicyOutcome::Pass,
    }
}
