//! `manifest.json`: which policies a bundle has, and how much each weighs.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{BundleError, POLICIES_MAX};
use crate::finding::{MESSAGE_CHARS_MAX, TITLE_CHARS_MAX};
use crate::{HELPERS_ID, Level, strict_json, text};

/// The manifest's path in the archive.
pub const MANIFEST_PATH: &str = "manifest.json";
/// The longest policy id.
pub const POLICY_ID_CHARS_MAX: usize = 64;
/// The longest version text.
pub const VERSION_CHARS_MAX: usize = 64;

/// What a bundle says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The author's name for this state of the bundle.
    pub version: String,
    /// Its policies, sorted by id.
    pub policies: Vec<Policy>,
}

/// One policy of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Names it within the bundle, and names its package: `stackship.<id>`.
    pub id: String,
    /// The path of its text.
    pub file: String,
    /// How much its failure weighs.
    pub level: Level,
    /// Whether it is evaluated.
    pub enabled: bool,
    /// The title of findings that give none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Policy {
    /// The package that its file must declare, as the engine names it.
    pub(crate) fn package(&self) -> String {
        format!("data.stackship.{}", self.id)
    }
}

pub(super) fn parse(manifest: &str) -> Result<Manifest, BundleError> {
    let remedy = "See docs/policies.md for the fields of the manifest";
    strict_json::check(manifest)
        .map_err(|error| BundleError::manifest("(document)", plain(&error.to_string()), remedy))?;
    let mut reader = serde_json::Deserializer::from_str(manifest);
    let mut parsed: Manifest = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = plain(&error.path().to_string());
        BundleError::manifest(field, plain(&error.inner().to_string()), remedy)
    })?;
    parsed.policies.sort_by(|one, other| one.id.cmp(&other.id));
    check(&parsed)?;
    Ok(parsed)
}

fn check(manifest: &Manifest) -> Result<(), BundleError> {
    if !is_version(&manifest.version) {
        let problem = "it is not a version";
        let remedy = "Use 1 to 64 letters, digits, `.`, `_`, `+` and `-`";
        return Err(BundleError::manifest("version", problem, remedy));
    }
    if manifest.policies.is_empty() || manifest.policies.len() > POLICIES_MAX {
        let problem = format!("there are {}", manifest.policies.len());
        let remedy = "Name at least one policy, and at most 198";
        return Err(BundleError::manifest("policies", problem, remedy));
    }
    let (mut ids, mut files) = (BTreeSet::new(), BTreeSet::new());
    for policy in &manifest.policies {
        check_policy(policy)?;
        let field = |name| format!("policies[{}].{name}", policy.id);
        if !ids.insert(&policy.id) {
            let problem = "two policies have this id";
            return Err(BundleError::manifest(
                field("id"),
                problem,
                "Rename one of them",
            ));
        }
        if !files.insert(&policy.file) {
            let problem = "two policies have this file";
            return Err(BundleError::manifest(
                field("file"),
                problem,
                "Give each policy its own file",
            ));
        }
    }
    Ok(())
}

fn check_policy(policy: &Policy) -> Result<(), BundleError> {
    let shown = plain(&policy.id);
    let field = |name| format!("policies[{shown}].{name}");
    if !is_policy_id(&policy.id) {
        let problem = "it is not a policy id";
        let remedy = "Begin with a lower-case letter, go on with lower-case letters, digits \
                              and `_`, at most 64 in all; `helpers` is taken";
        return Err(BundleError::manifest(field("id"), problem, remedy));
    }
    if policy.file.strip_suffix(".rego").is_none() || !super::archive::is_path(&policy.file) {
        let problem = "it is not the path of a .rego file";
        let remedy = "Give the path inside the archive, for example `tags.rego`";
        return Err(BundleError::manifest(field("file"), problem, remedy));
    }
    let title = (policy.title.as_deref(), "title", TITLE_CHARS_MAX);
    let description = (
        policy.description.as_deref(),
        "description",
        MESSAGE_CHARS_MAX,
    );
    for (shown_text, name, chars_max) in [title, description] {
        if shown_text.is_some_and(|shown| shown.is_empty() || !text::is_plain(shown, chars_max)) {
            let problem = format!("it is not one line of 1 to {chars_max} characters");
            let remedy = "Shorten it, and use no control characters";
            return Err(BundleError::manifest(field(name), problem, remedy));
        }
    }
    Ok(())
}

fn is_version(version: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    (1..=VERSION_CHARS_MAX).contains(&version.len()) && version.bytes().all(allowed)
}

/// Whether `id` can name a policy.
pub(crate) fn is_policy_id(id: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    id.len() <= POLICY_ID_CHARS_MAX
        && id
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_lowercase())
        && id.bytes().all(allowed)
        && id != HELPERS_ID
}

fn plain(shown: &str) -> String {
    text::plain(shown, 300)
}
