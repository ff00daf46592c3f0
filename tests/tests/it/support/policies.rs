//! Policy sets of one policy.

use reqwest::Method;
use serde_json::{Value, json};

use super::archive::packed;
use super::client::{Client, Upload, Workspace, text};

/// Denies every resource named `forbidden`, and says which.
pub const NO_FORBIDDEN: &str = r#"
deny contains finding if {
	some rc in input.plan.resource_changes
	rc.name == "forbidden"
	finding := {
		"rule_id": "no-forbidden",
		"title": "A forbidden name",
		"message": sprintf("%s may not be created", [rc.address]),
		"resource_address": rc.address,
	}
}
"#;

impl Client {
    /// A policy set without a version.
    #[track_caller]
    pub fn policy_set(&self, name: &str) -> String {
        let path = format!("/v1/organizations/{}/policy-sets", self.organization());
        text(&self.post(&path, &json!({"name": name}))["id"])
    }

    /// Uploads a version: one policy, `names`, of this level.
    #[track_caller]
    pub fn publish(&self, set: &str, level: &str, rules: &str) {
        let policy = json!({"id": "names", "file": "names.rego", "level": level, "enabled": true});
        let manifest = json!({"version": "1", "policies": [policy]}).to_string();
        let rules = format!("package stackship.names\n{rules}");
        let bundle = packed(&[("manifest.json", &manifest), ("names.rego", &rules)]);
        let path = format!("/v1/policy-sets/{set}/versions");
        let (status, answer) = self.send_bytes(
            Method::POST,
            &format!("{}{path}", self.url()),
            Upload::from(bundle),
        );
        assert!(status.is_success(), "{path}: {status} {answer}");
    }

    /// A policy set with one version that applies to this workspace.
    #[track_caller]
    pub fn judge(&self, workspace: &Workspace, level: &str, rules: &str) -> String {
        let set = self.policy_set(&format!("of-{}", workspace.name));
        self.publish(&set, level, rules);
        let scope = json!({"kind": "workspace", "workspace": workspace.id});
        let body = json!({"scope": scope, "reason": "because of this test"});
        self.post(&format!("/v1/policy-sets/{set}/attachments"), &body);
        set
    }

    /// The run's policy result, as it was stored.
    #[track_caller]
    pub fn policy_result(&self, run: &str) -> Value {
        let path = format!("/v1/runs/{run}/policy-result");
        let (status, document) = self.send(Method::GET, &path, None);
        assert_eq!(status, 200, "{document:#}");
        document
    }
}
