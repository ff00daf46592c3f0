//! The policy stage: what was found, as plain text, and who let what pass for how long (S-REV-7,
//! S-REV-18).

use serde::Serialize;
use stackship_domain::run::{PolicyErrorCode, PolicyOutcome};
use stackship_domain::{Sha256Digest, Timestamp};
use stackship_policy::{Evaluation, Finding, Level};
use stackship_projections::RunReview;
use stackship_projections::run_review::{OverrideReview, PolicyReview};
use utoipa::ToSchema;

use super::Stage;
use super::status::policy;
use crate::v1::runs::review::known::Known;
use crate::v1::runs::review::people::{Names, Person};
use crate::v1::schema;

/// The most findings that are shown; the weightiest come first.
const FINDINGS_SHOWN_MAX: usize = 256;

/// The policy stage.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::v1::runs::review) struct PolicyStage {
    /// Where it stands.
    pub(in crate::v1::runs::review) stage: Stage,
    /// What policy says; null until it was evaluated.
    #[schema(schema_with = outcome_or_null)]
    outcome: Option<PolicyOutcome>,
    /// Why policies could not be evaluated; null unless they could not.
    #[schema(schema_with = error_code_or_null)]
    error_code: Option<PolicyErrorCode>,
    /// SHA-256 of the exact result, which an override names; null until it was evaluated.
    #[schema(value_type = Option<String>)]
    result_digest: Option<Sha256Digest>,
    /// How many policies were evaluated; null until then.
    policies: Option<u32>,
    /// When the question whether to override lapses; null unless it is asked.
    #[schema(value_type = Option<String>, format = DateTime)]
    decide_by: Option<Timestamp>,
    /// What was found.
    findings: Known<Findings>,
    /// Who let a soft-mandatory failure pass.
    overrides: Overrides,
}

/// What an evaluation found.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(in crate::v1::runs::review) struct Findings {
    /// The findings, the weightiest first.
    items: Vec<FindingView>,
    /// How many the policies made, with those that are not here.
    found: u64,
    /// Whether some are not here.
    truncated: bool,
}

/// One finding, as plain text.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
struct FindingView {
    /// A short name for it.
    title: String,
    /// What was found.
    message: String,
    /// The resource it is about, if it is about one.
    resource_address: Option<String>,
    /// How much it weighs.
    #[schema(schema_with = level)]
    level: Level,
    /// The policy that found it.
    policy: String,
}

/// Soft-mandatory failures that were let through.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::v1::runs::review) struct Overrides {
    /// Each of them, at most 256.
    records: Vec<GivenOverrideView>,
    /// Whether there are more; the audit has them all.
    truncated: bool,
}

/// A soft-mandatory failure that was let through.
#[derive(Debug, Serialize, ToSchema)]
struct GivenOverrideView {
    /// By whom.
    by: Person,
    /// Why.
    reason: String,
    /// SHA-256 of the exact result that was let through.
    #[schema(value_type = String)]
    result_digest: Sha256Digest,
    /// When.
    #[schema(schema_with = schema::time)]
    at: Timestamp,
    /// Until when it holds.
    #[schema(schema_with = schema::time)]
    expires_at: Timestamp,
    /// Whether it holds now.
    active: bool,
}

fn level() -> utoipa::openapi::ObjectBuilder {
    let levels = [Level::Advisory, Level::SoftMandatory, Level::HardMandatory];
    schema::one_of(levels.map(Level::as_str))
}

fn outcome_or_null() -> utoipa::openapi::ObjectBuilder {
    schema::one_of_or_null(PolicyOutcome::ALL.iter().map(|outcome| outcome.as_str()))
}

fn error_code_or_null() -> utoipa::openapi::ObjectBuilder {
    schema::one_of_or_null(PolicyErrorCode::ALL.iter().map(|code| code.as_str()))
}

impl PolicyStage {
    pub(super) fn of(
        review: &RunReview,
        evaluation: &Known<Evaluation>,
        names: &Names,
        now: Timestamp,
    ) -> Self {
        let result = review.policy.result.as_ref();
        let failed = result.is_some_and(|result| result.outcome != PolicyOutcome::Pass);
        let stage = Stage::new(policy(review), review.policy.times);
        Self {
            stage: stage.with_log(review, "policy", &[]).opened(failed),
            outcome: result.map(|result| result.outcome),
            error_code: result.and_then(|result| result.error_code),
            result_digest: result.map(|result| result.digest),
            policies: result.map(|result| result.policies),
            decide_by: review.policy.decide_by,
            findings: evaluation.as_ref().map(Findings::of),
            overrides: Overrides::of(&review.policy, names, now),
        }
    }
}

impl Findings {
    fn of(evaluation: &Evaluation) -> Self {
        let mut findings: Vec<&Finding> = evaluation.findings.iter().collect();
        // Stable: findings of one weight stay in the order of the result.
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
        let shown = findings.len().min(FINDINGS_SHOWN_MAX);
        let counted = evaluation
            .policies
            .iter()
            .map(|policy| u64::from(policy.denials) + u64::from(policy.warnings))
            .sum::<u64>();
        let kept = u64::try_from(findings.len()).unwrap_or(u64::MAX);
        Self {
            truncated: evaluation.truncated || shown < findings.len(),
            // What says that policies could not be evaluated is a finding of no policy.
            found: counted.max(kept),
            items: findings[..shown].iter().copied().map(Into::into).collect(),
        }
    }
}

impl From<&Finding> for FindingView {
    fn from(finding: &Finding) -> Self {
        Self {
            title: finding.title.clone(),
            message: finding.message.clone(),
            resource_address: finding.resource_address.clone(),
            level: finding.level,
            policy: finding.policy_id.clone(),
        }
    }
}

impl Overrides {
    fn of(policy: &PolicyReview, names: &Names, now: Timestamp) -> Self {
        let view = |given: &OverrideReview| GivenOverrideView {
            by: names.person(given.by),
            reason: given.reason.clone(),
            result_digest: given.result,
            at: given.at,
            expires_at: given.expires_at,
            active: now < given.expires_at,
        };
        Self {
            records: policy.overrides.iter().map(view).collect(),
            truncated: policy.overrides_truncated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackship_domain::run::samples;

    #[test]
    fn an_override_is_active_until_it_expires_and_a_cut_list_is_told_of() {
        let given = OverrideReview {
            by: samples::reviewer(),
            result: samples::policy(PolicyOutcome::SoftFailed).digest,
            reason: "Agreed in review.".to_owned(),
            expires_at: samples::at(60),
            at: samples::at(10),
        };
        let policy = PolicyReview {
            overrides: vec![given],
            overrides_truncated: true,
            ..PolicyReview::default()
        };
        let shown = |now| Overrides::of(&policy, &Names::default(), samples::at(now));
        assert!(shown(59).records[0].active);
        assert!(!shown(60).records[0].active);
        assert!(shown(60).truncated);
    }
}
