//! Archives, bundles and evaluators for tests.

use std::path::PathBuf;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use stackship_domain::Sha256Digest;
use stackship_policy::{AttachedBundle, Bundle, Context, Evaluation, Evaluator, Limits};

/// Limits that no policy reaches by itself in a test, however busy the machine is.
pub const AMPLE: Limits = Limits {
    cpu_seconds: 10,
    evaluation: Duration::from_mins(2),
    wall: Duration::from_mins(4),
};

pub fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_policy-trial"))
}

pub fn evaluator() -> Evaluator {
    Evaluator::with_limits(program(), AMPLE)
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

/// A manifest entry of an enabled policy whose file is named after its id.
pub fn policy(id: &str, level: &str) -> Value {
    json!({ "id": id, "file": format!("{id}.rego"), "level": level, "enabled": true })
}

pub fn manifest(policies: &[Value]) -> String {
    json!({ "version": "1", "policies": policies }).to_string()
}

/// A bundle of one policy, `tested`. The text follows the line that declares the package.
pub fn bundle(level: &str, rules: &str) -> Bundle {
    bundle_of(&[(policy("tested", level), rules)], None)
}

pub fn bundle_of(policies: &[(Value, &str)], data: Option<&str>) -> Bundle {
    let entries: Vec<_> = policies.iter().map(|(entry, _)| entry.clone()).collect();
    let mut files = vec![("manifest.json".to_owned(), manifest(&entries))];
    for (entry, rules) in policies {
        let id = entry["id"].as_str().unwrap();
        let file = entry["file"].as_str().unwrap().to_owned();
        files.push((file, format!("package stackship.{id}\n{rules}\n")));
    }
    files.extend(data.map(|data| ("data.json".to_owned(), data.to_owned())));
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    Bundle::from_archive(&archive(&files)).unwrap()
}

pub fn attached(bundle: Bundle) -> AttachedBundle {
    AttachedBundle {
        pinned: bundle.digest(),
        bundle,
    }
}

pub fn context(input: &[u8]) -> Context {
    Context {
        run: "run-00000000000000000000000001".parse().unwrap(),
        plan: Sha256Digest::of(b"the plan"),
        redacted_plan: None,
        policy_input: Some(Sha256Digest::of(input)),
        evaluated_at: "2026-01-02T03:04:05Z".parse().unwrap(),
    }
}

pub fn input(plan: &Value) -> Vec<u8> {
    let document = json!({
        "plan": plan,
        "run": {},
        "workspace": { "name": "network" },
        "stackship": {
            "schema": "stackship.policy-input/v1",
            "evaluated_at": "2026-01-02T03:04:05Z",
        },
    });
    serde_json::to_vec(&document).unwrap()
}

/// Evaluates one policy's rules on one plan.
pub async fn evaluate(level: &str, rules: &str, plan: &Value) -> Evaluation {
    let input = input(plan);
    let attached = [attached(bundle(level, rules))];
    let context = context(&input);
    evaluator()
        .evaluate(&attached, &input, context)
        .await
        .unwrap()
}
