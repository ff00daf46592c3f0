//! The attached bundles as one set, in an order that does not depend on how they were attached.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use stackship_domain::Sha256Digest;
use stackship_domain::policy_bounds::{BUNDLES_ATTACHED_MAX, POLICIES_ATTACHED_MAX};

use super::judge::Failed;
use crate::bundle::Policy;
use crate::evaluation::outcome;
use crate::finding::{FINDINGS_MAX, Finding};
use crate::wire::{Counts, Member, Rule, Source};
use crate::{
    Bundle, Context, Evaluation, Level, POLICY_INPUT_BYTES_MAX, PolicyEntry, RESULT_BYTES_MAX,
};

/// A bundle that applies to a run.
#[derive(Debug, Clone)]
pub struct AttachedBundle {
    /// The digest that the run has pinned.
    pub pinned: Sha256Digest,
    /// The bundle as it was read back. If its digest is not the pinned one, nothing is evaluated.
    pub bundle: Bundle,
}

/// The distinct bundles by digest, and their enabled policies, the weightiest first.
pub(super) struct Set<'a> {
    bundles: Vec<(Sha256Digest, &'a Bundle)>,
    order: Vec<(usize, &'a Policy)>,
}

impl<'a> Set<'a> {
    pub(super) fn new(attached: &'a [AttachedBundle]) -> Self {
        let by_digest: BTreeMap<_, _> = attached
            .iter()
            .map(|one| (one.pinned, &one.bundle))
            .collect();
        let bundles: Vec<_> = by_digest.into_iter().collect();
        let mut order = Vec::new();
        for (position, (_, bundle)) in bundles.iter().enumerate() {
            let enabled = bundle
                .manifest()
                .policies
                .iter()
                .filter(|policy| policy.enabled);
            order.extend(enabled.map(|policy| (position, policy)));
        }
        order.sort_by_key(|(_, policy)| Reverse(policy.level));
        Self { bundles, order }
    }

    /// Whether everything is what the run has pinned, and within bounds.
    pub(super) fn check(&self, input: &[u8], context: &Context) -> Result<(), Failed> {
        let pinned = |(pinned, bundle): &(Sha256Digest, &Bundle)| bundle.digest() == *pinned;
        let count = |(_, bundle): &(Sha256Digest, &Bundle)| bundle.manifest().policies.len();
        let policies: usize = self.bundles.iter().map(count).sum();
        let rules = [
            (
                self.bundles.len() <= BUNDLES_ATTACHED_MAX,
                "too many bundles are attached",
            ),
            (
                policies <= POLICIES_ATTACHED_MAX,
                "too many policies are attached",
            ),
            (
                input.len() <= POLICY_INPUT_BYTES_MAX,
                "the policy input is too large",
            ),
            (
                Some(Sha256Digest::of(input)) == context.policy_input,
                "the policy input is not the one that was recorded",
            ),
            (
                self.bundles.iter().all(pinned),
                "a bundle is not the one that the run has pinned",
            ),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, problem)) => Err(Failed::error(problem)),
            None => Ok(()),
        }
    }

    pub(super) fn sources(&self) -> Vec<Source> {
        let source = |(position, policy): &(usize, &Policy)| {
            Source::of(*position, self.bundles[*position].1, policy)
        };
        self.order.iter().map(source).collect()
    }

    pub(super) fn data(&self) -> Vec<Option<String>> {
        let data = |(_, bundle): &(Sha256Digest, &Bundle)| bundle.data().map(str::to_owned);
        self.bundles.iter().map(data).collect()
    }

    /// Whether an answer can be one to this set: as many counts as policies, no finding about a
    /// policy that was not asked about, and none more than was counted.
    pub(super) fn accepts(&self, counts: &[Counts], members: &[Member]) -> Result<(), Failed> {
        let refuse = Err(Failed::malformed(None));
        if counts.len() != self.order.len() || members.len() > FINDINGS_MAX {
            return refuse;
        }
        let mut left = counts.to_vec();
        for member in members {
            let Some(counts) = left.get_mut(member.policy) else {
                return refuse;
            };
            let count = match member.rule {
                Rule::Deny => &mut counts.deny,
                Rule::Warn => &mut counts.warn,
            };
            match count.checked_sub(1) {
                Some(rest) if self.finding(member).is_well_formed() => *count = rest,
                Some(_) | None => return refuse,
            }
        }
        Ok(())
    }

    pub(super) fn evaluated(
        &self,
        context: Context,
        counts: &[Counts],
        members: &[Member],
    ) -> Evaluation {
        let policies = self.entries(counts);
        let mut findings: Vec<_> = members.iter().map(|member| self.finding(member)).collect();
        findings.sort();
        let counted: usize = counts
            .iter()
            .map(|counts| usize::try_from(u64::from(counts.deny) + u64::from(counts.warn)))
            .map(|count| count.unwrap_or(usize::MAX))
            .fold(0, usize::saturating_add);
        let evaluation = Evaluation {
            outcome: outcome(&policies),
            truncated: counted != findings.len(),
            policies,
            findings,
            ..self.blank(context)
        };
        if evaluation.to_bytes().len() > RESULT_BYTES_MAX {
            return self.failed(context, &Failed::error("the result is too large"));
        }
        evaluation
    }

    /// The result that is no result: one finding, which nothing can override.
    pub(super) fn failed(&self, context: Context, failed: &Failed) -> Evaluation {
        let blamed = failed.policy.and_then(|position| self.order.get(position));
        let blamed = blamed.map(|(position, policy)| (self.bundles[*position].0, &*policy.id));
        Evaluation {
            policies: self.entries(&[]),
            findings: vec![Finding::of_an_error(failed.code, &failed.detail, blamed)],
            error_code: Some(failed.code),
            ..self.blank(context)
        }
    }

    fn blank(&self, context: Context) -> Evaluation {
        Evaluation::blank(
            context,
            self.bundles.iter().map(|(digest, _)| *digest).collect(),
        )
    }

    /// Every policy of the set, with the counts that are known.
    fn entries(&self, counts: &[Counts]) -> Vec<PolicyEntry> {
        let mut entries = Vec::new();
        for (position, (digest, bundle)) in self.bundles.iter().enumerate() {
            for policy in &bundle.manifest().policies {
                let asked =
                    |(at, asked): &(usize, &Policy)| *at == position && asked.id == policy.id;
                let known = self
                    .order
                    .iter()
                    .position(asked)
                    .and_then(|at| counts.get(at));
                let known = known.copied().unwrap_or_default();
                entries.push(PolicyEntry {
                    bundle: *digest,
                    policy_id: policy.id.clone(),
                    level: policy.level,
                    enabled: policy.enabled,
                    denials: known.deny,
                    warnings: known.warn,
                });
            }
        }
        entries
    }

    /// A member as a finding. Its level is the manifest's, and a warning's is always advisory.
    fn finding(&self, member: &Member) -> Finding {
        let (position, policy) = self.order[member.policy];
        let own = member.title.clone().filter(|title| !title.is_empty());
        let title = own
            .or_else(|| policy.title.clone())
            .unwrap_or_else(|| policy.id.clone());
        let message = if member.message.is_empty() {
            &title
        } else {
            &member.message
        };
        Finding {
            policy_id: policy.id.clone(),
            rule_id: member.rule_id.clone(),
            resource_address: member
                .resource_address
                .clone()
                .filter(|address| !address.is_empty()),
            message: message.clone(),
            title,
            level: match member.rule {
                Rule::Deny => policy.level,
                Rule::Warn => Level::Advisory,
            },
            bundle: Some(self.bundles[position].0),
        }
    }
}
