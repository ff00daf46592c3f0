//! Fetching what a phase starts from, into files that only this user can read.

use std::path::{Path, PathBuf};

use stackship_domain::Sha256Digest;
use stackship_domain::variable::InputSnapshot;
use stackship_runner_protocol::{
    ApprovedPlan, CONFIGURATION_BYTES_MAX, InputName, InputRef, LOCK_FILE_BYTES_MAX, Lease,
    PLAN_BYTES_MAX, PLAN_JSON_BYTES_MAX,
};
use tempfile::TempDir;
use tokio::try_join;

use crate::control_plane::{CallError, ControlPlane, Hold};

/// The largest input snapshot, in bytes: every variable as large as one may be, escaped.
const SNAPSHOT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The largest policy result, in bytes.
const POLICY_RESULT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// First part of the names of attempts' directories, by which leftovers are known.
pub(crate) const DIRECTORY_PREFIX: &str = "attempt-";

/// Why the inputs of a phase are not there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("an input could not be fetched")]
    Call(#[from] CallError),
    #[error("the input snapshot cannot be read")]
    Snapshot(#[source] serde_json::Error),
    #[error("a file of the runner could not be read or written")]
    File(#[from] std::io::Error),
}

/// A fetched file and what its bytes are, computed here.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) path: PathBuf,
    pub(crate) sha256: Sha256Digest,
}

/// What every phase starts from.
pub(crate) struct Inputs {
    pub(crate) configuration: Fetched,
    pub(crate) snapshot: Fetched,
    /// The snapshot, opened.
    pub(crate) pinned: InputSnapshot,
}

/// What an apply starts from besides.
pub(crate) struct Approved {
    pub(crate) plan: Fetched,
    pub(crate) plan_json: Fetched,
    pub(crate) policy_result: Fetched,
    pub(crate) lock_file: Option<Fetched>,
}

/// Fetches for one attempt.
pub(crate) struct Fetcher<'a> {
    pub(crate) control_plane: &'a ControlPlane,
    pub(crate) hold: &'a Hold,
    pub(crate) directory: &'a TempDir,
}

impl Fetcher<'_> {
    pub(crate) async fn inputs(&self) -> Result<Inputs, InputError> {
        let (configuration, snapshot) = try_join!(
            self.fetch(InputName::Configuration, CONFIGURATION_BYTES_MAX),
            self.fetch(InputName::Snapshot, SNAPSHOT_BYTES_MAX),
        )?;
        let bytes = tokio::fs::read(&snapshot.path).await?;
        let pinned = serde_json::from_slice(&bytes).map_err(InputError::Snapshot)?;
        Ok(Inputs {
            configuration,
            snapshot,
            pinned,
        })
    }

    pub(crate) async fn approved(&self, approved: &ApprovedPlan) -> Result<Approved, InputError> {
        let lock_file = async {
            match &approved.lock_file {
                None => Ok(None),
                Some(_) => self
                    .fetch(InputName::LockFile, LOCK_FILE_BYTES_MAX)
                    .await
                    .map(Some),
            }
        };
        let (plan, plan_json, policy_result, lock_file) = try_join!(
            self.fetch(InputName::Plan, PLAN_BYTES_MAX),
            self.fetch(InputName::PlanJson, PLAN_JSON_BYTES_MAX),
            self.fetch(InputName::PolicyResult, POLICY_RESULT_BYTES_MAX),
            lock_file,
        )?;
        Ok(Approved {
            plan,
            plan_json,
            policy_result,
            lock_file,
        })
    }

    async fn fetch(&self, name: InputName, bytes_max: u64) -> Result<Fetched, InputError> {
        let path = self.directory.path().join(name.as_str());
        let InputRef { sha256, .. } = self
            .control_plane
            .fetch(self.hold, name, &path, bytes_max)
            .await?;
        Ok(Fetched { path, sha256 })
    }
}

impl Inputs {
    /// The pinned input that is not what the lease says, if one is not.
    pub(crate) fn first_difference(&self, lease: &Lease) -> Option<InputName> {
        [
            (
                InputName::Configuration,
                self.configuration.sha256 != lease.configuration.sha256,
            ),
            (
                InputName::Snapshot,
                self.snapshot.sha256 != lease.snapshot.sha256,
            ),
        ]
        .into_iter()
        .find_map(|(name, differs)| differs.then_some(name))
    }
}

/// A private directory for one attempt's files; gone with the value.
pub(crate) fn attempt_directory(work_directory: &Path) -> std::io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix(DIRECTORY_PREFIX)
        .tempdir_in(work_directory)
}
