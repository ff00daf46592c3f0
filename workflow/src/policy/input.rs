//! What policies are asked about: the redacted plan as the run recorded it, and what stands around it.

use futures::TryStreamExt as _;
use stackship_domain::Timestamp;
use stackship_domain::run::PolicyErrorCode;
use stackship_policy::{
    AttachedBundle, NamedInput, PLAN_BYTES_MAX, PolicyInput, RunInput, SourceInput, Surroundings,
    VariableInput, WorkspaceInput,
};
use stackship_store::objects::{ObjectKind, ObjectReader};
use stackship_store::records::{organizations, projects, snapshots, workspaces};
use stackship_store::{Store, StoreError};

use super::{Stop, Subject};

const CODE: PolicyErrorCode = PolicyErrorCode::PolicyInput;
/// What the recorded form is called when it cannot be read.
const REDACTED_PLAN: &str = "the redacted form of the plan";

/// The whole document.
pub(super) async fn read(
    store: &Store,
    subject: &Subject<'_>,
    attached: &[AttachedBundle],
    evaluated_at: Timestamp,
) -> Result<Vec<u8>, Stop> {
    let mut reader = redacted_plan(store, subject, attached).await?;
    let around = surroundings(store, subject).await?;
    let bytes = usize::try_from(reader.bytes()).unwrap_or(usize::MAX);
    let mut input = PolicyInput::with_capacity(bytes);
    while let Some(part) = reader
        .try_next()
        .await
        .map_err(|error| Stop::of_store(error.into(), CODE, REDACTED_PLAN))?
    {
        input.push(&part);
    }
    Ok(input.finish(&around, evaluated_at))
}

/// The recorded form, opened, unless nothing that a policy says about it could be a pass.
async fn redacted_plan(
    store: &Store,
    subject: &Subject<'_>,
    attached: &[AttachedBundle],
) -> Result<ObjectReader, Stop> {
    let plan = subject.plan;
    let (Some(object), Some(recorded)) = (plan.policy_input_object, plan.policy_input) else {
        let detail = "the plan has no redacted form: it would be larger than policies may be given";
        return Err(Stop::unusable(CODE, detail));
    };
    // A rule that does not see something does not fail, and silence would be consent. Where no policy
    // is asked, nobody consents.
    if plan.policy_input_doubts > 0 && attached.iter().any(asks) {
        let detail = format!(
            "policies would see nothing of {} changes of this plan, because their redaction was not \
             certain; the plan's changes say why",
            plan.policy_input_doubts
        );
        return Err(Stop::unusable(CODE, detail));
    }
    let reader = store
        .objects
        .reader(subject.facts.organization, object, ObjectKind::PolicyInput)
        .await
        .map_err(|error| Stop::of_store(error, CODE, REDACTED_PLAN))?;
    if reader.sha256() != recorded || reader.bytes() > PLAN_BYTES_MAX as u64 {
        let detail = format!("{REDACTED_PLAN} is not what was recorded");
        return Err(Stop::unusable(CODE, detail));
    }
    Ok(reader)
}

fn asks(attached: &AttachedBundle) -> bool {
    let mut policies = attached.bundle.manifest().policies.iter();
    policies.any(|policy| policy.enabled)
}

async fn surroundings(store: &Store, subject: &Subject<'_>) -> Result<Surroundings, Stop> {
    let facts = subject.facts;
    let snapshot = snapshots::load(store, facts.organization, facts.input_snapshot)
        .await
        .map_err(|error| Stop::of_store(error, CODE, "the run's input snapshot"))?
        .ok_or_else(|| gone("record.input_snapshots", facts.input_snapshot))?;
    let variable = |variable: stackship_domain::variable::InputVariable| VariableInput {
        key: variable.key,
        category: variable.category,
        sensitive: variable.sensitive,
    };
    let source = SourceInput {
        kind: facts.source.kind,
        commit_sha: facts.source.commit_sha.clone(),
        git_ref: facts.source.git_ref.clone(),
        commit_author: facts.source.commit_author.clone(),
    };
    let run = RunInput {
        id: subject.run,
        kind: facts.kind,
        is_destroy: false,
        message: facts.message.clone(),
        source,
        created_by: facts.created_by,
        created_at: facts.created_at,
        tofu_version: facts.pins.tofu_version,
        skip_refresh: snapshot.options.skip_refresh,
        refresh_only: snapshot.options.refresh_only,
        target_addresses: snapshot.options.target_addresses,
        replace_addresses: snapshot.options.replace_addresses,
        variables: snapshot.variables.into_iter().map(variable).collect(),
        withheld_variables: facts.withheld_variables.clone(),
    };
    let workspace = workspace(store, subject).await?;
    Ok(Surroundings { run, workspace })
}

async fn workspace(store: &Store, subject: &Subject<'_>) -> Result<WorkspaceInput, StoreError> {
    let (facts, pool) = (subject.facts, &store.pool);
    let workspace = workspaces::by_id(pool, facts.organization, facts.workspace)
        .await?
        .ok_or_else(|| gone("record.workspaces", facts.workspace))?;
    let project = projects::by_id(pool, facts.organization, facts.project)
        .await?
        .ok_or_else(|| gone("record.projects", facts.project))?;
    let organization = organizations::by_id(pool, facts.organization)
        .await?
        .ok_or_else(|| gone("record.organizations", facts.organization))?;
    Ok(WorkspaceInput {
        id: workspace.id,
        name: workspace.name.to_string(),
        project: NamedInput {
            id: project.id,
            name: project.name.to_string(),
        },
        organization: NamedInput {
            id: organization.id,
            name: organization.name.to_string(),
        },
        working_directory: facts.working_directory.clone(),
        region: facts.pins.region.clone(),
    })
}

/// A row that a run rests on and that no operation removes.
fn gone(table: &'static str, row: impl std::fmt::Display) -> StoreError {
    StoreError::inconsistent(table, "key", row)
}
