//! Creating a run: everything it executes is pinned here, before anything executes (S-RUN-2).

use std::collections::{BTreeMap, BTreeSet};

use stackship_domain::ids::{OrganizationId, RunId};
use stackship_domain::run::{
    self, Command, Facts, NewRun, PinnedPolicySet, Pins, PolicyPins, RunKind, Source,
};
use stackship_domain::text::is_plain;
use stackship_domain::variable::{
    InputSnapshot, InputVariable, InvalidVariable, PlanOptions, SnapshotSchema, VARIABLES_MAX,
    VariableCategory, check_variable,
};
use stackship_store::log::{CommandError, Context};
use stackship_store::records::configuration_versions::ConfigurationVersion;
use stackship_store::records::workspaces::Workspace;
use stackship_store::records::{policy_sets, runs_record, snapshots, variables};
use stackship_store::{Store, StoreError, clock};

use crate::StepError;

/// The most characters a run's message may have.
pub const MESSAGE_CHARS_MAX: usize = 1_000;
/// The most addresses a plan may be targeted at, or asked to replace.
pub const ADDRESSES_MAX: usize = 100;
/// The most characters a ref may have.
pub const GIT_REF_CHARS_MAX: usize = 255;
/// The longest resource address, in bytes.
pub const ADDRESS_BYTES_MAX: usize = 1_024;

/// What a run is asked to be.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The tenant.
    pub organization: OrganizationId,
    /// The workspace it plans against.
    pub workspace: Workspace,
    /// The uploaded source; one run is made of it.
    pub configuration: ConfigurationVersion,
    /// What it may become.
    pub kind: RunKind,
    /// Its title.
    pub message: String,
    /// Where it comes from.
    pub source: Source,
    /// Whether an apply without approval was asked for; passed on to be refused (S-RUN-6).
    pub auto_apply: bool,
    /// Whether destroy mode was asked for; passed on to be refused (S-RUN-3).
    pub destroy: bool,
    /// What the plan is asked for.
    pub options: PlanOptions,
    /// Variables of this run alone; they win over the workspace's.
    pub variables: Vec<InputVariable>,
}

/// A created run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    /// Which one.
    pub run: RunId,
    /// The sequence of its newest event.
    pub sequence: i64,
    /// Whether the same request had created it before.
    pub repeated: bool,
}

/// Why a run was not created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Automatic apply was asked for.
    #[error("automatic apply is not supported: a person approves each plan")]
    AutoApply,
    /// Destroy mode was asked for.
    #[error("destroy-mode runs are not supported; an ordinary plan may destroy resources")]
    Destroy,
    /// The configuration has not arrived.
    #[error("`configuration_version` has no content yet; upload it first")]
    NotUploaded,
    /// A speculative configuration can only be planned.
    #[error("`configuration_version` is speculative; it can only be planned")]
    SpeculativeOnly,
    /// Another run was made of it.
    #[error("`configuration_version` was used by `{run}` already; upload a new one")]
    ConfigurationUsed {
        /// That run.
        run: RunId,
    },
    /// A variable cannot be pinned.
    #[error("variable `{key}`: {why}")]
    InvalidVariable {
        /// Its key.
        key: String,
        /// Why.
        why: InvalidVariable,
    },
    /// Too many variables.
    #[error("a run can have at most {VARIABLES_MAX} variables")]
    TooManyVariables,
    /// An option cannot be pinned.
    #[error("`{field}` {why}")]
    InvalidOption {
        /// Which one.
        field: &'static str,
        /// Why.
        why: &'static str,
    },
    /// The message is empty or too long.
    #[error(
        "`message` has 1 to {MESSAGE_CHARS_MAX} characters and no control characters, invisible characters or marks of direction"
    )]
    Message,
    /// The ref is empty or too long.
    #[error(
        "`git_ref` has 1 to {GIT_REF_CHARS_MAX} characters, no control characters, invisible characters or marks of direction, and no space at either end"
    )]
    GitRef,
    /// The run could not be written down.
    #[error(transparent)]
    Step(#[from] StepError),
}

impl From<StoreError> for CreateError {
    fn from(error: StoreError) -> Self {
        Self::Step(error.into())
    }
}

/// Creates a run. One run is made of a configuration version: the same creator asking again gets
/// the first one, because the tofu CLI repeats a request whose answer was lost.
pub async fn create_run(
    store: &Store,
    context: &Context,
    request: RunRequest,
) -> Result<Created, CreateError> {
    check(&request)?;
    let upload = request
        .configuration
        .upload
        .ok_or(CreateError::NotUploaded)?;
    if let Some(created) = created_before(store, context, &request).await? {
        return Ok(created);
    }
    let snapshot = snapshot(store, &request).await?;
    let (input_snapshot, inputs) =
        snapshots::store(store, context, request.workspace.id, &snapshot).await?;
    let policies = policies(store, &request).await?;
    let facts = Facts {
        organization: request.organization,
        project: request.workspace.project,
        workspace: request.workspace.id,
        kind: request.kind,
        source: request.source.clone(),
        message: request.message.clone(),
        created_by: context.actor,
        created_at: clock::now(),
        configuration_version: request.configuration.id,
        input_snapshot,
        withheld_variables: snapshot.withheld,
        working_directory: request.workspace.working_directory.clone(),
        pins: Pins {
            configuration: upload.sha256,
            inputs,
            tofu_version: request.workspace.tofu_version,
            region: request.workspace.region.clone(),
            platform: request.workspace.platform.clone(),
            policies,
        },
    };
    let new = NewRun {
        facts,
        auto_apply: request.auto_apply,
        destroy: request.destroy,
    };
    let run: RunId = clock::fresh();
    match store
        .runs
        .execute(run, Command::Create(Box::new(new)), context)
        .await
    {
        Ok(committed) => Ok(Created {
            run,
            sequence: committed.sequence,
            repeated: false,
        }),
        Err(CommandError::Refused(run::Refusal::AutoApply)) => Err(CreateError::AutoApply),
        Err(CommandError::Refused(run::Refusal::DestroyMode)) => Err(CreateError::Destroy),
        // The database lets only one run take a configuration; the other one was faster.
        Err(error @ CommandError::Contended) => created_before(store, context, &request)
            .await?
            .ok_or_else(|| StepError::from(error).into()),
        Err(error) => Err(StepError::from(error).into()),
    }
}

fn check(request: &RunRequest) -> Result<(), CreateError> {
    if request.auto_apply {
        return Err(CreateError::AutoApply);
    }
    if request.destroy {
        return Err(CreateError::Destroy);
    }
    if request.configuration.speculative && request.kind == RunKind::PlanAndApply {
        return Err(CreateError::SpeculativeOnly);
    }
    let characters = request.message.chars().count();
    if characters == 0 || characters > MESSAGE_CHARS_MAX || !request.message.chars().all(is_plain) {
        return Err(CreateError::Message);
    }
    if request
        .source
        .git_ref
        .as_deref()
        .is_some_and(|git_ref| !is_ref(git_ref))
    {
        return Err(CreateError::GitRef);
    }
    check_addresses("target_addresses", &request.options.target_addresses)?;
    check_addresses("replace_addresses", &request.options.replace_addresses)?;
    for variable in &request.variables {
        check_variable(
            variable.category,
            &variable.key,
            &variable.value,
            variable.hcl,
        )
        .map_err(|why| CreateError::InvalidVariable {
            key: variable.key.clone(),
            why,
        })?;
    }
    Ok(())
}

/// Whatever names a line of work; no version control need know it.
fn is_ref(git_ref: &str) -> bool {
    (1..=GIT_REF_CHARS_MAX).contains(&git_ref.chars().count())
        && git_ref.trim() == git_ref
        && git_ref.chars().all(is_plain)
}

fn check_addresses(field: &'static str, addresses: &[String]) -> Result<(), CreateError> {
    if addresses.len() > ADDRESSES_MAX {
        return Err(CreateError::InvalidOption {
            field,
            why: "may name at most 100 addresses",
        });
    }
    let plain = |address: &String| {
        !address.is_empty()
            && address.len() <= ADDRESS_BYTES_MAX
            && !address.starts_with('-')
            && !address.chars().any(char::is_control)
    };
    if addresses.iter().all(plain) {
        Ok(())
    } else {
        Err(CreateError::InvalidOption {
            field,
            why: "must name resource addresses, at most 1024 bytes each",
        })
    }
}

/// Whether this request asks for the run that these facts are of. The workspace's own variables may have
/// changed since; those of the request have not.
async fn asks_for(store: &Store, request: &RunRequest, facts: &Facts) -> Result<bool, StoreError> {
    if facts.kind != request.kind
        || facts.message != request.message
        || facts.source != request.source
    {
        return Ok(false);
    }
    let pinned = snapshots::load(store, request.organization, facts.input_snapshot).await?;
    Ok(pinned.is_some_and(|pinned| {
        pinned.options == request.options
            && request.variables.iter().all(|asked| {
                pinned.variables.iter().any(|variable| {
                    (
                        variable.category,
                        &variable.key,
                        variable.hcl,
                        &variable.value,
                    ) == (asked.category, &asked.key, asked.hcl, &asked.value)
                })
            })
    }))
}

async fn created_before(
    store: &Store,
    context: &Context,
    request: &RunRequest,
) -> Result<Option<Created>, CreateError> {
    let used = runs_record::run_of_configuration(
        &store.pool,
        request.organization,
        request.configuration.id,
    )
    .await?;
    let Some(run) = used else { return Ok(None) };
    let (existing, sequence) = store.runs.load(run).await?;
    match existing.facts() {
        Some(facts)
            if facts.created_by == context.actor && asks_for(store, request, facts).await? =>
        {
            Ok(Some(Created {
                run,
                sequence,
                repeated: true,
            }))
        }
        Some(_) | None => Err(CreateError::ConfigurationUsed { run }),
    }
}

/// Pins what applies to the workspace now. What is changed, attached or detached later belongs to the
/// next run.
async fn policies(store: &Store, request: &RunRequest) -> Result<PolicyPins, StoreError> {
    let workspace = &request.workspace;
    let attached = policy_sets::attached_to(
        &store.pool,
        request.organization,
        workspace.project,
        workspace.id,
    );
    let pinned = attached.await?.into_iter().map(|version| PinnedPolicySet {
        set: version.set,
        name: version.name,
        version: version.version,
        bundle: version.bundle,
        object: version.object,
    });
    Ok(PolicyPins::new(pinned.collect()))
}

/// Pins the inputs. Sensitive workspace variables stay out of a speculative run (S-SRC-4), and it
/// says which.
async fn snapshot(store: &Store, request: &RunRequest) -> Result<InputSnapshot, CreateError> {
    let mut pinned: BTreeMap<(VariableCategory, String), InputVariable> = BTreeMap::new();
    let (mut withheld, mut sensitive) = (Vec::new(), BTreeSet::new());
    for variable in
        variables::for_snapshot(store, request.organization, request.workspace.id).await?
    {
        if variable.sensitive {
            sensitive.insert((variable.category, variable.key.clone()));
        }
        if variable.sensitive && request.kind == RunKind::Speculative {
            withheld.push(variable.key);
        } else {
            pinned.insert((variable.category, variable.key.clone()), variable);
        }
    }
    for variable in &request.variables {
        let place = (variable.category, variable.key.clone());
        let mut variable = variable.clone();
        // Another value of a secret is a secret, whoever gives it: the tofu CLI cannot say so itself.
        variable.sensitive |= sensitive.contains(&place);
        pinned.insert(place, variable);
    }
    if pinned.len() > VARIABLES_MAX {
        return Err(CreateError::TooManyVariables);
    }
    withheld.retain(|key| {
        !request
            .variables
            .iter()
            .any(|variable| variable.key == *key)
    });
    withheld.sort();
    Ok(InputSnapshot {
        schema: SnapshotSchema::V1,
        working_directory: request.workspace.working_directory.clone(),
        variables: pinned.into_values().collect(),
        withheld,
        options: request.options.clone(),
    })
}
