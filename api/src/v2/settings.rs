//! What a workspace is asked to be. This edge has no settings to change, so each attribute either says
//! how things are, or asks for nothing, or is refused with what to do instead: an attribute that was
//! ignored would look like one that was set (S-RUN-6).

use serde_json::{Map, Value, json};
use stackship_domain::TofuVersion;

use super::error::V2Error;

/// Attributes that people know from elsewhere, and what to do here.
const INSTEAD: &[(&str, &str, &str)] = &[
    (
        "auto-apply",
        "invalid document",
        "Automatic apply is not supported: a person approves each plan. Leave auto-apply out or false, and run tofu apply.",
    ),
    (
        "allow-destroy-plan",
        "invalid document",
        "Destroy mode is not supported. Leave allow-destroy-plan out or false; remove the resources from the \
         configuration and run tofu apply: the plan shows what will be destroyed.",
    ),
    (
        "queue-all-runs",
        "invalid document",
        "Runs are queued when somebody creates one. Leave queue-all-runs out or false, and run tofu plan or tofu apply.",
    ),
    (
        "execution-mode",
        "invalid document",
        "Runs execute here, in a sandbox: the only execution-mode is remote. Leave it out or say remote.",
    ),
    (
        "operations",
        "invalid document",
        "Runs execute here, in a sandbox. Leave operations out or true.",
    ),
];

/// How a workspace that is created stands, as far as a request may say it.
pub fn fresh(version: TofuVersion) -> Value {
    json!({"execution-mode": "remote", "operations": true, "terraform-version": version.to_string()})
}

/// Refuses whatever is to be different from how the workspace stands.
pub fn check(asked: &Map<String, Value>, stands: &Value) -> Result<(), V2Error> {
    let differs = |(name, value): &(&String, &Value)| match stands.get(name.as_str()) {
        Some(present) => present != *value && !value.is_null(),
        None => !asks_for_nothing(value),
    };
    match asked.iter().find(differs) {
        Some((name, _)) => Err(refused(name, stands)),
        None => Ok(()),
    }
}

fn asks_for_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is_wanted) => !is_wanted,
        Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn refused(name: &str, stands: &Value) -> V2Error {
    if name == "terraform-version" {
        let pinned = stands[name].as_str().unwrap_or_default();
        return V2Error::refused(
            "version pinned",
            format!(
                "The workspace runs OpenTofu {pinned}; change that through the API, not by the version of a terminal."
            ),
        );
    }
    let known = INSTEAD.iter().find(|(attribute, ..)| *attribute == name);
    match known {
        Some((_, title, detail)) => V2Error::refused(title, *detail),
        None => V2Error::refused(
            "invalid document",
            format!(
                "{name} cannot be set here. Leave it out; the settings of workspaces are changed through /v1."
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(asked: Value, stands: &Value) -> Option<String> {
        let Value::Object(asked) = asked else {
            panic!("{asked} is no object")
        };
        check(&asked, stands).err().map(|error| {
            assert_eq!(error.status, 422);
            error.detail
        })
    }

    fn stands() -> Value {
        let mut stands = fresh("1.12.6".parse().unwrap());
        stands["auto-apply"] = json!(false);
        stands["name"] = json!("net");
        stands
    }

    #[test]
    fn what_is_not_supported_is_refused_by_name() {
        for (asked, wanted) in [
            (json!({"auto-apply": true}), "a person approves each plan"),
            (json!({"allow-destroy-plan": true}), "Destroy mode"),
            (json!({"queue-all-runs": true}), "queue-all-runs"),
            (json!({"execution-mode": "local"}), "execution-mode"),
            (json!({"execution-mode": "agent"}), "execution-mode"),
            (json!({"operations": false}), "operations"),
            (json!({"terraform-version": "1.11.0"}), "1.12.6"),
            (json!({"terraform-version": 1}), "1.12.6"),
            (json!({"name": "other"}), "name cannot be set here"),
            (json!({"working-directory": "sub"}), "working-directory"),
            (json!({"agent-pool-id": "apool-1"}), "agent-pool-id"),
        ] {
            for stands in [stands(), fresh("1.12.6".parse().unwrap())] {
                let detail =
                    detail(asked.clone(), &stands).unwrap_or_else(|| panic!("{asked} was ignored"));
                assert!(detail.contains(wanted), "{asked}: {detail}");
            }
        }
    }

    #[test]
    fn what_says_how_things_are_and_what_the_client_sends_is_taken() {
        for asked in [
            json!({}),
            json!({"terraform-version": "1.12.6"}),
            json!({"execution-mode": "remote", "operations": true}),
            json!({"auto-apply": false, "queue-all-runs": false, "description": "", "vcs-repo": null}),
            json!({"name": "net", "tag-names": []}),
        ] {
            assert_eq!(detail(asked.clone(), &stands()), None, "{asked}");
        }
    }
}
