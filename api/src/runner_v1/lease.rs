//! What a runner must know to execute one attempt, put together from what is on record.

use stackship_domain::ids::{AttemptId, ObjectId, OrganizationId, RunnerId};
use stackship_domain::run::{Facts, Phase, Run, Standing};
use stackship_runner_protocol::{ApprovedPlan, InputRef, Lease, Secret};
use stackship_store::objects::ObjectKind;
use stackship_store::records::{configuration_versions, organizations, snapshots, workspaces};
use stackship_workflow::leasing::Leased;

use super::failure::Failure;
use super::inputs::policy_result_object;
use crate::App;

pub(super) async fn build(app: &App, runner: RunnerId, leased: Leased) -> Result<Lease, Failure> {
    let Leased {
        attempt,
        lease_token,
        run_token,
        run,
    } = leased;
    let (id, offer) = (attempt.id, attempt.offer);
    let missing = |what: &'static str| Failure::Incomplete { attempt: id, what };
    let Run::Born {
        facts, standing, ..
    } = run
    else {
        return Err(missing("the run"));
    };
    let pool = &app.store.pool;
    let organization = organizations::by_id(pool, offer.organization).await?;
    let workspace = workspaces::by_id(pool, offer.organization, offer.workspace).await?;
    let approved = match offer.phase {
        Phase::Plan => None,
        Phase::Apply => Some(approved(app, id, &offer, &standing).await?),
    };
    let (configuration, snapshot) = pinned(app, id, &facts).await?;
    let settings = &app.settings;
    Ok(Lease {
        attempt: id,
        number: offer.number,
        runner,
        run: offer.run,
        phase: offer.phase,
        organization: offer.organization,
        organization_name: organization
            .ok_or_else(|| missing("the organization"))?
            .name,
        workspace: offer.workspace,
        workspace_name: workspace.ok_or_else(|| missing("the workspace"))?.name,
        fence: offer.fence,
        lease_token: Secret::new(lease_token),
        run_token: Secret::new(run_token),
        lease_seconds: settings.lease_seconds,
        tofu_version: facts.pins.tofu_version,
        configuration,
        snapshot,
        predecessor: offer.predecessor,
        approved,
        phase_seconds_max: match offer.phase {
            Phase::Plan => settings.plan_seconds_max,
            Phase::Apply => settings.apply_seconds_max,
        },
    })
}

/// The pinned inputs. Their digests are the run's own, not the records': a record that differs is
/// found out by whoever fetches the bytes.
async fn pinned(
    app: &App,
    attempt: AttemptId,
    facts: &Facts,
) -> Result<(InputRef, InputRef), Failure> {
    let missing = |what: &'static str| Failure::Incomplete { attempt, what };
    let pool = &app.store.pool;
    let version =
        configuration_versions::by_id(pool, facts.organization, facts.configuration_version)
            .await?;
    let upload = version
        .and_then(|version| version.upload)
        .ok_or_else(|| missing("the configuration"))?;
    let row = snapshots::by_id(pool, facts.organization, facts.input_snapshot).await?;
    let row = row.ok_or_else(|| missing("the input snapshot"))?;
    let snapshot = reference(app, facts.organization, row.object).await?;
    let snapshot = snapshot.ok_or_else(|| missing("the input snapshot"))?;
    Ok((
        InputRef {
            sha256: facts.pins.configuration,
            bytes: upload.bytes,
        },
        InputRef {
            sha256: facts.pins.inputs,
            bytes: snapshot.bytes,
        },
    ))
}

async fn approved(
    app: &App,
    attempt: AttemptId,
    offer: &stackship_store::attempts::Offer,
    standing: &Standing,
) -> Result<ApprovedPlan, Failure> {
    let missing = |what: &'static str| Failure::Incomplete { attempt, what };
    let (Standing::Applying {
        plan,
        evidence,
        approval,
        ..
    }
    | Standing::ApplyCanceling {
        plan,
        evidence,
        approval,
        ..
    }) = standing
    else {
        return Err(missing("the approval"));
    };
    let bytes = async |object: ObjectId, what| {
        let found = reference(app, offer.organization, object).await?;
        found.map(|found| found.bytes).ok_or_else(|| missing(what))
    };
    let policy = policy_result_object(app, offer.organization, offer.run).await?;
    let policy = policy.ok_or_else(|| missing("the policy result"))?;
    let lock_file = match plan.lock_file_object {
        None => None,
        Some(object) => {
            let found = reference(app, offer.organization, object).await?;
            Some(found.ok_or_else(|| missing("the lock file"))?)
        }
    };
    Ok(ApprovedPlan {
        plan: InputRef {
            sha256: evidence.plan,
            bytes: bytes(plan.plan_object, "the plan").await?,
        },
        plan_json: InputRef {
            sha256: evidence.plan_json,
            bytes: bytes(plan.plan_json_object, "the plan as JSON").await?,
        },
        policy_result: InputRef {
            sha256: evidence.policy,
            bytes: bytes(policy, "the policy result").await?,
        },
        lock_file,
        evidence: evidence.clone(),
        binding: approval.binding,
    })
}

async fn reference(
    app: &App,
    organization: OrganizationId,
    object: ObjectId,
) -> Result<Option<InputRef>, Failure> {
    let found = app.store.objects.describe(organization, object).await?;
    Ok(found.map(|found| InputRef {
        sha256: found.sha256,
        bytes: found.bytes,
    }))
}

/// The kind behind each input, so that an object of another kind is never handed out under its name.
pub(super) const fn kind_of(name: stackship_runner_protocol::InputName) -> ObjectKind {
    use stackship_runner_protocol::InputName;
    match name {
        InputName::Configuration => ObjectKind::Configuration,
        InputName::Snapshot => ObjectKind::InputSnapshot,
        InputName::Plan => ObjectKind::Plan,
        InputName::PlanJson => ObjectKind::PlanJson,
        InputName::PolicyResult => ObjectKind::PolicyResult,
        InputName::LockFile => ObjectKind::LockFile,
    }
}
