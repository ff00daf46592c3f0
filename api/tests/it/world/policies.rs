//! Bundles, and the real limited process that they are tried in.

use std::path::PathBuf;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use stackship_policy::{Evaluator, Limits};

use super::World;
use crate::http::{Answer, Call};

/// Limits that no policy reaches by itself in a test, however busy the machine is, but the one of
/// processor time.
const LIMITS: Limits = Limits {
    cpu_seconds: 10,
    evaluation: Duration::from_mins(2),
    wall: Duration::from_mins(4),
};

/// An evaluator whose process is the policy room's own trial program, built beside these tests.
pub fn evaluator() -> Evaluator {
    let own = std::env::current_exe().unwrap();
    let built: PathBuf = own.ancestors().nth(2).unwrap().join("policy-trial");
    assert!(
        built.exists(),
        "{} is missing: build with `cargo test --workspace --no-run`",
        built.display()
    );
    Evaluator::with_limits(built, LIMITS)
}

pub fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(text.len()).unwrap());
        header.set_mode(0o644);
        tar.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

pub fn manifest(label: &str) -> Value {
    let policy =
        json!({"id": "tested", "file": "tested.rego", "level": "soft_mandatory", "enabled": true});
    json!({"version": label, "policies": [policy]})
}

/// A bundle of one policy, `tested`. The rules follow the line that declares the package.
pub fn bundle(label: &str, rules: &str) -> Vec<u8> {
    let rules = format!("package stackship.tested\n{rules}\n");
    let manifest = manifest(label).to_string();
    archive(&[("manifest.json", &manifest), ("tested.rego", &rules)])
}

/// A bundle of one policy that objects to nothing.
pub fn harmless(label: &str) -> Vec<u8> {
    bundle(label, "deny contains \"x\" if false")
}

impl World {
    /// A set of acme's, without a version.
    pub async fn policy_set(&self, name: &str) -> String {
        let path = self.acme.path("policy-sets");
        let set = self.send("POST", &path, &json!({"name": name})).await;
        set.data(201)["id"].as_str().unwrap().to_owned()
    }

    /// Uploads to a set as acme's owner.
    pub async fn upload(&self, set: &str, archive: Vec<u8>) -> Answer {
        let path = format!("/v1/policy-sets/{set}/versions");
        let mut call = Call::new("POST", path, &self.acme.owner.token);
        call.body = archive;
        call.send(&self.router).await
    }

    /// A set of acme's with one version.
    pub async fn policies(&self, name: &str) -> String {
        let set = self.policy_set(name).await;
        self.upload(&set, harmless("1")).await.data(201);
        set
    }

    /// Attaches a set, or detaches it, as acme's owner.
    pub async fn place(&self, verb: &str, set: &str, scope: &Value) -> Answer {
        let body = json!({"scope": scope, "reason": "because of this test"});
        let path = format!("/v1/policy-sets/{set}/{verb}");
        self.send("POST", &path, &body).await
    }
}
