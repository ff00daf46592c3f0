//! Pinned variables as OpenTofu takes them: one file of input variables, and an environment.
//!
//! The file is an HCL file given with `-var-file`. An argument wins over every file a configuration
//! may bring (`terraform.tfvars`, `*.auto.tfvars`) and over `TF_VAR_` names; a name that the
//! configuration does not declare is only warned about; and HCL expressions can stand in it, which
//! the JSON form has no place for. Plan and apply get the same bytes: OpenTofu would take another
//! value for a variable that was left at its default without a word.

use std::fmt::Write as _;

use serde_json::Value;
use stackship_domain::variable::{InputVariable, VariableCategory};
use stackship_runner_protocol::Lease;
use stackship_sandbox::{Environment, Network};

use crate::logs::{Secrets, quoted_texts};
use crate::workdir::CLI_CONFIGURATION_FILE;

/// A name or a number of a sensitive value that is shorter than this is left alone.
const BARE_BYTES_MIN: usize = 16;

/// The bytes of the file.
pub(crate) fn variables_file(variables: &[InputVariable]) -> Vec<u8> {
    let mut out = String::new();
    for variable in variables
        .iter()
        .filter(|variable| variable.category == VariableCategory::Terraform)
    {
        // In parentheses an expression cannot end early and define a second variable; the line
        // break ends a comment at its end.
        let value = if variable.hcl {
            format!("({}\n)", variable.value)
        } else {
            quoted(&variable.value)
        };
        writeln!(out, "{} = {value}", variable.key).expect("writing to a string cannot fail");
    }
    out.into_bytes()
}

/// The environment variables.
fn environment(variables: &[InputVariable]) -> impl Iterator<Item = (&str, &str)> {
    let environment = variables
        .iter()
        .filter(|variable| variable.category == VariableCategory::Env);
    environment.map(|variable| (variable.key.as_str(), variable.value.as_str()))
}

/// The environment of a step. Ours last: nothing that a person pinned can replace it.
pub(crate) fn step_environment(
    variables: &[InputVariable],
    lease: &Lease,
    network: Network,
) -> Environment {
    let mut out = Environment::base(network);
    for (name, value) in environment(variables) {
        out.set(name, value);
    }
    for (name, value) in Environment::base(network).pairs() {
        out.set(name, value);
    }
    for name in [
        "TF_IN_AUTOMATION",
        "TF_FORCE_LOCAL_BACKEND",
        "CHECKPOINT_DISABLE",
    ] {
        out.set(name, "1");
    }
    out.set("TF_INPUT", "0");
    out.set("TFE_RUN_ID", lease.run.to_string());
    out.set("TF_CLI_CONFIG_FILE", CLI_CONFIGURATION_FILE);
    out
}

/// What must not appear in a log: sensitive values, every value of the environment (credentials are
/// put there, marked or not), and the tokens of the lease.
pub(crate) fn secrets(variables: &[InputVariable], lease: &Lease) -> Secrets {
    let mut secrets = Secrets::default();
    // First: only so much is masked in every form.
    secrets.add(lease.run_token.expose());
    secrets.add(lease.lease_token.expose());
    for variable in variables {
        let is_secret = variable.sensitive || variable.category == VariableCategory::Env;
        if is_secret {
            texts_of_variable(variable).for_each(|text| secrets.add(&text));
        }
    }
    secrets
}

/// The whole value, and the texts within it.
fn texts_of_variable(variable: &InputVariable) -> impl Iterator<Item = String> {
    std::iter::once(variable.value.clone()).chain(texts_within(variable))
}

/// The texts that a configuration can take out of a value: those of an expression, and those of a value
/// that is itself JSON, which `jsondecode` opens and as which credentials are often handed out.
fn texts_within(variable: &InputVariable) -> Vec<String> {
    let mut texts = Vec::new();
    if variable.hcl {
        texts = quoted_texts(&variable.value);
        texts.extend(bare_words(&variable.value));
    } else if let Ok(value @ (Value::Object(_) | Value::Array(_))) =
        serde_json::from_str(&variable.value)
    {
        texts_of(value, &mut texts);
    }
    texts
}

/// Every text. Names of members are mostly words like `type`, and numbers those of ports.
fn texts_of(value: Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.into_iter().for_each(|item| texts_of(item, texts)),
        Value::Object(members) => {
            for (name, member) in members {
                texts.extend(Some(name).filter(|name| can_be_secret(name)));
                texts_of(member, texts);
            }
        }
        Value::Number(number) => {
            texts.extend(Some(number.to_string()).filter(|number| can_be_secret(number)));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// What stands in an expression without quotes: names of members, and numbers.
fn bare_words(expression: &str) -> Vec<String> {
    let (mut words, mut is_quoted, mut is_escaped) = (vec![String::new()], false, false);
    for letter in expression.chars() {
        if is_quoted {
            is_quoted = is_escaped || letter != '"';
            is_escaped = !is_escaped && letter == '\\';
            continue;
        }
        is_quoted = letter == '"';
        let is_of_word = letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
        match words.last_mut() {
            Some(word) if is_of_word => word.push(letter),
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| can_be_secret(word));
    words
}

/// Whether a name or a number looks like a key that somebody was given. What is shorter, or has letters
/// alone, names things: without those words a log says nothing.
fn can_be_secret(word: &str) -> bool {
    word.len() >= BARE_BYTES_MIN && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// What was pinned as sensitive, whether the configuration says so or not: each value, and every text
/// within it.
pub(crate) fn sensitive_values(variables: &[InputVariable]) -> Vec<String> {
    let sensitive = variables.iter().filter(|variable| variable.sensitive);
    sensitive.flat_map(texts_of_variable).collect()
}

/// A text as a quoted HCL template that means exactly this text.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Neither can then begin an interpolation or a directive.
            '$' => out.push_str("\\u0024"),
            '%' => out.push_str("\\u0025"),
            letter if letter.is_control() => {
                write!(out, "\\u{:04x}", u32::from(letter))
                    .expect("writing to a string cannot fail");
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_within_a_credential_of_json_are_secrets_of_their_own() {
        let value = r#"{"type":"key","n":{"pw":["one\nline", "two"]},"size":4}"#;
        let mut variable = InputVariable {
            key: "credential".to_owned(),
            value: value.to_owned(),
            category: VariableCategory::Terraform,
            hcl: false,
            sensitive: true,
        };
        let values = sensitive_values(std::slice::from_ref(&variable));
        assert_eq!(values.len(), 4, "{values:?}");
        for text in [value, "key", "one\nline", "two"] {
            assert!(values.iter().any(|value| value == text), "{text}");
        }
        variable.value = "\"a text in quotes\"".to_owned();
        assert_eq!(sensitive_values(&[variable]).len(), 1);
    }

    #[test]
    fn a_key_that_somebody_was_given_is_a_secret_as_a_name_too() {
        let key = "tok_4f9a81c27b3e5d60";
        for (hcl, value) in [
            (
                true,
                format!(r#"{{ {key} = "ada", private_key = "an \\\" = {key}x" }}"#),
            ),
            (
                true,
                format!("{{\n  private_key : 1\n  {key}:4200042000420004\n}}"),
            ),
            (true, "{ type = 4200042000420004 }".to_owned()),
            (
                false,
                format!(r#"{{"{key}":{{"private_key":4200042000420004}}}}"#),
            ),
        ] {
            let variable = InputVariable {
                key: "holders".to_owned(),
                value: value.clone(),
                category: VariableCategory::Terraform,
                hcl,
                sensitive: true,
            };
            let values = sensitive_values(&[variable]);
            for secret in [key, "4200042000420004"] {
                let is_known = values.iter().any(|value| value == secret);
                assert_eq!(
                    is_known,
                    value.contains(secret),
                    "{secret} of {value}: {values:?}"
                );
            }
            for name in ["private_key", "type"] {
                assert!(
                    !values.iter().any(|value| value == name),
                    "{name} of {value}"
                );
            }
        }
    }

    #[test]
    fn a_text_cannot_end_its_quotes_or_begin_an_interpolation() {
        assert_eq!(
            quoted("a\"b\\c\n${x}%{if}\u{1}é"),
            "\"a\\\"b\\\\c\\n\\u0024{x}\\u0025{if}\\u0001é\""
        );
    }
}
