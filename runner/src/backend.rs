//! The backend that a run's state goes through, written over whatever the configuration says, and
//! the check that it is the one in force.
//!
//! An override file can be beaten: by a file of the same base name, or by an override file that sorts
//! later. So its name cannot be guessed by whoever wrote the configuration, and after `init` OpenTofu's
//! own record says which backend it took. A run with another one ends before it plans.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use stackship_runner_protocol::Lease;
use stackship_sandbox::spec::GATEWAY_ADDRESS;

use crate::variables::quoted;

/// The largest record that is read.
pub(crate) const RECORD_BYTES_MAX: u64 = 1024 * 1024;

/// The contents of the override file.
pub(crate) fn override_file(hostname: &str, lease: &Lease) -> Vec<u8> {
    format!(
        "terraform {{\n  cloud {{\n    hostname     = {}\n    organization = {}\n    workspaces {{\n      name = {}\n    }}\n  }}\n}}\n",
        quoted(hostname),
        quoted(lease.organization_name.as_str()),
        quoted(lease.workspace_name.as_str()),
    )
    .into_bytes()
}

/// The override file's name. It follows from the run's id, which did not exist when the configuration
/// was written, and is the same in plan and apply.
pub(crate) fn override_name(lease: &Lease) -> String {
    let digest = Sha256::digest(format!("backend override of {}", lease.run));
    format!("zz_{}_override.tf", hex::encode(&digest[..12]))
}

/// OpenTofu's own configuration: where the installation's host name leads inside a sandbox, and where
/// providers come from. The credential is a placeholder; the gateway puts the run's token in its place.
pub(crate) fn cli_configuration(hostname: &str, provider_installation: &str) -> Vec<u8> {
    let host = quoted(hostname);
    let base = quoted(&format!("http://{GATEWAY_ADDRESS}/api/v2/"));
    let services = ["tfe.v2", "tfe.v2.1", "tfe.v2.2", "state.v2"]
        .map(|name| format!("    \"{name}\" = {base}\n"))
        .concat();
    format!(
        "disable_checkpoint = true\nhost {host} {{\n  services = {{\n{services}  }}\n}}\n\
         credentials {host} {{\n  token = \"placeholder\"\n}}\n{provider_installation}"
    )
    .into_bytes()
}

/// Why the backend in force is not ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BackendRefusal {
    #[error(
        "after `tofu init` no backend is recorded, so the run's state would not reach this workspace"
    )]
    Absent,
    #[error("the record of the backend that `tofu init` left cannot be read")]
    Unreadable,
    #[error(
        "the configuration overrides the backend with `{0}`; a run's state goes through its workspace. Remove the \
         backend from the configuration's override files"
    )]
    Type(String),
    #[error(
        "the configuration overrides the backend with another {0}; a run's state goes through its workspace"
    )]
    Other(&'static str),
}

/// Checks `.terraform/terraform.tfstate`, as it came out of a sandbox.
pub(crate) fn check(
    record: Option<&Path>,
    hostname: &str,
    lease: &Lease,
) -> Result<(), BackendRefusal> {
    let path = record.ok_or(BackendRefusal::Absent)?;
    let mut bytes = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(RECORD_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|_| BackendRefusal::Unreadable)?;
    let record: Record = serde_json::from_slice(&bytes).map_err(|_| BackendRefusal::Unreadable)?;
    let backend = record.backend.ok_or(BackendRefusal::Absent)?;
    if backend.kind != "cloud" {
        let shown = backend
            .kind
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(40)
            .collect();
        return Err(BackendRefusal::Type(shown));
    }
    let config: Cloud =
        serde_json::from_value(backend.config).map_err(|_| BackendRefusal::Unreadable)?;
    let same = |found: Option<&str>, expected: &str, what| {
        if found == Some(expected) {
            Ok(())
        } else {
            Err(BackendRefusal::Other(what))
        }
    };
    same(config.hostname.as_deref(), hostname, "host name")?;
    same(
        config.organization.as_deref(),
        lease.organization_name.as_str(),
        "organization",
    )?;
    same(
        config.workspaces.and_then(|found| found.name).as_deref(),
        lease.workspace_name.as_str(),
        "workspace",
    )
}

#[derive(Deserialize)]
struct Record {
    backend: Option<Backend>,
}

#[derive(Deserialize)]
struct Backend {
    #[serde(rename = "type")]
    kind: String,
    config: serde_json::Value,
}

#[derive(Deserialize)]
struct Cloud {
    hostname: Option<String>,
    organization: Option<String>,
    workspaces: Option<Workspaces>,
}

#[derive(Deserialize)]
struct Workspaces {
    name: Option<String>,
}
