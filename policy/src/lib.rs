//! Policy: bundles of Rego, and their evaluation in a short-lived, limited process.
//!
//! A policy is somebody else's program. It can run for ever, ask for all memory, and overflow the
//! stack, and the last two abort the process they happen in. So the engine never runs in the
//! control plane: [`Evaluator`] starts this same binary again, which limits itself before it reads a
//! byte ([`run_helper_if_asked`]), and treats whatever comes back as a claim to be checked. What is
//! not a well-formed result is [`PolicyOutcome::Error`](stackship_domain::run::PolicyOutcome::Error),
//! never a pass.
//!
//! Nothing here knows HTTP, SQL, or where bundles are kept. The policy input arrives redacted.

pub mod bundle;
mod evaluation;
mod evaluator;
mod finding;
pub mod helper;
mod input;
mod level;
mod strict_json;
mod text;
mod wire;

pub use bundle::{Bundle, BundleError};
pub use evaluation::{
    Context, Evaluation, InvalidResult, PolicyEntry, RESULT_BYTES_MAX, RESULT_SCHEMA,
};
pub use evaluator::{
    AttachedBundle, CHECKS_AT_ONCE_MAX, CHECKS_WAITING_MAX, EVALUATIONS_AT_ONCE_MAX, Evaluator,
    Limits, NotStarted,
};
pub use finding::{
    FINDINGS_MAX, Finding, MESSAGE_CHARS_MAX, RESOURCE_ADDRESS_CHARS_MAX, RULE_ID_CHARS_MAX,
    TITLE_CHARS_MAX,
};
pub use helper::run_helper_if_asked;
pub use input::{
    INPUT_SCHEMA, NamedInput, PLAN_BYTES_MAX, POLICY_INPUT_BYTES_MAX, PolicyInput, RunInput,
    SourceInput, Surroundings, VariableInput, WorkspaceInput,
};
pub use level::Level;
pub use stackship_domain::policy_bounds::{BUNDLES_ATTACHED_MAX, POLICIES_ATTACHED_MAX};
pub use stackship_domain::run::PolicyErrorCode as ErrorCode;
pub use stackship_domain::run::policy_set_digest as set_digest;

/// The engine and its exact version, as every result names it.
pub const ENGINE: &str = "regorus/0.14.1";

/// The engine's features, which decide what builtins a policy has. Sorted.
pub const FEATURES: &[&str] = &[
    "arc",
    "base64",
    "base64url",
    "cache",
    "glob",
    "hex",
    "regex",
    "semver",
    "std",
];

/// The Rego package that every policy may import as `data.stackship.helpers`.
pub const HELPERS_REGO: &str = include_str!("rego/helpers.rego");

/// The policy id that the helpers' package takes.
pub const HELPERS_ID: &str = "helpers";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_engine_is_the_one_that_is_built() {
        let manifest = include_str!("../../Cargo.toml");
        let line = manifest.lines().find(|line| line.starts_with("regorus = "));
        let features: Vec<_> = FEATURES.iter().map(|name| format!("\"{name}\"")).collect();
        let wanted = format!(
            "regorus = {{ version = \"={}\", default-features = false, features = [{}] }}",
            ENGINE.trim_start_matches("regorus/"),
            features.join(", ")
        );
        assert_eq!(line, Some(wanted.as_str()));
    }
}
