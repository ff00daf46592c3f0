//! How much is read and written.

/// How long a plan's JSON may be.
pub const PLAN_JSON_BYTES_MAX: u64 = 100 * 1024 * 1024;
/// How many changed resources a plan-diff lists.
pub const RESOURCES_MAX: usize = 5_000;
/// How many changed outputs a plan-diff lists.
pub const OUTPUTS_MAX: usize = 1_000;
/// How long a plan-diff may be.
pub const DIFF_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a policy input may be: evaluating it takes about six times as much memory.
pub const POLICY_INPUT_BYTES_MAX: usize = 100 * 1024 * 1024;

/// How many different sensitive values are looked for.
pub const SECRETS_MAX: usize = 100_000;

/// The limits of one inspection. The default is what the product promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many bytes are read.
    pub json_bytes: u64,
    /// How many changed resources are listed.
    pub resources: usize,
    /// How many changed outputs are listed.
    pub outputs: usize,
    /// How long the plan-diff may be; at least 2 KiB, or not even its counters fit.
    pub diff_bytes: usize,
    /// How long the policy input may be.
    pub policy_input_bytes: usize,
    /// How many different sensitive values are looked for; with more, no detail is shown.
    pub secrets: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            json_bytes: PLAN_JSON_BYTES_MAX,
            resources: RESOURCES_MAX,
            outputs: OUTPUTS_MAX,
            diff_bytes: DIFF_BYTES_MAX,
            policy_input_bytes: POLICY_INPUT_BYTES_MAX,
            secrets: SECRETS_MAX,
        }
    }
}
