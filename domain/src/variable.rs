//! Workspace variables and the input snapshot that pins them for one run.

use serde::{Deserialize, Serialize};

use crate::hcl_literal::is_literal;

/// The longest key, in bytes.
pub const VARIABLE_KEY_BYTES_MAX: usize = 128;
/// The largest value, in bytes.
pub const VARIABLE_VALUE_BYTES_MAX: usize = 256 * 1024;
/// The most variables one workspace, and one input snapshot, may hold.
pub const VARIABLES_MAX: usize = 500;

/// Where a variable goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariableCategory {
    /// An OpenTofu input variable.
    Terraform,
    /// An environment variable of the OpenTofu process.
    Env,
}

impl VariableCategory {
    /// The name on the wire and in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Terraform => "terraform",
            Self::Env => "env",
        }
    }
}

/// Why a variable cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVariable {
    /// The key is not an identifier.
    #[error("`key` has 1 to 128 letters, digits, `_` or `-` and does not begin with a digit")]
    Key,
    /// The environment variable is one that StackShip or OpenTofu's own plumbing needs.
    #[error(
        "`key` names `{0}`, which is reserved: it would change how OpenTofu itself runs. Use an input variable, or \
         a `TF_VAR_` name"
    )]
    Reserved(String),
    /// The value is too large.
    #[error("`value` may have at most 262144 bytes")]
    ValueTooLarge,
    /// The value holds a NUL byte, which no environment can carry.
    #[error("`value` must not hold a NUL byte")]
    ValueNul,
    /// The expression is not a single literal.
    #[error(
        "`value` must be one HCL literal, such as `5`, `\"text\"`, `[1, 2]` or `{{ a = 1 }}`: no comment, template, \
         here-document or second definition"
    )]
    Expression,
    /// Environment variables are text.
    #[error("`hcl` is only for category `terraform`: an environment variable is plain text")]
    HclEnvironment,
}

/// Prefixes of environment variables that would let a person change OpenTofu's own working:
/// its arguments, its backend, its data directory, its credentials for StackShip.
const RESERVED_PREFIXES: &[&str] = &[
    "TF_",
    "TFE_",
    "TFC_",
    "TOFU_",
    "STACKSHIP_",
    "LD_",
    "GIT_",
    "SS_",
];
const RESERVED_NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "SHELL",
    "USER",
    "TMPDIR",
    "TERRAFORM_CONFIG",
    "CHECKPOINT_DISABLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "BASH_ENV",
    "ENV",
    "IFS",
];

/// Checks a variable before it is stored or pinned.
pub fn check_variable(
    category: VariableCategory,
    key: &str,
    value: &str,
    hcl: bool,
) -> Result<(), InvalidVariable> {
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let begins_well = key
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if !begins_well || key.len() > VARIABLE_KEY_BYTES_MAX || !key.bytes().all(letters) {
        return Err(InvalidVariable::Key);
    }
    if value.len() > VARIABLE_VALUE_BYTES_MAX {
        return Err(InvalidVariable::ValueTooLarge);
    }
    if value.contains('\0') {
        return Err(InvalidVariable::ValueNul);
    }
    match category {
        VariableCategory::Terraform if hcl && !is_literal(value) => {
            Err(InvalidVariable::Expression)
        }
        VariableCategory::Terraform => Ok(()),
        VariableCategory::Env => check_environment(key, hcl),
    }
}

fn check_environment(key: &str, hcl: bool) -> Result<(), InvalidVariable> {
    if hcl {
        Err(InvalidVariable::HclEnvironment)
    } else if is_reserved(key) {
        Err(InvalidVariable::Reserved(key.to_owned()))
    } else {
        Ok(())
    }
}

fn is_reserved(key: &str) -> bool {
    let upper = key.to_ascii_uppercase();
    let input_variable = key.starts_with("TF_VAR_") && key.len() > "TF_VAR_".len();
    !input_variable
        && (RESERVED_NAMES.contains(&upper.as_str())
            || RESERVED_PREFIXES
                .iter()
                .any(|prefix| upper.starts_with(prefix)))
}

/// One pinned variable.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputVariable {
    /// The name.
    pub key: String,
    /// The value: text, or an HCL expression where `hcl` is set.
    pub value: String,
    /// Where it goes.
    pub category: VariableCategory,
    /// Whether `value` is an HCL expression.
    pub hcl: bool,
    /// Whether the value must never be shown.
    pub sensitive: bool,
}

impl std::fmt::Debug for InputVariable {
    /// Leaves the value out: even a plain variable may hold what nobody meant to log.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("InputVariable")
            .field("key", &self.key)
            .field("category", &self.category)
            .field("hcl", &self.hcl)
            .field("sensitive", &self.sensitive)
            .finish_non_exhaustive()
    }
}

/// What may be asked of one plan besides its configuration and variables; part of the reviewed
/// input, so it is pinned and shown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanOptions {
    /// `-refresh=false`.
    pub skip_refresh: bool,
    /// `-refresh-only`.
    pub refresh_only: bool,
    /// `-target`, in the order given.
    pub target_addresses: Vec<String>,
    /// `-replace`, in the order given.
    pub replace_addresses: Vec<String>,
}

/// The immutable inputs of one run; its canonical bytes are what the input-snapshot digest covers
/// (S-RUN-2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputSnapshot {
    /// The form of this document.
    pub schema: SnapshotSchema,
    /// Directory below the configuration's root in which OpenTofu runs; empty for the root.
    pub working_directory: String,
    /// Pinned variables in key order; later sources have already replaced earlier ones.
    pub variables: Vec<InputVariable>,
    /// Keys of sensitive workspace variables left out because the run is speculative (S-SRC-4).
    pub withheld: Vec<String>,
    /// What the plan was asked for.
    pub options: PlanOptions,
}

/// The forms of an input snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SnapshotSchema {
    /// The first form.
    #[serde(rename = "stackship.input-snapshot/v1")]
    V1,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_cannot_steer_opentofu_itself() {
        for key in [
            "TF_CLI_ARGS_apply",
            "tf_workspace",
            "TF_TOKEN_x",
            "TFE_RUN_ID",
            "LD_PRELOAD",
            "GIT_SSH_COMMAND",
            "PATH",
            "https_proxy",
            "TF_VAR_",
        ] {
            assert!(
                matches!(
                    check_variable(VariableCategory::Env, key, "x", false),
                    Err(InvalidVariable::Reserved(_))
                ),
                "{key} was taken"
            );
        }
        for key in ["AWS_REGION", "TF_VAR_size", "GOOGLE_PROJECT"] {
            assert_eq!(
                check_variable(VariableCategory::Env, key, "x", false),
                Ok(()),
                "{key} was refused"
            );
        }
    }

    #[test]
    fn keys_and_values_have_limits() {
        assert_eq!(
            check_variable(VariableCategory::Terraform, "1x", "", false),
            Err(InvalidVariable::Key)
        );
        assert_eq!(
            check_variable(VariableCategory::Terraform, "a=b", "", false),
            Err(InvalidVariable::Key)
        );
        assert_eq!(
            check_variable(VariableCategory::Env, "A", "a\0b", false),
            Err(InvalidVariable::ValueNul)
        );
        assert_eq!(
            check_variable(VariableCategory::Env, "A", "[]", true),
            Err(InvalidVariable::HclEnvironment)
        );
        let large = "x".repeat(VARIABLE_VALUE_BYTES_MAX + 1);
        assert_eq!(
            check_variable(VariableCategory::Terraform, "a", &large, false),
            Err(InvalidVariable::ValueTooLarge)
        );
    }

    #[test]
    fn a_value_never_reaches_a_debug_text() {
        let variable = InputVariable {
            key: "password".into(),
            value: "hunter2".into(),
            category: VariableCategory::Terraform,
            hcl: false,
            sensitive: true,
        };
        assert!(!format!("{variable:?}").contains("hunter2"));
    }
}
