//! Whether what a decision rests on is still what it was (S-RUN-7).
//!
//! The log holds digests; the bytes lie elsewhere, and a workspace's state is a row. Both are looked at
//! again before a yes counts, and before a runner is handed the apply: nobody approves a plan that is
//! not there any more, and what was changed since is named. The runner compares once more what it got.
//! It alone sees the modules and the provider packages of the dependency bundle; here that is the lock
//! file and what the plan's runner reported of it.

use stackship_domain::Sha256Digest;
use stackship_domain::ids::{ObjectId, OrganizationId, RunId};
use stackship_domain::run::{
    Event, Evidence, EvidencePart, Facts, Phase, PlanRecord, Predecessor, Run, Standing,
};
use stackship_runner_protocol::{PhaseResult, PlanEnd};
use stackship_store::attempts::{self, CloseCause};
use stackship_store::log::newest_of;
use stackship_store::objects::ObjectKind;
use stackship_store::{Store, StoreError, states};

/// The first part that is no longer what the run's evidence says; `None` as well for a run that no
/// decision rests on.
pub(crate) async fn first_difference(
    store: &Store,
    id: RunId,
    run: &Run,
) -> Result<Option<EvidencePart>, StoreError> {
    let Run::Born {
        facts, standing, ..
    } = run
    else {
        return Ok(None);
    };
    let (Standing::AwaitingApproval { plan, evidence, .. }
    | Standing::Approved { plan, evidence, .. }
    | Standing::Applying { plan, evidence, .. }
    | Standing::ApplyCanceling { plan, evidence, .. }) = &**standing
    else {
        return Ok(None);
    };
    let kept = Kept {
        store,
        run: id,
        facts,
        plan,
        evidence,
    };
    kept.first_difference().await
}

/// What is kept for a run.
struct Kept<'a> {
    store: &'a Store,
    run: RunId,
    facts: &'a Facts,
    plan: &'a PlanRecord,
    evidence: &'a Evidence,
}

impl Kept<'_> {
    async fn first_difference(&self) -> Result<Option<EvidencePart>, StoreError> {
        let (plan, evidence) = (self.plan, self.evidence);
        let (file, json) = (plan.plan_object, plan.plan_json_object);
        let differs = if self.digest(file, ObjectKind::Plan).await? != Some(evidence.plan) {
            EvidencePart::Plan
        } else if self.digest(json, ObjectKind::PlanJson).await? != Some(evidence.plan_json) {
            EvidencePart::PlanJson
        } else if self.policy().await? != Some(evidence.policy) {
            EvidencePart::Policy
        } else if self.head().await? != Some(evidence.predecessor.clone()) {
            EvidencePart::Predecessor
        } else if !self.has_dependencies().await? {
            EvidencePart::Dependencies
        } else {
            return Ok(None);
        };
        tracing::error!(run.id = %self.run, part = %differs, "What a decision rests on was changed");
        Ok(Some(differs))
    }

    async fn digest(
        &self,
        object: ObjectId,
        kind: ObjectKind,
    ) -> Result<Option<Sha256Digest>, StoreError> {
        let organization: OrganizationId = self.facts.organization;
        let objects = &self.store.objects;
        objects.digest_again(organization, object, kind).await
    }

    async fn policy(&self) -> Result<Option<Sha256Digest>, StoreError> {
        let mut connection = self.store.pool.acquire().await?;
        let id = self.run.to_string();
        let evaluated = newest_of(&mut connection, ("run", &id), "policy_evaluated").await?;
        drop(connection);
        let event = evaluated.map(|event| serde_json::from_value(event.payload));
        let Some(Event::PolicyEvaluated { result, .. }) = event.transpose()? else {
            return Ok(None);
        };
        self.digest(result.object, ObjectKind::PolicyResult).await
    }

    /// The workspace's state; nothing when its bytes never arrived.
    async fn head(&self) -> Result<Option<Predecessor>, StoreError> {
        let facts = self.facts;
        let current = states::current(self.store, facts.organization, facts.workspace).await?;
        Ok(match current {
            None => Some(Predecessor::None),
            Some(row) => row.sha256.map(|digest| Predecessor::Version {
                id: row.id,
                serial: row.serial,
                digest,
            }),
        })
    }

    async fn has_dependencies(&self) -> Result<bool, StoreError> {
        let now = match self.plan.lock_file_object {
            None => None,
            Some(object) => match self.digest(object, ObjectKind::LockFile).await? {
                None => return Ok(false),
                found => found,
            },
        };
        let reported = self.reported().await?;
        Ok(reported.is_none_or(|reported| reported == (now, self.evidence.dependencies)))
    }

    /// The lock file and the bundle, as the plan's runner reported them.
    async fn reported(&self) -> Result<Option<(Option<Sha256Digest>, Sha256Digest)>, StoreError> {
        let attempts = attempts::of_run(&self.store.pool, self.run).await?;
        let planned = attempts.into_iter().rev().find(|row| {
            row.offer.phase == Phase::Plan && row.close_cause == Some(CloseCause::Result)
        });
        let result = planned.and_then(|row| row.result);
        let result = result.map(serde_json::from_value::<PhaseResult>);
        let Some(PhaseResult::Plan {
            end:
                PlanEnd::Planned {
                    lock_file,
                    dependencies,
                    ..
                },
        }) = result.transpose()?
        else {
            return Ok(None);
        };
        Ok(Some((lock_file.map(|file| file.sha256), dependencies)))
    }
}
