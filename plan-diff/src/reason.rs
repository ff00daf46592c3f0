//! Why something is not shown.

use serde::Serialize;

/// Why the detail of a resource or an output is withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A value came without a mask that says what of it is sensitive.
    MaskMissing,
    /// A mask does not have the shape of its value.
    MaskMismatch,
    /// A value nests too deeply.
    TooDeep,
    /// The detail is larger than fits.
    TooLarge,
    /// The action is none this version knows.
    UnknownAction,
    /// The kind of resource is none this version knows.
    UnknownMode,
    /// OpenTofu left changes for a later plan.
    PlanIncomplete,
    /// Not every sensitive value could be collected, so none can be ruled out here.
    SecretsIncomplete,
}
