//! What somebody should know before a plan is approved.

use serde::Serialize;
use stackship_domain::ids::{RunId, StateVersionId};
use stackship_domain::run::Warning;
use utoipa::ToSchema;

use crate::v1::schema;

/// One thing to know before a plan is approved.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WarningView {
    /// Its code.
    #[schema(schema_with = schema::warning)]
    kind: &'static str,
    /// The run that it is about.
    #[schema(value_type = String)]
    run: RunId,
    /// The state that it is about.
    #[schema(value_type = String)]
    state_version: StateVersionId,
    /// What is the matter and what to do.
    message: String,
}

impl From<&Warning> for WarningView {
    fn from(warning: &Warning) -> Self {
        let Warning::EmergencyStateNotAdopted { run, state, .. } = warning;
        Self {
            kind: warning.code(),
            run: *run,
            state_version: *state,
            message: warning.sentence(),
        }
    }
}
