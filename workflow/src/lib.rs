//! What happens next. A durable process manager: it looks at where a run stands, does the one thing
//! that is due, and looks again. Everything it does is safe to do twice, so a crash between two steps
//! costs nothing but time; a nudge that is lost costs one sweep.
//!
//! No HTTP, no SQL: it asks the `store` room, and rules are the `domain` room's.

pub mod advance;
pub mod create;
pub mod decisions;
pub mod engine;
mod evidence;
pub mod judge;
pub mod leasing;
pub mod policy;
pub mod recovery;
pub mod rollback;

use stackship_domain::ids::{OrganizationId, RunId};
use stackship_domain::{Actor, run, workspace};
use stackship_store::StoreError;
use stackship_store::log::{CommandError, Context};

/// Why a step was not done.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The run's rules refused a step that was due: somebody else moved it meanwhile.
    #[error(transparent)]
    Run(#[from] CommandError<run::Refusal>),
    /// The workspace's rules refused a step that was due.
    #[error(transparent)]
    Workspace(#[from] CommandError<workspace::Refusal>),
    /// A failure of ours.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A document did not serialize.
    #[error("a document did not serialize")]
    Document(#[from] stackship_domain::canonical::NotCanonical),
}

/// The context of a step that nobody asked for in person. The command id names the step, so that two
/// processes doing the same step append it once.
fn system(organization: OrganizationId, run: RunId, step: &str) -> Context {
    Context {
        organization,
        actor: Actor::System,
        request_id: format!("workflow-{run}"),
        command_id: format!("{run}/{step}"),
    }
}
