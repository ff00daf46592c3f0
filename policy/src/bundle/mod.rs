//! A policy bundle: what is uploaded, what is stored, and the digest that pins it.
//!
//! A bundle is a `tar.gz` with `manifest.json`, one `.rego` file for each policy, and optionally
//! `data.json`. What is stored is not the archive but one canonical document, so that two archives
//! of the same policies are the same bundle.

mod archive;
mod error;
mod manifest;
mod nesting;
mod stored;

use std::collections::BTreeMap;

use serde_json::Value;
use stackship_domain::{Sha256Digest, canonical};

pub use archive::ARCHIVE_BYTES_MAX;
pub use error::BundleError;
pub(crate) use manifest::is_policy_id;
pub use manifest::{MANIFEST_PATH, Manifest, POLICY_ID_CHARS_MAX, Policy, VERSION_CHARS_MAX};
pub use nesting::NESTING_MAX;
pub use stored::{BUNDLE_SCHEMA, STORED_BYTES_MAX};

/// The most bytes that a bundle's files have together.
pub const CONTENT_BYTES_MAX: usize = 1024 * 1024;
/// The most files in a bundle.
pub const FILES_MAX: usize = 200;
/// The most policies in a bundle: every file but the manifest and the data.
pub const POLICIES_MAX: usize = FILES_MAX - 2;
/// The longest path of a file.
pub const PATH_CHARS_MAX: usize = 100;
/// The path of the data that a bundle's policies share.
pub const DATA_PATH: &str = "data.json";

/// A bundle whose form has been checked. That its policies load is for
/// [`Evaluator::validate`](crate::Evaluator::validate) to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    manifest: Manifest,
    /// The texts by path, without the manifest.
    files: BTreeMap<String, String>,
}

impl Bundle {
    /// Reads an uploaded `tar.gz`.
    pub fn from_archive(upload: &[u8]) -> Result<Self, BundleError> {
        let mut files = archive::read(upload)?;
        let Some(manifest) = files.remove(MANIFEST_PATH) else {
            let problem = "it is missing";
            let remedy = "Put it at the top of the archive; docs/policies.md describes it";
            return Err(BundleError::file(MANIFEST_PATH, problem, remedy));
        };
        Self::from_parts(manifest::parse(&manifest)?, files)
    }

    fn from_parts(
        manifest: Manifest,
        files: BTreeMap<String, String>,
    ) -> Result<Self, BundleError> {
        for policy in &manifest.policies {
            if !files.contains_key(&policy.file) {
                let problem = format!("the policy `{}` names it, and it is missing", policy.id);
                let remedy = "Add it, or correct `file` in the manifest";
                return Err(BundleError::file(&policy.file, problem, remedy));
            }
        }
        for (path, text) in &files {
            check_file(&manifest, path, text)?;
        }
        Ok(Self { manifest, files })
    }

    /// What the bundle says about itself.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The text of one file.
    pub fn file(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Every file but the manifest, by path, with its text.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let texts = self.files.iter();
        texts.map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The data that the bundle's policies share, as JSON.
    pub fn data(&self) -> Option<&str> {
        self.file(DATA_PATH)
    }

    /// What pins the bundle: SHA-256 over the canonical list of its files, each with its digest and,
    /// for a policy, its level and whether it is enabled, and the manifest's version.
    pub fn digest(&self) -> Sha256Digest {
        let manifest =
            canonical::to_bytes(&self.manifest).expect("a manifest has only texts and booleans");
        let mut files: BTreeMap<&str, Value> = BTreeMap::new();
        for (path, text) in &self.files {
            files.insert(path, entry(path, Sha256Digest::of(text.as_bytes())));
        }
        files.insert(
            MANIFEST_PATH,
            entry(MANIFEST_PATH, Sha256Digest::of(&manifest)),
        );
        for policy in &self.manifest.policies {
            if let Some(Value::Object(entry)) = files.get_mut(policy.file.as_str()) {
                entry.insert("level".to_owned(), policy.level.as_str().into());
                entry.insert("enabled".to_owned(), policy.enabled.into());
            }
        }
        let list = serde_json::json!({
            "schema": BUNDLE_SCHEMA,
            "version": self.manifest.version,
            "files": files.into_values().collect::<Vec<_>>(),
        });
        let bytes = canonical::to_bytes(&list).expect("the list has only texts and booleans");
        Sha256Digest::of(&bytes)
    }
}

fn entry(path: &str, sha256: Sha256Digest) -> Value {
    serde_json::json!({ "path": path, "sha256": sha256 })
}

fn check_file(manifest: &Manifest, path: &str, text: &str) -> Result<(), BundleError> {
    if path == DATA_PATH {
        return check_data(text);
    }
    if !manifest.policies.iter().any(|policy| policy.file == path) {
        let problem = "no policy names it";
        let remedy = "Leave it out of the archive, or name it as a policy's `file`";
        return Err(BundleError::file(path, problem, remedy));
    }
    // The engine takes NUL for the end of the text, in a comment too.
    let control = |character: char| character.is_control() && !"\t\r\n".contains(character);
    if text.contains(control) {
        let problem = "it contains a control character";
        return Err(BundleError::file(path, problem, "Remove it"));
    }
    if let Some(line) = nesting::too_deep_at(text) {
        let problem = format!("brackets nest deeper than {NESTING_MAX} on line {line}");
        let remedy = "Give inner collections names of their own";
        return Err(BundleError::file(path, problem, remedy));
    }
    Ok(())
}

fn check_data(text: &str) -> Result<(), BundleError> {
    let remedy = "Give one JSON object, each key once, without the key `stackship`";
    let refuse = |problem: String| Err(BundleError::file(DATA_PATH, problem, remedy));
    if let Err(error) = crate::strict_json::check(text) {
        return refuse(crate::text::plain(&error.to_string(), 300));
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(members)) if members.contains_key("stackship") => {
            refuse("the key `stackship` is where the policies stand".to_owned())
        }
        Ok(Value::Object(_)) => Ok(()),
        Ok(_) => refuse("it is not an object".to_owned()),
        Err(error) => refuse(crate::text::plain(&error.to_string(), 300)),
    }
}
