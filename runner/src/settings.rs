//! What a runner is told when it starts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use stackship_domain::{Sha256Digest, TofuVersion};
use stackship_runner_protocol::Secret;
use stackship_sandbox::Limits;
use stackship_sandbox::egress::EgressPolicy;

/// Settings of a runner.
#[derive(Debug, Clone)]
pub struct RunnerSettings {
    /// Where the control plane is reached, without a slash at the end.
    pub control_plane_url: String,
    /// What this runner authenticates with.
    pub runner_token: Secret,
    /// The installation's host name, as configurations write it in a `cloud` block.
    pub hostname: String,
    /// Where this runner executes.
    pub region: String,
    /// How many attempts run at the same time.
    pub slots: u16,
    /// Where OpenTofu comes from.
    pub tools: ToolSettings,
    /// A directory of provider packages, shown read-only in every sandbox.
    pub provider_mirror: Option<PathBuf>,
    /// Which hosts a sandbox may reach; `None` for none at all.
    pub egress: Option<EgressPolicy>,
    /// A directory for files in transit and downloaded tools, private to the runner.
    pub work_directory: PathBuf,
    /// Bounds of every sandbox. The total time is set per phase.
    pub limits: Limits,
    /// How long a started apply may go on after the runner was asked to stop.
    pub shutdown_grace: Duration,
}

/// Where exact OpenTofu releases come from. `PATH` is never looked at.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// `{mirror}/{version}/tofu` beside `SHA256SUMS`; asked first.
    pub mirror: Option<PathBuf>,
    /// Base URL of release downloads: `{base}/v{version}/tofu_{version}_{platform}.zip`.
    pub release_base_url: String,
    /// SHA-256 of the release archive, by version. Nothing is downloaded without one.
    pub pinned: BTreeMap<TofuVersion, Sha256Digest>,
}
